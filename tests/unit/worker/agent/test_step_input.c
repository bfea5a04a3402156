/* What an agent of a job step takes from its standard input. */
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "tests/unit/unit.h"
#include "worker/agent/step_input.h"

#define KEY(digit) digit digit digit digit digit digit digit digit
#define KEY_A KEY("aaaaaaaa")
#define KEY_B KEY("bbbbbbbb")
#define INPUT                                                                  \
    "connect 10.0.0.1:1,[::1]:2\n"                                             \
    "node n1 run/0 " KEY_A "\nnode n11 run/1 " KEY_B "\nend\n"

static enum rf_status take(const char *text, const char *node,
                           struct rf_step_input *out, struct rf_err *err)
{
    int ends[2];
    enum rf_status status;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
    close(ends[1]);
    status = rf_step_input_read(ends[0], node, out, err);
    close(ends[0]);
    return status;
}

LOOP_TEST(test_step_input_is_that_of_the_node, 2)
{
    struct rf_step_input input;
    struct rf_err err = {0};
    assert_ok(take(INPUT, _i == 0 ? "n1" : "n11", &input, &err), err);
    ck_assert_str_eq(input.connect, "10.0.0.1:1,[::1]:2");
    ck_assert_str_eq(input.identity, _i == 0 ? "run/0" : "run/1");
    for (size_t i = 0; i < RF_PSK_BYTES; i++) {
        ck_assert_uint_eq(input.psk[i], _i == 0 ? 0xaa : 0xbb);
    }
}

static const struct {
    const char *text, *node, *says;
} bad[] = {
    {INPUT, NULL, "SLURMD_NODENAME is not set"},
    {INPUT, "", "SLURMD_NODENAME is not set"},
    {INPUT, "n2", "n2 in Slurm"},
    {INPUT, "n", "node, n in Slurm"},
    {"connect x:1\nnode n1 run/0 " KEY_A "\n", "n1", "before its line"},
    {"", "n1", "before its line"},
    {"connect x:1\nnode n1 run/0 abc\nend\n", "n1", "no identity and key"},
    {"connect x:1\nnode n1 run/0\nend\n", "n1", "no identity and key"},
    {"hello\nend\n", "n1", "expected \"connect\""},
};

LOOP_TEST(test_step_input_that_is_not_right_is_refused, RF_ARRAY_SIZE(bad))
{
    struct rf_step_input input;
    struct rf_err err = {0};
    ck_assert_int_ne(take(bad[_i].text, bad[_i].node, &input, &err), RF_OK);
    assert_says(err.text, bad[_i].says);
    ck_assert_ptr_null(strstr(err.text, "aaaa"));
    ck_assert_uint_eq(input.psk[0], 0);
}

TEST(test_step_input_lines_are_bounded)
{
    static char text[2 * RF_STEP_LINE_MAX];
    struct rf_step_input input;
    struct rf_err err = {0};
    memset(text, 'x', sizeof(text) - 1);
    assert_fails(take(text, "n1", &input, &err), RF_ERR_PROTOCOL, err,
                 "longer than");
}

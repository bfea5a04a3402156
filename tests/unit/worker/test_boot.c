/* BOOT, good and bad. */
#include <check.h>
#include <string.h>

#include "common/compiler.h"
#include "transport/msg.h"
#include "worker/boot.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define GOOD                                                                   \
    "{\"protocol\": [1, 3], \"node\": 2, \"nonce\": \"ab\", \"psk\": \"" KEY   \
    "\", \"identity\": \"r/2\", \"candidates\": [{\"address\": \"10.0.0.1\", " \
    "\"port\": 4000}, {\"address\": \"fd00::1\", \"port\": 4001}], "           \
    "\"data_address\": null, \"log_level\": 3, \"env\": {\"A\": \"b\"}, "      \
    "\"limits\": {\"lease_dead_ms\": 700}, \"unknown\": 1}"

static enum rf_status read_text(const char *text, struct rf_boot *boot,
                                struct rf_err *err)
{
    json_t *message = json_loads(text, 0, NULL);
    enum rf_status status;
    ck_assert_ptr_nonnull(message);
    status = rf_boot_read(message, boot, err);
    json_decref(message);
    return status;
}

START_TEST(test_a_whole_boot_is_read)
{
    struct rf_boot boot;
    struct rf_err err;
    ck_assert_int_eq(read_text(GOOD, &boot, &err), RF_OK);
    ck_assert_int_eq(boot.node, 2);
    ck_assert_str_eq(boot.nonce, "ab");
    ck_assert_str_eq(boot.identity, "r/2");
    ck_assert_ptr_null(boot.data_address);
    ck_assert_int_eq(boot.log_level, 3);
    ck_assert_uint_eq(boot.n_candidates, 2);
    ck_assert_str_eq(boot.candidates[1].address, "fd00::1");
    ck_assert_uint_eq(boot.candidates[1].port, 4001);
    ck_assert_uint_eq(boot.psk[0], 0x00);
    ck_assert_uint_eq(boot.psk[31], 0xff);
    ck_assert_uint_eq(boot.limits.lease_dead_ms, 700);
    ck_assert_uint_eq(boot.limits.lease_period_ms, RF_LEASE_PERIOD_MS);
    rf_boot_free(&boot);
    ck_assert_uint_eq(boot.psk[31], 0);
}
END_TEST

START_TEST(test_the_key_does_not_stay_in_the_message)
{
    json_t *message = json_loads(GOOD, 0, NULL);
    struct rf_boot boot;
    struct rf_err err;
    char *text;
    ck_assert_int_eq(rf_boot_read(message, &boot, &err), RF_OK);
    text = json_dumps(message, 0);
    ck_assert_ptr_null(strstr(text, "00112233"));
    free(text);
    rf_boot_free(&boot);
    json_decref(message);
}
END_TEST

START_TEST(test_bad_boots_are_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{}", "protocol"},
        {"{\"protocol\": [2, 3]}", "protocol 2 to 3, this worker 1 to 1"},
        {"{\"protocol\": [1]}", "protocol"},
        {"{\"protocol\": [1, 1], \"psk\": \"12\"}", "psk"},
        {"{\"protocol\": [1, 1], \"psk\": 5}", "psk"},
        {"{\"protocol\": [1, 1], \"nonce\": 5}", "nonce"},
        {"{\"protocol\": [1, 1], \"identity\": \"i\", \"psk\": \"" KEY
         "\", \"candidates\": [{\"address\": \"a\", \"port\": 70000}]}",
         "port"},
        {"{\"protocol\": [1, 1], \"candidates\": [{\"port\": 7}]}", "address"},
        {"{\"protocol\": [1, 1], \"candidates\": [{\"address\": \"a\", "
         "\"port\": 7}]}",
         "without identity and key"},
        {"{\"protocol\": [1, 1], \"limits\": {\"abort_grace_ms\": -1}}",
         "abort_grace_ms"},
        {"{\"protocol\": [1, 1], \"shared\": {}}", "shared"},
        {"{\"protocol\": [1, 1], \"shared\": {\"token\": \"../x\", "
         "\"nodes\": 2}}",
         "shared"},
        {"{\"protocol\": [1, 1], \"shared\": {\"token\": \"ab\", "
         "\"nodes\": 0}}",
         "nodes"},
        {"{\"protocol\": [1, 1], \"shared\": {\"token\": \"ab\", "
         "\"nodes\": 2, \"folders\": [5]}}",
         "folder"},
    };
    struct rf_boot boot;
    struct rf_err err = {.text = ""};
    ck_assert_int_ne(read_text(cases[_i].text, &boot, &err), RF_OK);
    ck_assert_msg(strstr(err.text, cases[_i].why) != NULL, "%s", err.text);
}
END_TEST

Suite *test_boot_suite(void);
Suite *test_boot_suite(void)
{
    Suite *suite = suite_create("worker/boot");
    TCase *tests = tcase_create("boot");
    tcase_add_test(tests, test_a_whole_boot_is_read);
    tcase_add_test(tests, test_the_key_does_not_stay_in_the_message);
    tcase_add_loop_test(tests, test_bad_boots_are_refused, 0, 14);
    suite_add_tcase(suite, tests);
    return suite;
}

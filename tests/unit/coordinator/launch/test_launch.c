/* The launchers' table, gate and line splitting; `manual`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/cluster/launchers.h"
#include "coordinator/launch/launch_internal.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/unit.h"

LOOP_TEST(test_launch_table_knows_its_names, 4)
{
    static const char *const names[] = {"ssh", "local", "manual", "slurm"};
    ck_assert_str_eq(rf_launcher_find(names[_i])->name, names[_i]);
    ck_assert_ptr_null(rf_launcher_find("rsh"));
    ck_assert_ptr_null(rf_launcher_find(""));
}

TEST(test_launch_grace_is_the_default_unless_ordered)
{
    ck_assert_uint_eq(rf_launch_grace_ms(0), RF_LAUNCH_GRACE_MS);
    ck_assert_uint_eq(rf_launch_grace_ms(1), 1);
}

/* --- The gate ------------------------------------------------------------- */

static unsigned turns;

static void count_turn(struct rf_gate_place *place)
{
    ck_assert_int_eq(place->state, RF_GATE_IN);
    turns++;
}

TEST(test_launch_gate_keeps_its_limit_and_order)
{
    struct rf_launch_gate *gate = rf_launch_gate_create(2);
    struct rf_gate_place places[6];
    turns = 0;
    for (int i = 0; i < 6; i++) {
        places[i] = (struct rf_gate_place){.start = count_turn};
        rf_gate_enter(gate, &places[i]);
    }
    ck_assert_uint_eq(turns, 2);
    rf_gate_leave(gate, &places[3]); /* gives up waiting */
    rf_gate_leave(gate, &places[5]); /* the last in the queue, too */
    ck_assert_uint_eq(turns, 2);
    rf_gate_leave(gate, &places[0]);
    rf_gate_leave(gate, &places[0]);
    ck_assert_uint_eq(turns, 3);
    ck_assert_int_eq(places[2].state, RF_GATE_IN);
    ck_assert_int_eq(places[4].state, RF_GATE_WAITING);
    rf_gate_leave(gate, &places[1]);
    ck_assert_int_eq(places[4].state, RF_GATE_IN);
    rf_gate_leave(gate, &places[2]);
    rf_gate_leave(gate, &places[4]);
    rf_gate_enter(gate, &places[5]); /* the queue's end is still right */
    ck_assert_uint_eq(turns, 5);
    rf_gate_leave(gate, &places[5]);
    rf_launch_gate_destroy(gate);
}

TEST(test_launch_without_a_gate_nobody_waits)
{
    struct rf_gate_place places[3];
    turns = 0;
    for (int i = 0; i < 3; i++) {
        places[i] = (struct rf_gate_place){.start = count_turn};
        rf_gate_enter(NULL, &places[i]);
    }
    ck_assert_uint_eq(turns, 3);
    rf_gate_leave(NULL, &places[0]);
    ck_assert_int_eq(places[0].state, RF_GATE_OUT);
}

/* --- Lines ---------------------------------------------------------------- */

static char taken[3 * RF_LINE_MAX];

static void take(const char *line, void *data)
{
    (void)data;
    strcat(taken, line);
    strcat(taken, "|");
}

TEST(test_launch_lines_are_split_and_made_harmless)
{
    static const char text[] = "one\r\ntwo\n\nred \x1b[31m\tx\x7f\xc3\xa9\n\0z";
    struct rf_lines lines = {.take = take};
    taken[0] = '\0';
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        rf_lines_feed(&lines, text + i, 1);
    }
    rf_lines_end(&lines);
    rf_lines_end(&lines);
    ck_assert_str_eq(taken, "one|two||red ?[31m\tx?\xc3\xa9|?z|");
}

TEST(test_launch_lines_without_end_are_cut)
{
    static char text[RF_LINE_MAX + 10];
    struct rf_lines lines = {.take = take};
    memset(text, 'x', sizeof(text));
    taken[0] = '\0';
    rf_lines_feed(&lines, text, sizeof(text));
    rf_lines_end(&lines);
    ck_assert_uint_eq(strlen(taken), sizeof(text) + 2);
    ck_assert_int_eq(strchr(taken, '|') - taken, RF_LINE_MAX - 1);
}

/* --- manual --------------------------------------------------------------- */

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct rf_launch_config manual = {.method = "manual",
                                         .worker = "refit-worker"};
static struct rf_node_config manual_node = {.name = "gpu-a"};
static struct rf_launch_join manual_join = {"10.0.0.1:4000", "r1/0", KEY};
static const struct rf_launch_order manual_order = {
    .node = &manual_node, .settings = &manual, .join = &manual_join};

/* For starts that fail. */
static enum rf_status start_manual(const struct rf_launch_order *order,
                                   struct rf_err *err)
{
    const struct rf_launch_ops_cb none = {0};
    struct rf_launch *launch = NULL;
    enum rf_status status = rf_launcher_manual.start(&launch_loop, order, &none,
                                                     NULL, &launch, err);
    ck_assert_ptr_null(launch);
    return status;
}

CASE("manual")
FIXTURE(launch_setup, launch_teardown)

TEST(test_launch_manual_shows_a_command_without_the_key)
{
    struct seen seen;
    struct stat info;
    const char *path = fake_root_path("refit-coord/r1-0.key");
    char expected[256], text[80] = "";
    FILE *file;
    setenv("XDG_CACHE_HOME", fake_root, 1);
    seen_start(&seen, &manual_order);
    await_note(&seen, "run on this node:", 5);
    snprintf(
        expected, sizeof(expected),
        "run on this node: refit-worker --connect 10.0.0.1:4000 --identity "
        "r1/0 --key-file %s\n",
        path);
    assert_says(seen.noted, expected);
    ck_assert_ptr_null(strstr(seen.noted, KEY));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    fclose(file);
    ck_assert_str_eq(text, KEY "\n");
    seen.ops->stop(seen.launch, false);
    await_end(&seen, 1, 5);
    ck_assert_uint_eq(seen.exits, 1);
    ck_assert_uint_eq(seen.streams, 0);
    ck_assert_int_ne(access(path, F_OK), 0); /* the key is gone */
}

TEST(test_launch_manual_needs_a_place_to_join)
{
    struct rf_launch_order order = manual_order;
    struct rf_err err = {0};
    order.join = NULL;
    ck_assert_int_eq(start_manual(&order, &err), RF_ERR_INTERNAL);
}

/* Its own error, not that of what is made in it. */
LOOP_TEST(test_launch_manual_names_the_folder_that_cannot_be_made, 2)
{
    struct rf_err err = {0};
    char expected[128];
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", _i == 0 ? launch_file("file", "", 0600) : "/proc/1", 1);
    snprintf(expected, sizeof(expected),
             "XDG_CACHE_HOME may name: %s/.cache: ", getenv("HOME"));
    assert_fails(start_manual(&manual_order, &err), RF_ERR_LAUNCH, err,
                 expected);
}

LOOP_TEST(test_launch_manual_takes_the_root_folder_for_no_home, 4)
{
    static const char *const homes[] = {"/", "//", "", NULL};
    struct rf_err err = {0};
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    if (homes[_i] != NULL) {
        setenv("HOME", homes[_i], 1);
    }
    assert_fails(start_manual(&manual_order, &err), RF_ERR_CONFIG, err,
                 "needs a HOME other than /, or XDG_CACHE_HOME");
}

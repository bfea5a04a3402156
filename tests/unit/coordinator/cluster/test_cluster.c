/*
 * Nodes and listener together, with agents that the test plays: who joins, and
 * what follows when one fails before HELLO.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/cluster/cluster.h"
#include "tests/lib/callers.h"
#include "tests/lib/configured.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/logged.h"
#include "tests/unit/unit.h"

static struct rf_config *config;
static struct rf_model *model;
static struct rf_cluster *cluster;
static struct invitation invited;
static unsigned n_hellos, n_lost, n_stopped;
static char lost_why[1024];

static bool hello_cb(uint32_t node, struct rf_msg_hello *hello, void *data)
{
    (void)hello;
    (void)data;
    ck_assert_uint_eq(node, 0);
    n_hellos++;
    return true;
}

static void lost_cb(uint32_t node, const struct rf_err *why, void *data)
{
    (void)data;
    ck_assert_uint_eq(node, 0);
    n_lost++;
    strcpy(lost_why, why->text);
}

static void message_cb(uint32_t node, const struct rf_msg *message, void *data)
{
    (void)node;
    (void)message;
    (void)data;
}

static void bad_message_cb(uint32_t node, const struct rf_msg_bad *bad,
                           void *data)
{
    (void)node;
    (void)bad;
    (void)data;
}

static void log_cb(uint32_t node, uint32_t rank, const char *line, void *data)
{
    (void)node;
    (void)rank;
    (void)line;
    (void)data;
}

static void stopped_cb(void *data)
{
    (void)data;
    n_stopped++;
}

static const struct rf_cluster_ops cluster_ops = {
    {hello_cb, lost_cb, message_cb, NULL, bad_message_cb, log_cb}, stopped_cb};

static void setup(void)
{
    ends_setup();
    fake_root_make();
    setenv("XDG_CACHE_HOME", fake_root, 1);
    logged_begin();
}

static bool is_stopped(void)
{
    return n_stopped > 0;
}

static void teardown(void)
{
    rf_cluster_stop(cluster, true);
    ends_run_until(is_stopped);
    rf_cluster_destroy(cluster);
    ends_teardown();
    rf_model_destroy(model);
    rf_config_destroy(config);
    logged_end();
    fake_root_remove();
}

static void launch(const char *method, const char *worker)
{
    char *text = rf_xasprintf(
        "{\"launch\": {\"method\": \"%s\", \"worker\": \"%s\"}, \"control\": "
        "{\"address\": \"127.0.0.1\"}, \"nodes\": [{\"host\": \"a\", "
        "\"slots\": 1}], \"model\": {\"megatron\": {\"num_layers\": 2, "
        "\"hidden_size\": 64, \"num_attention_heads\": 4, \"vocab_size\": "
        "128}}, \"scenarios\": [{\"name\": \"s\", \"train\": {}, \"infer\": "
        "{}}]}",
        method, worker);
    struct rf_cluster_options options = {.loop = &ends_loop, .run_id = "run"};
    struct rf_err err = {0};
    configured(text, &config, &model);
    free(text);
    options.config = config;
    assert_ok(rf_cluster_create(&options, &cluster_ops, NULL, &cluster, &err),
              err);
    rf_cluster_launch(cluster);
}

/* --- Invitations ---------------------------------------------------------- */

static const char *command(void)
{
    return strstr(logged, "--connect ");
}

static bool command_came(void)
{
    return command() != NULL;
}

/* Launcher manual: what the user is told to run. */
static void launch_by_hand(void)
{
    char path[256], key[2 * RF_PSK_BYTES + 1];
    FILE *file;
    launch("manual", "refit-worker");
    ends_run_until(command_came);
    ck_assert_int_eq(sscanf(command(),
                            "--connect 127.0.0.1:%u --identity %128s "
                            "--key-file %255s",
                            &invited.port, invited.identity, path),
                     3);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%64s", key), 1);
    fclose(file);
    ck_assert(rf_hex_decode(key, invited.psk, RF_PSK_BYTES));
}

/* What a program in the agent's place has put into a file. */
static json_t *boot_message(void)
{
    static char text[65536];
    FILE *file = fopen(fake_root_path("boot"), "r");
    size_t size = 0;
    if (file != NULL) {
        size = fread(text, 1, sizeof(text), file);
        fclose(file);
    }
    return size <= RF_FRAME_HEADER_BYTES
               ? NULL
               : json_loadb(text + RF_FRAME_HEADER_BYTES,
                            size - RF_FRAME_HEADER_BYTES, 0, NULL);
}

static bool boot_came(void)
{
    json_auto_t *boot = boot_message();
    return boot != NULL;
}

/* A shell script in the agent's place. */
static void launch_script(const char *script)
{
    fake_root_write("worker", script);
    fake_root_run("chmod 700 worker");
    launch("local", fake_root_path("worker"));
}

/* Launcher local: what BOOT says. */
static void launch_locally(void)
{
    json_auto_t *boot;
    const char *psk, *identity;
    launch_script("#!/bin/sh\nexec cat >\"${0%/*}/boot\"\n");
    ends_run_until(boot_came);
    boot = boot_message();
    ck_assert_int_eq(json_unpack(boot, "{s:s, s:s, s:[{s:i}]}", "psk", &psk,
                                 "identity", &identity, "candidates", "port",
                                 &invited.port),
                     0);
    strcpy(invited.identity, identity);
    ck_assert(rf_hex_decode(psk, invited.psk, RF_PSK_BYTES));
}

/* --- Agents --------------------------------------------------------------- */

static void join(void)
{
    caller_join(&ends_left, &invited);
}

static void say_hello(void)
{
    caller_say_hello(&ends_left, 0);
}

/* Index of a loop test: what is wrong with the first frame. */
static void say_nonsense(int which)
{
    if (which == 0) {
        rf_conn_send_raw(ends_left.conn, RF_MSG_HELLO, 0, "{", 1);
    } else if (which == 1) {
        rf_conn_send(ends_left.conn, RF_MSG_DONE, 0, json_object());
    } else {
        rf_conn_send_raw(ends_left.conn, (enum rf_msg_type)200, 0, "", 0);
    }
}

static bool said_hello(void)
{
    return n_hellos > 0;
}

static bool is_lost(void)
{
    return n_lost > 0;
}

static const char *const reasons[] = {"HELLO", "message before HELLO",
                                      "type 200"};

LIMIT(30)
FIXTURE(setup, teardown)

LOOP_TEST(test_cluster_a_worker_may_be_started_again_by_hand, 3)
{
    launch_by_hand();
    join();
    say_nonsense(_i);
    ends_run_until(ends_left_closed);
    assert_says(logged, "warning: a: ");
    assert_says(logged, reasons[_i]);
    join();
    say_hello();
    ends_run_until(said_hello);
    ck_assert_uint_eq(n_lost, 0);
}

LOOP_TEST(test_cluster_a_bad_frame_before_hello_loses_a_launched_node, 3)
{
    launch_locally();
    join();
    say_nonsense(_i);
    ends_run_until(is_lost);
    assert_says(lost_why, reasons[_i]);
    join();
    ck_assert_uint_eq(ends_left.ready, 0);
}

TEST(test_cluster_a_cut_before_hello_loses_a_launched_node)
{
    static const struct rf_err cut = {.status = RF_ERR_PEER};
    launch_locally();
    join();
    rf_conn_fail(ends_left.conn, &cut);
    ends_run_until(is_lost);
    assert_says(lost_why, "lost before it joined");
}

TEST(test_cluster_an_identity_joins_once)
{
    launch_by_hand();
    join();
    say_hello();
    ends_run_until(said_hello);
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_left_closed);
    join();
    ck_assert_uint_eq(ends_left.ready, 0);
    assert_says(logged, "refused a second connection as a");
}

/* A shell without a first line "#!" gives such a message of its own. */
LOOP_TEST(test_cluster_a_worker_that_a_shell_ran_is_no_program, 3)
{
    static const char *const says[] = {"$0: line 1: x: command not found",
                                       "$0: 1: x: not found",
                                       "sh: 1: $0: not found"};
    AUTO_FREE char *script =
        rf_xasprintf("#!/bin/sh\necho \"%s\" >&2\nexit 127\n", says[_i]);
    launch_script(script);
    ends_run_until(is_lost);
    assert_says(lost_why, _i < 2 ? "is not a program" : "was not found");
}

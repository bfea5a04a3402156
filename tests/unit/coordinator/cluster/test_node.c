/*
 * One node alone: the test is its launcher, its agent and its clock.
 */
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/cluster/node.h"
#include "coordinator/launch/launch_internal.h"
#include "planner/scenario/world.h"
#include "tests/lib/callers.h"
#include "tests/lib/logged.h"
#include "tests/unit/unit.h"

static struct rf_node_config settings = {.name = "a", .slots = 1};
static struct rf_config config;
static struct rf_node *node;
static struct rf_pauses pauses;
static int64_t later_ns; /* the test's clock is ahead by this */

/* What the node has reported. */
static unsigned n_hellos, n_lost, n_messages, n_bad, n_lines, n_settled;
static bool refuses, stops_at_hello;
static struct rf_err lost_why, bad_why;
static struct rf_msg_bad last_bad;
static char taken_version[64], last_line[256];
static enum rf_msg_type last_message;

/* --- Its launcher --------------------------------------------------------- */

static struct rf_launch launch;
static unsigned n_starts, n_stops, n_forced, n_destroyed;
static uint32_t identified;
static bool start_fails;

static enum rf_status start_op(uv_loop_t *loop,
                               const struct rf_launch_order *order,
                               const struct rf_launch_ops_cb *callbacks,
                               void *data, struct rf_launch **out,
                               struct rf_err *err)
{
    (void)loop;
    if (start_fails) {
        return rf_err_set(err, RF_ERR_LAUNCH, "no such program");
    }
    ck_assert_ptr_eq(order->node, &settings);
    launch.callbacks = *callbacks;
    launch.data = data;
    n_starts++;
    *out = &launch;
    return RF_OK;
}

static const char *head_address_op(const struct rf_launch *which)
{
    (void)which;
    return "10.0.0.1";
}

static void identify_op(struct rf_launch *which, uint32_t pid,
                        uint64_t start_ticks)
{
    ck_assert_ptr_eq(which, &launch);
    ck_assert_uint_eq(start_ticks, CALLER_START_TICKS);
    identified = pid;
}

static void stop_op(struct rf_launch *which, bool force)
{
    ck_assert_ptr_eq(which, &launch);
    n_stops++;
    n_forced += force;
}

static void destroy_op(struct rf_launch *which)
{
    ck_assert_ptr_eq(which, &launch);
    n_destroyed++;
}

static struct rf_launcher_ops launcher = {.name = "test",
                                          .start = start_op,
                                          .head_address = head_address_op,
                                          .identify = identify_op,
                                          .stop = stop_op,
                                          .destroy = destroy_op};

static void exits(int status, const char *signal)
{
    launch.callbacks.on_exit(&launch, status, signal, launch.data);
}

static void writes_line(const char *line)
{
    launch.callbacks.on_stderr(&launch, line, launch.data);
}

/* --- What it reports ------------------------------------------------------ */

static bool hello_cb(uint32_t index, struct rf_msg_hello *hello, void *data)
{
    (void)data;
    ck_assert_uint_eq(index, 0);
    n_hellos++;
    snprintf(taken_version, sizeof(taken_version), "%s",
             hello->version != NULL ? hello->version : "");
    rf_schema_free(&rf_msg_hello_schema, hello); /* taken */
    if (stops_at_hello) {
        rf_node_stop(node, false);
    }
    return !refuses;
}

static void lost_cb(uint32_t index, const struct rf_err *why, void *data)
{
    (void)index;
    (void)data;
    n_lost++;
    lost_why = *why;
}

static void message_cb(uint32_t index, const struct rf_msg *message, void *data)
{
    (void)index;
    (void)data;
    n_messages++;
    last_message = message->type;
}

static void bad_message_cb(uint32_t index, const struct rf_msg_bad *bad,
                           void *data)
{
    (void)index;
    (void)data;
    n_bad++;
    bad_why = *bad->why;
    last_bad = *bad;
}

static void log_cb(uint32_t index, uint32_t rank, const char *line, void *data)
{
    (void)index;
    (void)rank;
    (void)data;
    n_lines++;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

static const struct rf_node_events events = {
    hello_cb, lost_cb, message_cb, NULL, bad_message_cb, log_cb};

static uint32_t open_port_cb(const char *address, void *data)
{
    (void)data;
    ck_assert_str_eq(address, "10.0.0.1"); /* control.address is "auto" */
    return 4000;
}

static void settled_cb(uint32_t index, void *data)
{
    (void)index;
    (void)data;
    n_settled++;
}

static void close_cb(void *data)
{
    (void)data;
}

static const struct rf_node_ops ops = {open_port_cb, settled_cb, close_cb};

static int64_t clock_now(void)
{
    return rf_now_ns() + later_ns;
}

static void setup(void)
{
    static char address[] = "auto";
    static const uint8_t psk[RF_PSK_BYTES] = {1, 2, 3};
    struct rf_node_options options = {.loop = &ends_loop,
                                      .config = &config,
                                      .run_id = "run",
                                      .identity = "run/0",
                                      .psk = psk,
                                      .launcher = &launcher,
                                      .now = clock_now,
                                      .events = &events};
    ends_setup();
    logged_begin();
    config = (struct rf_config){
        .n_nodes = 1,
        .nodes = &settings,
        .control = {.address = address},
        .launch = {
            .method = "test", .worker = "w", .bind = "none", .timeout_s = 30}};
    rf_pauses_begin(&pauses, clock_now());
    node = rf_node_create(&options, &ops, NULL);
}

/* As the cluster does it. */
static void tick(void)
{
    rf_pauses_note(&pauses, clock_now());
    rf_node_tick(node, &pauses);
}

/* Lets time pass with the process awake. */
static void pass(int64_t ns)
{
    for (int64_t end = later_ns + ns; later_ns < end;) {
        later_ns += RF_MIN(RF_NS_PER_S, end - later_ns);
        tick();
    }
}

/* --- Its agent ------------------------------------------------------------ */

static struct rf_conn *tcp; /* the node's end of a proved connection */
static struct rf_msg boot;
static bool has_boot;
static unsigned n_leases;
static int agent_fd = -1;

static void agent_takes(struct conn_end *end, const struct rf_frame *frame)
{
    struct rf_err err = {0};
    (void)end;
    if (frame->type == RF_MSG_BOOT) {
        assert_ok(rf_msg_read(frame, &boot, &err), err);
        has_boot = true;
    }
    n_leases += frame->type == RF_MSG_LEASE;
}

static bool boot_came(void)
{
    return has_boot;
}

/* The launcher's stream is up; the agent, ends_left, gets BOOT on it. */
static void stream_comes(void)
{
    int fds[2];
    ends_socketpair(fds);
    agent_fd = fds[1];
    ends_left.react = agent_takes;
    ends_open(&ends_left, fds[1], NULL);
    launch.callbacks.on_stream(&launch, (uv_pipe_t *)ends_stream(fds[0]),
                               launch.data);
    ends_run_until(boot_came);
}

static void launched(void)
{
    rf_node_launch(node, NULL);
    ck_assert_uint_eq(n_starts, 1);
    stream_comes();
}

static void say_banner(void)
{
    char line[256];
    int size =
        snprintf(line, sizeof(line), "\n%s %s\n", RF_BANNER, boot.boot.nonce);
    ck_assert_int_eq(write(agent_fd, line, (size_t)size), size);
}

static void tcp_ready_cb(struct rf_conn *conn, void *data)
{
    (void)data;
    rf_node_take_conn(node, conn);
}

static void tcp_frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                         void *data)
{
    (void)data;
    rf_node_take_frame(node, conn, frame);
}

static void tcp_close_cb(struct rf_conn *conn, const struct rf_err *why,
                         void *data)
{
    (void)data;
    tcp = NULL;
    rf_node_end_conn(node, conn, why);
}

static const struct rf_conn_ops tcp_ops = {tcp_ready_cb, tcp_frame_cb,
                                           tcp_close_cb};

static bool right_is_ready(void)
{
    return ends_right.ready > 0;
}

/* The agent, ends_right, has connected and proved its key. */
static void connects(void)
{
    int fds[2];
    memset(&ends_right, 0, sizeof(ends_right));
    ends_socketpair(fds);
    ends_right.react = agent_takes;
    ends_open(&ends_right, fds[1], NULL);
    tcp = rf_conn_open(ends_stream(fds[0]), NULL, &tcp_ops, NULL);
    ends_run_until(right_is_ready);
}

static bool said_hello(void)
{
    return n_hellos > 0;
}

static void joined_over_tcp(void)
{
    launched();
    connects();
    caller_say_hello(&ends_right, 0);
    ends_run_until(said_hello);
}

static bool all_is_closed(void)
{
    return rf_node_is_closed(node) && tcp == NULL;
}

static void teardown(void)
{
    rf_node_stop(node, true);
    if (tcp != NULL) {
        rf_conn_close(tcp);
    }
    if (n_starts > n_destroyed) {
        exits(0, NULL);
    }
    ends_run_until(all_is_closed);
    ck_assert_uint_eq(n_destroyed, n_starts);
    rf_node_destroy(node);
    ends_teardown();
    if (has_boot) {
        rf_msg_free(&boot);
    }
    logged_end();
}

static bool is_lost(void)
{
    return n_lost > 0;
}

static bool tcp_is_gone(void)
{
    return tcp == NULL;
}

/* --- Joining -------------------------------------------------------------- */

LIMIT(30)
FIXTURE(setup, teardown)

TEST(test_node_boots_its_agent_over_the_stream)
{
    launched();
    ck_assert_str_eq(boot.boot.run_id, "run");
    ck_assert_str_eq(boot.boot.identity, "run/0");
    ck_assert_int_eq(strncmp(boot.boot.psk, "01020300", 8), 0);
    ck_assert_uint_eq(boot.boot.n_candidates, 1);
    ck_assert_str_eq(boot.boot.candidates[0].address, "10.0.0.1");
    ck_assert_uint_eq(boot.boot.candidates[0].port, 4000);
    ck_assert_ptr_null(boot.boot.data_address);
}

static bool leases_came(void)
{
    return n_leases >= 2;
}

TEST(test_node_joins_over_the_stream_and_is_kept_alive)
{
    launched();
    say_banner();
    caller_say_hello(&ends_left, 0);
    ends_run_until(said_hello);
    ck_assert_uint_eq(n_settled, 1);
    ck_assert(!rf_node_over_tcp(node));
    ck_assert_uint_eq(identified, CALLER_PID);
    ck_assert_str_eq(taken_version, "test");
    tick();
    pass(2 * RF_NS_PER_S);
    ends_run_until(leases_came);
}

TEST(test_node_joins_over_tcp)
{
    joined_over_tcp();
    ck_assert(rf_node_over_tcp(node));
    ck_assert_uint_eq(n_settled, 1);
    ck_assert_uint_eq(n_lost, 0);
}

static bool heard_a_message(void)
{
    return n_messages + n_bad > 0;
}

static void done_message(struct rf_msg *message)
{
    rf_msg_init(message, RF_MSG_DONE);
    message->done.attempt = 1;
    message->done.seq = 1;
}

TEST(test_node_passes_messages_upward_once_it_has_joined)
{
    struct rf_msg done;
    joined_over_tcp();
    done_message(&done);
    rf_conn_send(ends_right.conn, RF_MSG_DONE, RF_FRAME_NO_RANK,
                 rf_msg_json(&done));
    ends_run_until(heard_a_message);
    ck_assert_int_eq(last_message, RF_MSG_DONE);
    ck_assert_uint_eq(n_bad, 0);
}

TEST(test_node_survives_a_message_that_breaks_its_schema)
{
    joined_over_tcp();
    rf_conn_send(ends_right.conn, RF_MSG_DONE, RF_FRAME_NO_RANK,
                 json_pack("{s:i}", "attempt", 1));
    ends_run_until(heard_a_message);
    ck_assert_uint_eq(n_bad, 1);
    ck_assert_int_eq(last_bad.type, RF_MSG_DONE);
    ck_assert_uint_eq(last_bad.attempt, 1);
    ck_assert_uint_eq(n_messages, 0);
    assert_says(bad_why.text, "DONE: $.seq");
    ck_assert_uint_eq(n_lost, 0);
    ck_assert_ptr_nonnull(tcp);
}

TEST(test_node_is_lost_with_a_payload_that_is_no_object)
{
    joined_over_tcp();
    rf_conn_send_raw(ends_right.conn, RF_MSG_DONE, RF_FRAME_NO_RANK, "[1", 2);
    ends_run_until(is_lost);
    ck_assert_int_eq(lost_why.status, RF_ERR_PEER);
    ck_assert_uint_eq(n_bad, 0);
}

/* Index of a loop test: what comes before a good HELLO. */
static const char *say_something_wrong(int which, struct conn_end *end)
{
    switch (which) {
    case 0:
        caller_say_hello(end, 7);
        return "one of another node";
    case 1:
        rf_conn_send(end->conn, RF_MSG_HELLO, RF_FRAME_NO_RANK,
                     json_pack("{s:i}", "node", 0));
        return "HELLO: $.protocol";
    case 2:
        rf_conn_send(end->conn, RF_MSG_DONE, RF_FRAME_NO_RANK, json_object());
        return "message before HELLO";
    default:
        rf_conn_send(end->conn, RF_MSG_ERROR, RF_FRAME_NO_RANK,
                     json_pack("{s:s}", "text", "cannot go on"));
        return "cannot go on";
    }
}

LOOP_TEST(test_node_is_lost_with_what_it_says_wrong_before_it_has_joined, 8)
{
    const char *says;
    launched();
    if (_i < 4) {
        connects();
        says = say_something_wrong(_i, &ends_right);
    } else {
        say_banner();
        says = say_something_wrong(_i - 4, &ends_left);
    }
    ends_run_until(is_lost);
    assert_says(lost_why.text, says);
    ck_assert_int_eq(lost_why.status, RF_ERR_LAUNCH);
    ck_assert_uint_eq(n_hellos, 0);
}

TEST(test_node_says_hello_once)
{
    joined_over_tcp();
    caller_say_hello(&ends_right, 0);
    ends_run_until(is_lost);
    ck_assert_uint_eq(n_hellos, 1);
    assert_says(lost_why.text, "a second HELLO");
}

TEST(test_node_that_is_refused_is_sent_no_lease)
{
    refuses = true;
    joined_over_tcp();
    pass(4 * RF_NS_PER_S);
    rf_conn_close(ends_right.conn);
    ends_run_until(tcp_is_gone);
    ck_assert_uint_eq(n_leases, 0);
}

TEST(test_node_that_its_hello_stops_is_not_lost)
{
    stops_at_hello = true;
    joined_over_tcp();
    ck_assert_uint_eq(n_stops, 1);
    exits(0, NULL);
    ends_run_until(all_is_closed);
    pass(20 * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
    ck_assert_uint_eq(n_leases, 0);
}

static bool has_a_line(void)
{
    return n_lines > 0;
}

TEST(test_node_cleans_and_keeps_what_its_agent_writes)
{
    launched();
    connects();
    rf_conn_send_raw(ends_right.conn, RF_MSG_LOG, 3, "\x1b[31mred\n\n", 9);
    ends_run_until(has_a_line);
    ck_assert_uint_eq(n_lines, 1);
    ck_assert_str_eq(last_line, "?[31mred");
}

/* --- Launcher manual ------------------------------------------------------ */

static void by_hand(void)
{
    launcher.connects = launcher.by_hand = true;
    rf_node_launch(node, "10.0.0.1:4000");
    connects();
    ends_run_until(boot_came);
}

static bool right_is_closed(void)
{
    return ends_right.closes > 0;
}

TEST(test_node_started_by_hand_boots_on_its_connection)
{
    by_hand();
    ck_assert_ptr_null(boot.boot.psk);
    ck_assert_uint_eq(boot.boot.n_candidates, 0);
    caller_say_hello(&ends_right, 0);
    ends_run_until(said_hello);
}

LOOP_TEST(test_node_started_by_hand_may_be_started_again, 2)
{
    by_hand();
    if (_i == 0) {
        rf_conn_close(ends_right.conn);
    } else {
        pass((config.launch.timeout_s + 10) * RF_NS_PER_S);
    }
    ends_run_until(right_is_closed);
    ends_run_until(tcp_is_gone);
    pass(60 * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
    assert_says(logged, "a: lost before it joined: ");
    assert_says(logged, "; start its worker again");
}

/* --- Launcher slurm ------------------------------------------------------- */

static bool is_lost_in_time(void)
{
    pass(RF_NS_PER_S);
    return n_lost > 0;
}

TEST(test_node_that_connects_by_itself_is_lost_without_hello)
{
    launcher.connects = true;
    rf_node_launch(node, "10.0.0.1:4000");
    connects();
    ends_run_until(boot_came);
    ck_assert_ptr_null(boot.boot.psk);
    rf_conn_close(ends_right.conn);
    ends_run_until(is_lost_in_time);
    assert_says(lost_why.text,
                "lost before it joined: its agent closed the connection");
}

TEST(test_node_is_lost_for_the_reason_that_its_launcher_knows)
{
    joined_over_tcp();
    launch.callbacks.on_trouble(&launch, "its agent ended: Killed", false,
                                launch.data);
    launch.callbacks.on_trouble(&launch, "the node has failed", true,
                                launch.data);
    ck_assert_uint_eq(n_lost, 0); /* more may come */
    pass(RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 1);
    ck_assert_str_eq(lost_why.text, "the node has failed");
}

/* --- Time ----------------------------------------------------------------- */

TEST(test_node_must_say_hello_in_time)
{
    launched();
    pass((config.launch.timeout_s + 9) * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
    pass(RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 1);
    assert_says(lost_why.text, "did not answer within 40 s");
    ck_assert_uint_eq(n_settled, 1);
}

TEST(test_node_is_lost_when_its_lease_expires)
{
    joined_over_tcp();
    pass((RF_LEASE_DEAD_MS / 1000 - 1) * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
    pass(2 * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 1);
    ck_assert_int_eq(lost_why.status, RF_ERR_PEER);
    assert_says(lost_why.text, "silent for 1");
    ck_assert_uint_eq(n_stops, 1);
}

TEST(test_node_survives_a_sleep_of_the_coordinator)
{
    joined_over_tcp();
    pass(RF_NS_PER_S);
    later_ns += 3600 * RF_NS_PER_S; /* the lid was closed */
    tick();
    pass(3 * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
    pass(2 * RF_NS_PER_S); /* and nothing had been sent meanwhile */
    ck_assert_uint_eq(n_lost, 1);
}

/* --- The end -------------------------------------------------------------- */

LOOP_TEST(test_node_is_judged_when_stream_and_process_have_ended, 2)
{
    launched();
    say_banner();
    writes_line("out of memory");
    if (_i == 0) {
        rf_conn_close(ends_left.conn);
        ends_run_until(ends_left_closed);
        tick();
        ck_assert_uint_eq(n_lost, 0); /* a better reason may come */
        exits(3, NULL);
    } else {
        exits(3, NULL);
        ck_assert_uint_eq(n_lost, 0);
        rf_conn_close(ends_left.conn);
    }
    ends_run_until(is_lost);
    ck_assert_str_eq(lost_why.text,
                     "its agent closed the stream; its agent ended with status "
                     "3; it said: out of memory");
}

TEST(test_node_is_judged_at_last_without_the_end_of_its_process)
{
    launched();
    say_banner();
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_left_closed);
    pass(RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
    pass(RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 1);
    ck_assert_str_eq(lost_why.text, "its agent closed the stream");
    ck_assert_uint_eq(n_stops, 1);
}

TEST(test_node_that_has_joined_is_judged_soon)
{
    joined_over_tcp();
    rf_conn_close(ends_right.conn);
    ends_run_until(tcp_is_gone);
    pass(RF_NS_PER_S / 4);
    ck_assert_uint_eq(n_lost, 1);
    ck_assert_int_eq(lost_why.status, RF_ERR_PEER);
    ck_assert_str_eq(lost_why.text, "its control connection ended");
}

TEST(test_node_that_cannot_be_started_is_lost_at_the_next_tick)
{
    start_fails = true;
    rf_node_launch(node, NULL);
    ck_assert_uint_eq(n_lost, 0);
    tick();
    ck_assert_uint_eq(n_lost, 1);
    ck_assert_str_eq(lost_why.text, "no such program");
}

TEST(test_node_is_dropped_without_a_word)
{
    joined_over_tcp();
    rf_node_drop(node);
    ck_assert_uint_eq(n_forced, 1);
    exits(-1, "KILL");
    ends_run_until(all_is_closed);
    pass(20 * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
}

TEST(test_node_is_stopped_without_being_lost)
{
    joined_over_tcp();
    rf_node_stop(node, false);
    ck_assert_uint_eq(n_stops, 1);
    ck_assert_uint_eq(n_forced, 0);
    writes_line("bye");
    ck_assert_str_eq(last_line, "bye");
    exits(0, NULL);
    ends_run_until(all_is_closed);
    pass(20 * RF_NS_PER_S);
    ck_assert_uint_eq(n_lost, 0);
}

/*
 * The listener alone: whose connection becomes a node's, and unauthenticated
 * peers that take up what they can. Time is the test's.
 */
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/cluster/listener.h"
#include "tests/lib/callers.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/flood.h"
#include "tests/lib/logged.h"
#include "tests/unit/unit.h"

static const char *const names[] = {"a"};
static struct rf_config config;
static struct rf_listener *listener;
static struct invitation invited;
static struct flood *flood;
static int64_t later_ns; /* the test's clock is ahead by this */
static unsigned n_proofs, n_frames, n_ends;
static struct rf_conn *proved;

static int64_t clock_now(void)
{
    return rf_now_ns() + later_ns;
}

static void proof_cb(uint32_t node, struct rf_conn *conn, void *data)
{
    (void)data;
    ck_assert_uint_eq(node, 0);
    n_proofs++;
    proved = conn;
}

static void frame_cb(uint32_t node, struct rf_conn *conn,
                     const struct rf_frame *frame, void *data)
{
    (void)node;
    (void)frame;
    (void)data;
    ck_assert_ptr_eq(conn, proved);
    n_frames++;
}

static void end_cb(uint32_t node, struct rf_conn *conn,
                   const struct rf_err *why, void *data)
{
    (void)node;
    (void)why;
    (void)data;
    ck_assert_ptr_eq(conn, proved);
    n_ends++;
    proved = NULL;
}

static void close_cb(void *data)
{
    (void)data;
}

static const struct rf_listener_ops ops = {proof_cb, frame_cb, end_cb,
                                           close_cb};

static bool was_logged(const char *text)
{
    return strstr(logged, text) != NULL;
}

static void setup(void)
{
    static char address[] = "127.0.0.1";
    ends_setup();
    logged_begin();
    config = (struct rf_config){.n_nodes = 1,
                                .node_names = (const char **)names,
                                .control = {.address = address}};
    strcpy(invited.identity, "run/0");
    memset(invited.psk, 7, sizeof(invited.psk));
}

static void listen_with(unsigned max_unauthenticated_peers, bool lends)
{
    struct rf_listener_options options = {.loop = &ends_loop,
                                          .config = &config,
                                          .max_unauthenticated_peers =
                                              max_unauthenticated_peers,
                                          .lends = lends,
                                          .now = clock_now};
    listener = rf_listener_create(&options, &ops, NULL);
    rf_listener_await(listener, 0, invited.identity, invited.psk);
    invited.port = rf_listener_open(listener, "127.0.0.1");
    ck_assert_uint_gt(invited.port, 0);
}

static bool is_closed(void)
{
    return rf_listener_is_closed(listener);
}

static void teardown(void)
{
    flood_stop(flood);
    if (proved != NULL) {
        rf_conn_close(proved);
    }
    rf_listener_close(listener);
    ends_run_until(is_closed);
    rf_listener_destroy(listener);
    ends_teardown();
    logged_end();
}

/* --- Identities ----------------------------------------------------------- */

static bool is_proved(void)
{
    return n_proofs > 0;
}

static bool has_ended(void)
{
    return n_ends > 0;
}

static bool has_a_frame(void)
{
    return n_frames > 0;
}

LIMIT(30)
FIXTURE(setup, teardown)

TEST(test_listener_passes_on_what_a_node_says_and_its_end)
{
    listen_with(8, false);
    caller_join(&ends_left, &invited);
    caller_say_hello(&ends_left, 0);
    ends_run_until(has_a_frame);
    ck_assert_uint_eq(n_proofs, 1);
    rf_conn_close(ends_left.conn);
    ends_run_until(has_ended);
}

TEST(test_listener_uses_an_identity_once)
{
    listen_with(8, false);
    caller_join(&ends_left, &invited);
    ends_run_until(is_proved);
    rf_conn_close(ends_left.conn);
    ends_run_until(has_ended);
    caller_join(&ends_left, &invited);
    ck_assert_uint_eq(ends_left.ready, 0);
    ck_assert_uint_eq(n_proofs, 1);
    ck_assert(was_logged("refused a second connection as a"));
}

TEST(test_listener_lends_an_identity_until_its_node_has_joined)
{
    listen_with(8, true);
    caller_join(&ends_left, &invited);
    ends_run_until(is_proved);
    rf_conn_close(ends_left.conn);
    ends_run_until(has_ended);
    n_proofs = n_ends = 0;
    caller_join(&ends_left, &invited);
    ends_run_until(is_proved);
    rf_listener_settle(listener, 0);
    rf_conn_close(ends_left.conn);
    ends_run_until(has_ended);
    caller_join(&ends_left, &invited);
    ck_assert_uint_eq(ends_left.ready, 0);
}

TEST(test_listener_lends_an_identity_to_one_connection_at_a_time)
{
    listen_with(8, true);
    caller_join(&ends_left, &invited);
    ends_run_until(is_proved);
    caller_join(&ends_right, &invited);
    ck_assert_uint_eq(ends_right.ready, 0);
    ck_assert_uint_eq(n_proofs, 1);
    ck_assert_uint_eq(ends_left.closes, 0);
}

LOOP_TEST(test_listener_refuses_a_wrong_key_and_unknown_names, 2)
{
    listen_with(8, false);
    if (_i == 0) {
        invited.psk[0]++;
    } else {
        strcpy(invited.identity, "run/1");
    }
    caller_join(&ends_left, &invited);
    ck_assert_uint_eq(ends_left.ready, 0);
    ck_assert_uint_eq(n_proofs, 0);
    ck_assert(was_logged("refused a connection from 127.0.0.1"));
}

static int watched = -1, second_fd = -1;

static bool has_an_answer(void)
{
    return caller_has_answer(watched);
}

static bool a_claim_was_refused(void)
{
    return was_logged("; 1 so far");
}

TEST(test_listener_refuses_one_of_two_handshakes_at_once)
{
    struct rf_tls *first, *second;
    listen_with(8, false);
    first = caller_greet(&invited, &second_fd);
    second = caller_greet(&invited, &watched);
    ends_run_until(has_an_answer);
    ends_open(&ends_left, second_fd, first);
    ends_open(&ends_right, watched, second);
    ends_run_until(a_claim_was_refused);
    ck_assert(
        was_logged("refused a connection from 127.0.0.1 (the node is already"));
    ck_assert(was_logged("refused a second connection as a"));
    ck_assert_uint_eq(n_proofs, 1);
}

/* --- Unauthenticated peers ------------------------------------------------ */

static int unauthenticated_peers[80];
static unsigned n_unauthenticated_peers;

static void count_tcp(uv_handle_t *handle, void *data)
{
    unsigned *count = data;
    *count += handle->type == UV_TCP && !uv_is_closing(handle);
}

static unsigned tcp_handles(void)
{
    unsigned count = 0;
    uv_walk(&ends_loop, count_tcp, &count);
    return count;
}

static unsigned wanted;

static bool so_many_handles(void)
{
    return tcp_handles() == wanted;
}

/* Beside the one that listens. */
static void await_handles(unsigned n)
{
    wanted = 1 + n;
    ends_run_until(so_many_handles);
}

/* One that is accepted before the next one comes. */
static void come(const char *from)
{
    unauthenticated_peers[n_unauthenticated_peers++] =
        caller_connect(from, "127.0.0.1", invited.port);
    await_handles(n_unauthenticated_peers);
}

static bool one_was_sent_away(void)
{
    return a_claim_was_refused();
}

TEST(test_listener_closes_the_oldest_unauthenticated_peer_first)
{
    listen_with(3, false);
    for (int i = 0; i < 3; i++) {
        come(NULL);
    }
    unauthenticated_peers[3] = caller_connect(NULL, "127.0.0.1", invited.port);
    ends_run_until(one_was_sent_away);
    ck_assert(was_logged("(dropped unauthenticated, to make room for others)"));
    ck_assert(caller_was_sent_away(unauthenticated_peers[0]));
    for (int i = 1; i < 4; i++) {
        ck_assert(!caller_was_sent_away(unauthenticated_peers[i]));
    }
}

TEST(test_listener_closes_peers_of_the_busiest_address_first)
{
    listen_with(80, false);
    come("127.0.0.9");
    for (int i = 0; i < 64; i++) {
        come(NULL);
    }
    unauthenticated_peers[n_unauthenticated_peers] =
        caller_connect(NULL, "127.0.0.1", invited.port);
    ends_run_until(one_was_sent_away);
    ck_assert(!caller_was_sent_away(unauthenticated_peers[0]));
    ck_assert(caller_was_sent_away(unauthenticated_peers[1]));
    ck_assert(!caller_was_sent_away(unauthenticated_peers[2]));
}

TEST(test_listener_keeps_a_peer_that_has_proved_a_key)
{
    struct rf_tls *tls;
    listen_with(2, false);
    tls = caller_greet(&invited, &watched);
    ends_run_until(has_an_answer);
    n_unauthenticated_peers = 1;
    come(NULL);
    unauthenticated_peers[2] = caller_connect(NULL, "127.0.0.1", invited.port);
    ends_run_until(one_was_sent_away);
    ck_assert(caller_was_sent_away(unauthenticated_peers[1]));
    ends_open(&ends_left, watched, tls);
    ends_run_until(is_proved);
}

TEST(test_listener_has_no_room_where_all_have_proved_a_key)
{
    struct rf_tls *tls;
    listen_with(1, false);
    tls = caller_greet(&invited, &watched);
    ends_run_until(has_an_answer);
    unauthenticated_peers[0] = caller_connect(NULL, "127.0.0.1", invited.port);
    ends_run_until(one_was_sent_away);
    ck_assert(was_logged("(too many unauthenticated connections)"));
    ck_assert(caller_was_sent_away(unauthenticated_peers[0]));
    ends_open(&ends_left, watched, tls);
    ends_run_until(is_proved);
}

TEST(test_listener_closes_who_says_nothing_in_time)
{
    listen_with(8, false);
    come(NULL);
    later_ns = RF_CONN_HANDSHAKE_MS * RF_NS_PER_MS / 2;
    come(NULL);
    rf_listener_tick(listener);
    ck_assert_uint_eq(tcp_handles(), 1 + 2);
    later_ns = RF_CONN_HANDSHAKE_MS * RF_NS_PER_MS;
    rf_listener_tick(listener);
    await_handles(1);
    ck_assert(was_logged("(it sent nothing); 1 so far"));
    ck_assert(caller_was_sent_away(unauthenticated_peers[0]));
    ck_assert(!caller_was_sent_away(unauthenticated_peers[1]));
}

TEST(test_listener_keeps_nodes_when_it_closes)
{
    listen_with(8, false);
    caller_join(&ends_left, &invited);
    ends_run_until(is_proved);
    wanted = 1 + 1 + 1;
    unauthenticated_peers[0] = caller_connect(NULL, "127.0.0.1", invited.port);
    ends_run_until(so_many_handles);
    rf_listener_close(listener);
    wanted = 1; /* the node's */
    ends_run_until(so_many_handles);
    ck_assert(was_logged("(no further nodes are expected)"));
    caller_say_hello(&ends_left, 0);
    ends_run_until(has_a_frame);
    ck_assert(!rf_listener_is_closed(listener));
}

/* --- No descriptors ------------------------------------------------------- */

static bool gave_up(void)
{
    return was_logged("cannot accept connections on 127.0.0.1 port");
}

TEST(test_listener_closes_a_port_without_descriptors_for_connections)
{
    struct rlimit limit;
    listen_with(8, false);
    unauthenticated_peers[0] = caller_connect(NULL, "127.0.0.1", invited.port);
    limit = descriptors_run_out(&ends_loop);
    ends_run_until(gave_up);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(tcp_handles(), 0);
}

/* --- Floods --------------------------------------------------------------- */

static unsigned long flood_wanted;

static bool flood_goes_on(void)
{
    return flood_count(flood) >= flood_wanted;
}

static void await_flood(unsigned long more)
{
    flood_wanted = flood_count(flood) + more;
    ends_run_until(flood_goes_on);
}

LOOP_TEST(test_listener_lets_a_node_in_while_its_address_floods, 3)
{
    static const char half_a_hello[] =
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    static const struct {
        const char *says;
        size_t size;
    } kinds[] = {{"", 0}, {"GET / HTTP/1.0\r\n\r\n", 18}, {half_a_hello, 11}};
    listen_with(128, false);
    /* More than there is room for, fewer than any kernel queues. */
    flood = flood_start(invited.port, 120, kinds[_i].says, kinds[_i].size);
    await_flood(1000);
    caller_join(&ends_left, &invited);
    ck_assert_uint_eq(ends_left.ready, 1);
    ends_run_until(is_proved);
    await_flood(1); /* not because it was over */
}

TEST(test_listener_accepts_a_few_in_a_turn_of_the_loop)
{
    listen_with(128, false);
    caller_connect_silently(60, invited.port);
    ck_assert_uint_eq(tcp_handles(), 1); /* that listens */
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    ck_assert_uint_lt(tcp_handles(), 30);
    await_handles(60);
}

static bool many_were_refused(void)
{
    return was_logged("; 64 so far");
}

/* As control.address "auto" has one for each interface. */
TEST(test_listener_shares_what_a_turn_accepts_among_its_ports)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.2",
                                            "127.0.0.3", "127.0.0.4"};
    struct rf_tls *tls;
    listen_with(128, false);
    tls = caller_greet(&invited, &watched);
    for (size_t a = 0; a < RF_ARRAY_SIZE(addresses); a++) {
        unsigned port = rf_listener_open(listener, addresses[a]);
        for (int i = 0; i < 60; i++) {
            (void)caller_connect(NULL, addresses[a], port);
        }
    }
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    ck_assert_uint_lt(tcp_handles(), 4 + 30);
    ends_run_until(many_were_refused);
    ends_open(&ends_left, watched, tls);
    ends_run_until(is_proved);
}

TEST(test_listener_opens_an_address_once)
{
    AUTO_FREE char *all;
    char expected[64];
    listen_with(8, false);
    ck_assert_uint_eq(rf_listener_open(listener, "127.0.0.1"), invited.port);
    all = rf_listener_open_all(listener);
    snprintf(expected, sizeof(expected), "127.0.0.1:%u", invited.port);
    ck_assert_str_eq(all, expected);
}

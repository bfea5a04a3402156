/* Trying the way to another node, over the loopback. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <uv.h>

#include "common/mem.h"
#include "tests/lib/callers.h"
#include "tests/lib/descriptors.h"
#include "tests/unit/unit.h"
#include "worker/agent/reach.h"

static const uint8_t key[RF_PSK_BYTES] = {1, 2, 3};
static const uint8_t other_key[RF_PSK_BYTES] = {4};
/* Nothing that must arrive is near them. */
static const struct rf_reach_limits limits = {30000, 30000};

static uv_loop_t loop;
static char *answers[4]; /* "": reached */
static size_t n_answers;

static void done_cb(const struct rf_msg *message, void *data)
{
    const struct rf_msg_reached *reached = &message->reached;
    struct rf_reach **ends = data;
    for (size_t i = 0; i < reached->n_peers; i++) {
        const char *error = reached->peers[i].error;
        answers[n_answers++] = rf_xstrdup(error != NULL ? error : "");
    }
    rf_reach_end(ends[0]);
    rf_reach_end(ends[1]);
}

static void start(void)
{
    uv_loop_init(&loop);
    n_answers = 0;
}

static void finish(void)
{
    for (size_t i = 0; i < n_answers; i++) {
        free(answers[i]);
    }
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* A listener that has no word for anybody. */
static void ignore_cb(uv_stream_t *listener, int status)
{
    (void)listener;
    (void)status;
}

static uint32_t listen_mute(uv_tcp_t *listener, uv_connection_cb accept_cb)
{
    struct sockaddr_in address;
    int size = sizeof(address);
    uv_tcp_init(&loop, listener);
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_bind(listener, (const struct sockaddr *)&address, 0);
    uv_listen((uv_stream_t *)listener, 8, accept_cb);
    uv_tcp_getsockname(listener, (struct sockaddr *)&address, &size);
    return ntohs(address.sin_port);
}

static struct rf_msg_reach_peer peer(uint32_t node, uint32_t port)
{
    static char address[] = "127.0.0.1";
    return (struct rf_msg_reach_peer){node, address, port};
}

/* Node 1 tries node 2 with keys and names that fit or not. */
static const struct {
    const uint8_t *its_key;
    uint32_t its_node;
    const char *says;
} ends[] = {{key, 2, ""}, {other_key, 2, "127.0.0.1:"}, {key, 3, "127.0.0.1:"}};

LOOP_TEST(test_reach_says_who_answers, RF_ARRAY_SIZE(ends))
{
    struct rf_reach *both[2];
    uint32_t port[2];
    start();
    both[0] = rf_reach_listen(&loop, "127.0.0.1", 1, key, limits, &port[0]);
    both[1] = rf_reach_listen(&loop, "127.0.0.1", ends[_i].its_node,
                              ends[_i].its_key, limits, &port[1]);
    ck_assert(both[0] != NULL && both[1] != NULL);
    struct rf_msg_reach_peer peers[] = {peer(2, port[1])};
    const struct rf_msg_reach asked = {.peers = peers, .n_peers = 1};
    ck_assert(rf_reach_try(both[0], &asked, done_cb, both));
    ck_assert(!rf_reach_try(both[0], &asked, done_cb, both));
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(n_answers, 1);
    if (ends[_i].says[0] == '\0') {
        ck_assert_str_eq(answers[0], "");
    } else {
        assert_says(answers[0], ends[_i].says);
    }
    finish();
}

/* Of several peers each has its answer: one is there, one refuses, one does
 * not speak. */
TEST(test_reach_waits_for_all_and_no_longer_than_its_limits)
{
    const struct rf_reach_limits short_limits = {2000, 30000};
    struct rf_reach *both[2];
    uint32_t port[2], mute_port, closed_port;
    uv_tcp_t mute, closed;
    start();
    both[0] =
        rf_reach_listen(&loop, "127.0.0.1", 1, key, short_limits, &port[0]);
    both[1] =
        rf_reach_listen(&loop, "127.0.0.1", 2, key, short_limits, &port[1]);
    mute_port = listen_mute(&mute, ignore_cb);
    closed_port = listen_mute(&closed, ignore_cb);
    uv_close((uv_handle_t *)&closed, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_unref((uv_handle_t *)&mute);
    struct rf_msg_reach_peer peers[] = {peer(2, port[1]), peer(3, closed_port),
                                        peer(4, mute_port)};
    const struct rf_msg_reach asked = {.peers = peers, .n_peers = 3};
    ck_assert(rf_reach_try(both[0], &asked, done_cb, both));
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(n_answers, 3);
    ck_assert_str_eq(answers[0], "");
    assert_says(answers[1], "refused");
    assert_says(answers[2], "no answer in time");
    uv_close((uv_handle_t *)&mute, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    finish();
}

TEST(test_reach_needs_an_address_of_the_node)
{
    static const char *const addresses[] = {"198.51.100.7", "a.example", ""};
    uint32_t port = 0;
    start();
    for (size_t i = 0; i < RF_ARRAY_SIZE(addresses); i++) {
        ck_assert_ptr_null(
            rf_reach_listen(&loop, addresses[i], 1, key, limits, &port));
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    finish();
}

TEST(test_reach_ends_while_it_tries)
{
    struct rf_reach *reach;
    uint32_t port;
    uv_tcp_t mute;
    start();
    reach = rf_reach_listen(&loop, "127.0.0.1", 1, key, limits, &port);
    struct rf_msg_reach_peer peers[] = {peer(2, listen_mute(&mute, ignore_cb))};
    const struct rf_msg_reach asked = {.peers = peers, .n_peers = 1};
    ck_assert(rf_reach_try(reach, &asked, done_cb, NULL));
    uv_run(&loop, UV_RUN_NOWAIT);
    rf_reach_end(reach);
    uv_close((uv_handle_t *)&mute, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(n_answers, 0);
    finish();
}

TEST(test_reach_closes_a_listener_without_descriptors_for_connections)
{
    struct rf_reach *reach;
    struct rlimit limit;
    uint32_t port;
    int guest;
    start();
    reach = rf_reach_listen(&loop, "127.0.0.1", 1, key, limits, &port);
    guest = caller_connect(NULL, "127.0.0.1", port);
    limit = descriptors_run_out(&loop);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert(caller_was_sent_away(guest));
    rf_reach_end(reach);
    uv_run(&loop, UV_RUN_DEFAULT);
    finish();
}

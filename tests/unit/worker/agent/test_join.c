/* Connecting back over TLS, against listeners on the loopback. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include <uv.h>

#include "common/clock.h"
#include "common/mem.h"
#include "tests/unit/unit.h"
#include "worker/agent/join.h"

static char localhost[] = "127.0.0.1", refit_two[] = "refit-two";

static const uint8_t key[RF_PSK_BYTES] = {1, 2, 3};
static const uint8_t other_key[RF_PSK_BYTES] = {4};

static uv_loop_t loop;

/* A coordinator's end: a listener that knows one key. */
struct server {
    uv_tcp_t listener;
    const uint8_t *key;
    unsigned accepted, ready, frames, closed;
    struct rf_conn *conn;
    uint16_t port;
    bool deaf;     /* accepts and says nothing */
    unsigned cuts; /* as many connections are closed as they arrive */
    uv_tcp_t *silent;
};

/* The agent's end. */
static struct {
    struct rf_conn *conn;
    unsigned done, frames, closed;
    char candidate[160], local[64], why[1024];
} agent;

static bool find_psk(const char *identity, uint8_t psk[RF_PSK_BYTES],
                     void *data)
{
    const struct server *server = data;
    memcpy(psk, server->key, RF_PSK_BYTES);
    return strcmp(identity, "run/3") == 0;
}

static void server_ready(struct rf_conn *conn, void *data)
{
    struct server *server = data;
    server->ready++;
    rf_conn_send(conn, RF_MSG_WELCOME, RF_FRAME_NO_RANK,
                 json_pack("{s:i}", "protocol", 1));
}

static void server_frame(struct rf_conn *conn, const struct rf_frame *frame,
                         void *data)
{
    struct server *server = data;
    (void)conn;
    (void)frame;
    server->frames++;
}

static void server_close(struct rf_conn *conn, const struct rf_err *why,
                         void *data)
{
    struct server *server = data;
    (void)conn;
    (void)why;
    server->closed++;
    server->conn = NULL;
}

static const struct rf_conn_ops server_ops = {server_ready, server_frame,
                                              server_close};

static void free_stream(uv_handle_t *handle)
{
    free(handle);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    uv_tcp_t *tcp = rf_xcalloc(1, sizeof(*tcp));
    struct rf_tls *tls;
    struct rf_err err;
    ck_assert_int_eq(status, 0);
    uv_tcp_init(&loop, tcp);
    ck_assert_int_eq(uv_accept(listener, (uv_stream_t *)tcp), 0);
    server->accepted++;
    if (server->accepted <= server->cuts) {
        uv_close((uv_handle_t *)tcp, free_stream);
        return;
    }
    if (server->deaf) {
        server->silent = tcp;
        return;
    }
    assert_ok(rf_tls_server_create(find_psk, server, &tls, &err), err);
    server->conn = rf_conn_open((uv_stream_t *)tcp, tls, &server_ops, server);
}

static void start_server_at(struct server *server, const uint8_t *psk,
                            const char *where)
{
    struct sockaddr_in address;
    int size = sizeof(address);
    memset(server, 0, sizeof(*server));
    server->key = psk;
    uv_tcp_init(&loop, &server->listener);
    server->listener.data = server;
    uv_ip4_addr(where, 0, &address);
    ck_assert_int_eq(
        uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0), 0);
    ck_assert_int_eq(
        uv_listen((uv_stream_t *)&server->listener, 8, on_connection), 0);
    ck_assert_int_eq(uv_tcp_getsockname(&server->listener,
                                        (struct sockaddr *)&address, &size),
                     0);
    server->port = ntohs(address.sin_port);
}

static void start_server(struct server *server, const uint8_t *psk)
{
    start_server_at(server, psk, "127.0.0.1");
}

static void stop_server(struct server *server)
{
    uv_close((uv_handle_t *)&server->listener, NULL);
    if (server->conn != NULL) {
        rf_conn_close(server->conn);
    }
    if (server->silent != NULL) {
        uv_close((uv_handle_t *)server->silent, free_stream);
    }
}

static void agent_ready(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data;
    ck_abort_msg("a joined connection is ready already");
}

static void agent_frame(struct rf_conn *conn, const struct rf_frame *frame,
                        void *data)
{
    (void)data;
    ck_assert_ptr_eq(conn, agent.conn);
    ck_assert_int_eq(frame->type, RF_MSG_WELCOME);
    agent.frames++;
}

static void agent_close(struct rf_conn *conn, const struct rf_err *why,
                        void *data)
{
    (void)why;
    (void)data;
    ck_assert_ptr_eq(conn, agent.conn);
    agent.closed++;
}

static const struct rf_conn_ops agent_ops = {agent_ready, agent_frame,
                                             agent_close};

static void on_done(struct rf_conn *conn, const char *candidate,
                    const char *local, const char *why, void *data)
{
    (void)data;
    agent.done++;
    agent.conn = conn;
    snprintf(agent.candidate, sizeof(agent.candidate), "%s",
             candidate != NULL ? candidate : "");
    snprintf(agent.local, sizeof(agent.local), "%s",
             local != NULL ? local : "");
    snprintf(agent.why, sizeof(agent.why), "%s", why);
}

static void setup(void)
{
    memset(&agent, 0, sizeof(agent));
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
}

static void join(const uint16_t *ports, size_t n, uint32_t total_ms, bool retry)
{
    struct rf_msg_candidate candidates[4];
    for (size_t i = 0; i < n; i++) {
        candidates[i] = (struct rf_msg_candidate){localhost, ports[i]};
    }
    rf_join_start(
        &loop,
        &(struct rf_join_how){candidates, n, "run/3", key, total_ms, retry},
        &agent_ops, on_done, NULL);
}

/* Runs the loop until `*what` is not 0. */
static void run_until(const unsigned *what)
{
    int64_t until = rf_now_ns() + 10 * RF_NS_PER_S;
    while (*what == 0 && rf_now_ns() < until) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    ck_assert_uint_ne(*what, 0);
}

/* Everything must come to an end by itself. */
static void run_out(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

FIXTURE(setup, NULL)
LIMIT(20)

TEST(test_the_second_candidate_is_used_when_the_first_refuses)
{
    struct server server;
    uint16_t ports[2] = {1, 0};
    char wanted[64];
    start_server(&server, key);
    ports[1] = server.port;
    join(ports, 2, 5000, false);
    run_until(&agent.done);
    ck_assert_ptr_nonnull(agent.conn);
    snprintf(wanted, sizeof(wanted), "127.0.0.1:%u", server.port);
    ck_assert_str_eq(agent.candidate, wanted);
    ck_assert_str_eq(agent.local, "127.0.0.1");
    rf_conn_send(agent.conn, RF_MSG_HELLO, RF_FRAME_NO_RANK, json_object());
    run_until(&agent.frames);
    run_until(&server.frames);
    rf_conn_close(agent.conn);
    stop_server(&server);
    run_out();
    ck_assert_uint_eq(agent.closed, 1);
    ck_assert_uint_eq(server.closed, 1);
}

/* Gives "refit-two" two addresses, in a namespace that ends with this process;
 * false where that cannot be had. */
static bool name_two_addresses(void)
{
    static const char hosts[] = "127.0.0.1 refit-two\n127.0.0.2 refit-two\n";
    char path[] = "/tmp/refit-hosts-XXXXXX";
    int fd = mkstemp(path);
    bool done;
    ck_assert_int_eq(write(fd, hosts, sizeof(hosts) - 1),
                     (ssize_t)sizeof(hosts) - 1);
    close(fd);
    done = (unshare(CLONE_NEWNS) == 0 ||
            unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(path, "/etc/hosts", NULL, MS_BIND, NULL) == 0;
    unlink(path);
    return done;
}

/* With and without retry; nobody listens at the address that comes first. */
LOOP_TEST(test_all_addresses_of_a_name_are_tried, 2)
{
    struct server server;
    struct rf_msg_candidate candidate = {refit_two, 0};
    if (!name_two_addresses()) {
        return;
    }
    start_server_at(&server, key, "127.0.0.2");
    candidate.port = server.port;
    rf_join_start(
        &loop, &(struct rf_join_how){&candidate, 1, "run/3", key, 5000, _i > 0},
        &agent_ops, on_done, NULL);
    run_until(&agent.done);
    ck_assert_msg(agent.conn != NULL, "%s", agent.why);
    assert_says(agent.why, "refused");
    rf_conn_close(agent.conn);
    stop_server(&server);
    run_out();
}

TEST(test_an_identity_is_used_on_one_connection_only)
{
    struct server servers[2];
    uint16_t ports[2];
    start_server(&servers[0], key);
    start_server(&servers[1], key);
    ports[0] = servers[0].port;
    ports[1] = servers[1].port;
    join(ports, 2, 5000, false);
    run_until(&agent.done);
    run_until(&agent.frames); /* a server was ready */
    rf_conn_close(agent.conn);
    stop_server(&servers[0]);
    stop_server(&servers[1]);
    run_out();
    ck_assert_uint_eq(servers[0].ready + servers[1].ready, 1);
}

TEST(test_a_wrong_key_fails_with_the_reason)
{
    struct server server;
    start_server(&server, other_key);
    join(&server.port, 1, 5000, false);
    run_until(&agent.done);
    ck_assert_ptr_null(agent.conn);
    assert_says(agent.why, "127.0.0.1:");
    stop_server(&server);
    run_out();
    ck_assert_uint_eq(server.ready, 0);
}

TEST(test_a_silent_address_is_given_up_at_the_deadline)
{
    struct server server;
    int64_t began = rf_now_ns();
    start_server(&server, key);
    server.deaf = true;
    join(&server.port, 1, 400, false);
    run_until(&agent.done);
    ck_assert_ptr_null(agent.conn);
    ck_assert_int_ge(rf_now_ns() - began, 350 * RF_NS_PER_MS);
    ck_assert_int_lt(rf_now_ns() - began, 4 * RF_NS_PER_S);
    stop_server(&server);
    run_out();
}

/* One cut or two are mended, a third is the end. */
LOOP_TEST(test_a_handshake_that_is_cut_is_tried_again, 3)
{
    struct server server;
    start_server(&server, key);
    server.cuts = (unsigned)_i + 1;
    join(&server.port, 1, 60000, false);
    run_until(&agent.done);
    ck_assert_uint_eq(server.accepted, _i < 2 ? server.cuts + 1 : 3);
    assert_says(agent.why, "127.0.0.1:");
    if (_i < 2) {
        ck_assert_msg(agent.conn != NULL, "%s", agent.why);
        rf_conn_close(agent.conn);
    } else {
        ck_assert_ptr_null(agent.conn);
    }
    stop_server(&server);
    run_out();
}

TEST(test_all_refused_ends_before_the_deadline)
{
    uint16_t port = 1;
    int64_t began = rf_now_ns();
    join(&port, 1, 60000, false);
    run_until(&agent.done);
    ck_assert_ptr_null(agent.conn);
    assert_says(agent.why, "refused");
    ck_assert_int_lt(rf_now_ns() - began, 5 * RF_NS_PER_S);
    run_out();
}

TEST(test_with_retry_a_late_listener_is_found)
{
    struct server server;
    uint16_t port;
    int64_t until = rf_now_ns() + 700 * RF_NS_PER_MS;
    start_server(&server, key);
    port = server.port;
    stop_server(&server);
    uv_run(&loop, UV_RUN_DEFAULT);
    join(&port, 1, 20000, true);
    while (rf_now_ns() < until) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    ck_assert_uint_eq(agent.done, 0);
    {
        /* The same port again: nobody else has it on this loopback. */
        struct sockaddr_in address;
        memset(&server, 0, sizeof(server));
        server.key = key;
        uv_tcp_init(&loop, &server.listener);
        server.listener.data = &server;
        uv_ip4_addr("127.0.0.1", port, &address);
        ck_assert_int_eq(
            uv_tcp_bind(&server.listener, (struct sockaddr *)&address, 0), 0);
        ck_assert_int_eq(
            uv_listen((uv_stream_t *)&server.listener, 8, on_connection), 0);
    }
    run_until(&agent.done);
    ck_assert_ptr_nonnull(agent.conn);
    rf_conn_close(agent.conn);
    stop_server(&server);
    run_out();
}

TEST(test_with_retry_no_candidate_keeps_others_from_being_tried)
{
    struct server server;
    uint16_t ports[3] = {1, 1, 0}; /* two that refuse at once */
    start_server(&server, key);
    ports[2] = server.port;
    join(ports, 3, 20000, true);
    run_until(&agent.done);
    ck_assert_ptr_nonnull(agent.conn);
    rf_conn_close(agent.conn);
    stop_server(&server);
    run_out();
}

TEST(test_cancelling_calls_nobody)
{
    struct server server;
    struct rf_msg_candidate candidate = {localhost, 0};
    struct rf_join *join_object;
    start_server(&server, key);
    server.deaf = true;
    candidate.port = server.port;
    join_object = rf_join_start(
        &loop, &(struct rf_join_how){&candidate, 1, "run/3", key, 60000, false},
        &agent_ops, on_done, NULL);
    run_until(&server.accepted);
    rf_join_cancel(join_object);
    stop_server(&server);
    run_out();
    ck_assert_uint_eq(agent.done, 0);
}

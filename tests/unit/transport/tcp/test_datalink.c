/* Data connections: who gets in and who does not. Ranks are threads here. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "tests/unit/unit.h"
#include "transport/tcp/datalink.h"

struct side {
    struct rf_datalink_how how;
    struct rf_datalink_end ends[4];
    uint32_t n_ends;
    int listener;
    enum rf_status status;
    struct rf_err err;
    pthread_t thread;
};

static const uint8_t key[RF_DATA_KEY_BYTES] = {1, 2, 3};
static const uint8_t other_key[RF_DATA_KEY_BYTES] = {1, 2, 4};
static atomic_bool aborted;

static struct side new_side(uint32_t rank, const uint8_t *data_key)
{
    return (struct side){
        .how = {.key = data_key,
                .rank = rank,
                .purpose = RF_DATALINK_OPS,
                .deadline_ns = rf_now_ns() + 10 * RF_NS_PER_S,
                .abort = &aborted},
        .listener = -1,
    };
}

static void want(struct side *side, uint32_t from, uint32_t to, uint16_t port)
{
    side->ends[side->n_ends++] = (struct rf_datalink_end){
        .from = from, .to = to, .address = "127.0.0.1", .port = port};
}

static void *run_join(void *data)
{
    struct side *side = data;
    side->status = rf_datalink_join(&side->how, side->listener, side->ends,
                                    side->n_ends, &side->err);
    return NULL;
}

static void join_both(struct side *a, struct side *b)
{
    pthread_create(&a->thread, NULL, run_join, a);
    run_join(b);
    pthread_join(a->thread, NULL);
}

static uint16_t listen_on(struct side *side)
{
    uint16_t port = 0;
    assert_ok(rf_datalink_listen(&side->how, "127.0.0.1", &side->listener,
                                 &port, &side->err),
              side->err);
    ck_assert_uint_ne(port, 0);
    return port;
}

static void assert_carries(int from, int to, const char *text)
{
    char got[32] = {0};
    size_t n = strlen(text), used = 0;
    ck_assert_int_eq(send(from, text, n, 0), (ssize_t)n);
    while (used < n) {
        ssize_t more = recv(to, got + used, n - used, 0);
        ck_assert(more != 0);
        used += more > 0 ? (size_t)more : 0;
    }
    ck_assert_str_eq(got, text);
}

static void close_side(struct side *side)
{
    for (uint32_t i = 0; i < side->n_ends; i++) {
        if (side->ends[i].fd >= 0) {
            close(side->ends[i].fd);
        }
    }
    if (side->listener >= 0) {
        close(side->listener);
    }
}

/* Every kernel that allows RF_DATALINK_CONGESTION has it on the connection. */
static void assert_congestion(int fd)
{
    int fresh = socket(AF_INET, SOCK_STREAM, 0);
    bool allowed =
        setsockopt(fresh, IPPROTO_TCP, TCP_CONGESTION, RF_DATALINK_CONGESTION,
                   sizeof(RF_DATALINK_CONGESTION) - 1) == 0;
    char used[16] = ""; /* TCP_CA_NAME_MAX */
    socklen_t size = sizeof(used);
    close(fresh);
    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, used, &size),
                     0);
    ck_assert(!allowed || strcmp(used, RF_DATALINK_CONGESTION) == 0);
}

LIMIT(20)

TEST(test_both_directions_and_several_of_a_pair_meet)
{
    struct side a = new_side(0, key), b = new_side(1, key);
    uint16_t port_a = listen_on(&a), port_b = listen_on(&b);
    want(&a, 0, 1, port_b);
    want(&a, 0, 1, port_b);
    want(&a, 1, 0, port_a);
    want(&b, 1, 0, port_a);
    want(&b, 0, 1, port_b);
    want(&b, 0, 1, port_b);
    join_both(&a, &b);
    assert_ok(a.status, a.err);
    assert_ok(b.status, b.err);
    assert_carries(b.ends[0].fd, a.ends[2].fd, "one way");
    assert_congestion(a.ends[0].fd);
    close_side(&a);
    close_side(&b);
}

/* --- sockets other than TCP's: names of this process, without files -------- */

static struct rf_datalink_place unix_place(uint16_t port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct rf_datalink_place place = {.size = sizeof(name)};
    snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
             "refit test_datalink %d %u", (int)getpid(), (unsigned)port);
    memcpy(&place.to, &name, sizeof(name));
    return place;
}

static enum rf_status unix_locate(const struct rf_datalink_how *how,
                                  const char *address,
                                  struct rf_datalink_place *out,
                                  struct rf_err *err)
{
    (void)how;
    (void)err;
    out->address = address;
    return RF_OK;
}

static int unix_connect(const struct rf_datalink_place *place, uint16_t port)
{
    const struct rf_datalink_place to = unix_place(port);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)place;
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to.to, to.size), 0);
    return fd;
}

static enum rf_status unix_listen(const struct rf_datalink_how *how,
                                  const char *address, int *fd, uint16_t *port,
                                  struct rf_err *err)
{
    const struct rf_datalink_place at = unix_place(1);
    (void)how;
    (void)address;
    (void)err;
    *port = 1;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(*fd, (const struct sockaddr *)&at.to, at.size), 0);
    ck_assert_int_eq(listen(*fd, 4), 0);
    return RF_OK;
}

static void unix_tune(int fd)
{
    (void)fd;
}

TEST(test_a_handshake_needs_no_tcp)
{
    static const struct rf_datalink_sockets sockets = {
        .locate = unix_locate,
        .connect = unix_connect,
        .listen = unix_listen,
        .tune = unix_tune,
    };
    struct side a = new_side(0, key), b = new_side(1, key);
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    a.how.sockets = &sockets;
    b.how.sockets = &sockets;
    want(&a, 0, 1, listen_on(&b));
    want(&b, 0, 1, 0);
    join_both(&a, &b);
    assert_ok(a.status, a.err);
    assert_ok(b.status, b.err);
    ck_assert_int_eq(getpeername(a.ends[0].fd, (struct sockaddr *)&peer, &size),
                     0);
    ck_assert_int_eq(peer.ss_family, AF_UNIX);
    assert_carries(a.ends[0].fd, b.ends[0].fd, "one way");
    close_side(&a);
    close_side(&b);
}

/* poll() takes no more entries than descriptors may be open. */
TEST(test_few_descriptors_are_enough_for_two)
{
    struct rlimit before, few;
    struct side a = new_side(0, key), b = new_side(1, key);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 40;
    want(&a, 0, 1, listen_on(&b));
    want(&b, 0, 1, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    join_both(&a, &b);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_ok(a.status, a.err);
    assert_ok(b.status, b.err);
    close_side(&a);
    close_side(&b);
}

TEST(test_another_key_is_an_authentication_error)
{
    struct side a = new_side(0, other_key), b = new_side(1, key);
    uint16_t port = listen_on(&b);
    want(&a, 0, 1, port);
    want(&b, 0, 1, port);
    b.how.deadline_ns = rf_now_ns() + RF_NS_PER_S / 2;
    join_both(&a, &b);
    ck_assert_int_eq(a.status, RF_ERR_AUTH);
    assert_says(a.err.text, "rank 1");
    ck_assert_int_eq(b.status, RF_ERR_TIMEOUT);
    assert_says(b.err.text, "rank 0");
    assert_says(b.err.text, "1 other connections were refused");
    ck_assert_int_eq(a.ends[0].fd, -1);
    close_side(&a);
    close_side(&b);
}

static int stranger(uint16_t port, const void *says, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)),
                     0);
    if (size > 0) {
        ck_assert_int_eq(send(fd, says, size, 0), (ssize_t)size);
    }
    return fd;
}

TEST(test_strangers_do_not_disturb)
{
    struct side a = new_side(0, key), b = new_side(1, key);
    uint16_t port = listen_on(&b);
    static const char http[64] = "GET / HTTP/1.1\r\nHost: nobody";
    int silent = stranger(port, NULL, 0);
    int loud = stranger(port, http, sizeof(http));
    char byte;
    want(&a, 0, 1, port);
    want(&b, 0, 1, port);
    join_both(&a, &b);
    assert_ok(a.status, a.err);
    assert_ok(b.status, b.err);
    assert_carries(a.ends[0].fd, b.ends[0].fd, "payload");
    ck_assert_int_le(recv(loud, &byte, 1, 0), 0);
    ck_assert_int_le(recv(silent, &byte, 1, 0), 0);
    close(silent);
    close(loud);
    close_side(&a);
    close_side(&b);
}

static void put_u32(uint8_t *out, uint32_t value)
{
    value = htonl(value);
    memcpy(out, &value, sizeof(value));
}

TEST(test_a_late_hello_is_answered)
{
    struct side a = new_side(0, key), b = new_side(1, key);
    uint16_t port = listen_on(&b);
    uint8_t hello[32] = "RFD1", answer[48];
    int late = stranger(port, NULL, 0);
    put_u32(hello + 12, 1); /* from 0 to 1 */
    want(&a, 0, 1, port);
    want(&b, 0, 1, port);
    pthread_create(&b.thread, NULL, run_join, &b);
    rf_sleep_until_ns(rf_now_ns() + 3500 * RF_NS_PER_MS);
    ck_assert_int_eq(send(late, hello, sizeof(hello), MSG_NOSIGNAL),
                     sizeof(hello));
    ck_assert_int_eq(recv(late, answer, sizeof(answer), MSG_WAITALL),
                     sizeof(answer));
    run_join(&a);
    pthread_join(b.thread, NULL);
    assert_ok(a.status, a.err);
    assert_ok(b.status, b.err);
    close(late);
    close_side(&a);
    close_side(&b);
}

TEST(test_many_silent_strangers_neither_keep_out_nor_keep_busy)
{
    struct side a = new_side(0, key), b = new_side(1, key);
    uint16_t port = listen_on(&b);
    int strangers[80];
    clock_t began;
    int64_t began_ns;
    for (size_t i = 0; i < RF_ARRAY_SIZE(strangers); i++) {
        strangers[i] = stranger(port, NULL, 0);
    }
    want(&a, 0, 1, port);
    want(&b, 0, 1, port);
    began = clock();
    began_ns = rf_now_ns();
    join_both(&a, &b);
    /* Some seconds for a place to become free, most of them asleep. */
    ck_assert_double_lt((double)(clock() - began) / CLOCKS_PER_SEC,
                        (double)(rf_now_ns() - began_ns) / 1e9 / 3);
    assert_ok(a.status, a.err);
    assert_ok(b.status, b.err);
    for (size_t i = 0; i < RF_ARRAY_SIZE(strangers); i++) {
        close(strangers[i]);
    }
    close_side(&a);
    close_side(&b);
}

TEST(test_a_rank_that_does_not_come_is_named_at_the_deadline)
{
    struct side b = new_side(1, key);
    uint16_t port = listen_on(&b);
    want(&b, 7, 1, port);
    b.how.deadline_ns = rf_now_ns() + RF_NS_PER_S / 10;
    run_join(&b);
    ck_assert_int_eq(b.status, RF_ERR_TIMEOUT);
    assert_says(b.err.text, "rank 7");
    close_side(&b);
}

TEST(test_abort_ends_the_wait)
{
    struct side b = new_side(1, key);
    uint16_t port = listen_on(&b);
    want(&b, 0, 1, port);
    atomic_store(&aborted, true);
    run_join(&b);
    ck_assert_int_eq(b.status, RF_ERR_ABORTED);
    close_side(&b);
}

TEST(test_nobody_listening_is_a_lost_peer)
{
    struct side a = new_side(0, key), gone = new_side(1, key);
    uint16_t port = listen_on(&gone);
    close(gone.listener);
    want(&a, 0, 1, port);
    run_join(&a);
    ck_assert_int_eq(a.status, RF_ERR_PEER);
    assert_says(a.err.text, "rank 1");
    assert_says(a.err.text, "firewall");
}

TEST(test_too_few_descriptors_are_no_firewall)
{
    struct rlimit before, few;
    struct side a = new_side(0, key), b = new_side(1, key);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    want(&a, 0, 1, listen_on(&b));
    few = before;
    few.rlim_cur = (rlim_t)b.listener + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    run_join(&a);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(a.status, RF_ERR_PEER);
    assert_says(a.err.text, "rank 1");
    assert_says(a.err.text, "`ulimit -n`");
    ck_assert_ptr_null(strstr(a.err.text, "firewall"));
    close_side(&b);
}

TEST(test_a_foreign_address_cannot_be_listened_on)
{
    const struct side side = new_side(0, key);
    struct rf_err err;
    uint16_t port;
    int fd = -1;
    assert_fails(rf_datalink_listen(&side.how, "192.0.2.1", &fd, &port, &err),
                 RF_ERR_IO, err, "192.0.2.1");
    ck_assert_int_eq(fd, -1);
}

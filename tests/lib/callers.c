/* Agents that connect back. See callers.h. */
#include "tests/lib/callers.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/mem.h"
#include "transport/control/message_fields.h"

int caller_connect(const char *from, const char *to, unsigned port)
{
    struct sockaddr_in there = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = inet_addr(to)};
    struct sockaddr_in here = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    if (from != NULL) {
        here.sin_addr.s_addr = inet_addr(from);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    }
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
    return fd;
}

void caller_connect_silently(unsigned n, unsigned port)
{
    while (n-- > 0) {
        (void)caller_connect(NULL, "127.0.0.1", port);
    }
}

struct rf_tls *caller_greet(const struct invitation *invited, int *fd)
{
    struct rf_tls *tls = NULL;
    char hello[4096];
    bool done;
    size_t size;
    *fd = caller_connect(NULL, "127.0.0.1", invited->port);
    ck_assert_int_eq(
        rf_tls_client_create(invited->identity, invited->psk, &tls, NULL),
        RF_OK);
    ck_assert_int_eq(rf_tls_handshake(tls, &done, NULL), RF_OK);
    size = rf_tls_drain(tls, hello, sizeof(hello));
    ck_assert_int_eq(send(*fd, hello, size, 0), (ssize_t)size);
    return tls;
}

bool caller_has_answer(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool caller_was_sent_away(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

static const struct conn_end *joining;

static bool was_decided(void)
{
    return joining->ready > 0 || joining->closes > 0;
}

void caller_join(struct conn_end *end, const struct invitation *invited)
{
    struct rf_tls *tls = NULL;
    memset(end, 0, sizeof(*end));
    ck_assert_int_eq(
        rf_tls_client_create(invited->identity, invited->psk, &tls, NULL),
        RF_OK);
    ends_open(end, caller_connect(NULL, "127.0.0.1", invited->port), tls);
    joining = end;
    ends_run_until(was_decided);
}

void caller_say_hello(struct conn_end *end, uint32_t node)
{
    struct rf_msg message;
    struct rf_msg_hello *hello = &message.hello;
    rf_msg_init(&message, RF_MSG_HELLO);
    hello->protocol.n = 2;
    hello->protocol.list = rf_xcalloc(2, sizeof(*hello->protocol.list));
    hello->protocol.list[0] = RF_PROTOCOL_MIN;
    hello->protocol.list[1] = RF_PROTOCOL_MAX;
    hello->node = node;
    hello->control = rf_xstrdup("tcp");
    hello->version = rf_xstrdup("test");
    hello->pid = CALLER_PID;
    hello->start_ticks = CALLER_START_TICKS;
    rf_conn_send(end->conn, RF_MSG_HELLO, RF_FRAME_NO_RANK,
                 rf_msg_json(&message));
    rf_msg_free(&message);
}

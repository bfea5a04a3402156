#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "transport/control/message_types.h"
#include "transport/net/tcp_options.h"

#define RTO_MAX_MS 44 /* TCP_RTO_MAX_MS, which headers may lack */

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);
    ck_assert_int_eq(getsockopt(fd, level, option, &value, &size), 0);
    return value;
}

/* An outage that a lease survives must not end the connection. */
TEST(test_tcp_outlives_a_lease)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rf_tcp_tune_control(fd);
    ck_assert_int_eq(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_gt(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT),
                     RF_LEASE_DEAD_MS);
    close(fd);
}

TEST(test_tcp_idle_outlives_a_lease)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), seconds;
    rf_tcp_options_tune(fd);
    seconds = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
              option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL) *
                  option_of(fd, IPPROTO_TCP, TCP_KEEPCNT);
    ck_assert_int_eq(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_gt(seconds * 1000, RF_LEASE_DEAD_MS);
    /* A receiver may have no room for longer than that. */
    ck_assert_int_eq(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    close(fd);
}

/* Attempts a second apart: as many as a lease has seconds, and more. */
TEST(test_tcp_connecting_outlives_a_lease)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), attempts;
    rf_tcp_options_tune(fd);
    attempts = option_of(fd, IPPROTO_TCP, TCP_SYNCNT);
    if (getsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &(int){0},
                   &(socklen_t){sizeof(int)}) == 0) {
        ck_assert_int_gt(attempts, RF_LEASE_DEAD_MS / 1000);
    }
    close(fd);
}

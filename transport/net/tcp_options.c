/*
 * TCP sockets. See tcp_options.h.
 *
 * Leases decide which peers are dead. The kernel only has to detect peers
 * without a lease, and must not give up a connection before a lease does. By
 * default the pauses between retransmissions double: after an outage of 9 s the
 * next one may come after the lease has run out.
 */
#include "transport/net/tcp_options.h"

#include <stdbool.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "transport/net/lease_times.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15; older kernels refuse it */
#endif

#define IDLE_S 5
#define INTERVAL_S 2
#define RESEND_MS 1000
#define GIVEN_UP_MS (RF_LEASE_DEAD_MS + 5000)

static bool set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

void rf_tcp_options_tune(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT,
        (GIVEN_UP_MS / 1000 - IDLE_S) / INTERVAL_S + 1);
    if (set(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, RESEND_MS)) {
        /* The kernel counts connect attempts, which now come faster. */
        set(fd, IPPROTO_TCP, TCP_SYNCNT, GIVEN_UP_MS / RESEND_MS);
    }
}

void rf_tcp_tune_control(int fd)
{
    rf_tcp_options_tune(fd);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, GIVEN_UP_MS);
}

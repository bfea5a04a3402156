/*
 * The TCP sockets of data connections: addresses, options and listeners. The
 * handshake is in datalink.c. See datalink.h.
 */
#include "transport/tcp/datalink.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/fd.h"
#include "transport/net/resolve.h"
#include "transport/net/tcp_options.h"

/* No explicit buffer sizes: they would turn off the kernel's tuning. */
static void tune(int fd)
{
    rf_tcp_options_tune(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, RF_DATALINK_CONGESTION,
               sizeof(RF_DATALINK_CONGESTION) - 1);
}

/* sockaddr_storage by its families, without breaking aliasing rules. */
union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_storage all;
};

static enum rf_status locate_tcp(const struct rf_datalink_how *how,
                                 const char *address,
                                 struct rf_datalink_place *out,
                                 struct rf_err *err)
{
    struct addrinfo *info;
    enum rf_status status =
        rf_resolve(address, how->abort, how->deadline_ns, &info, err);
    if (status == RF_OK) {
        out->address = address;
        out->size = RF_MIN(info->ai_addrlen, (socklen_t)sizeof(out->to));
        memcpy(&out->to, info->ai_addr, out->size);
        freeaddrinfo(info);
    }
    return status;
}

static int connect_tcp(const struct rf_datalink_place *place, uint16_t port)
{
    union address to = {.all = place->to};
    int fd = socket(place->to.ss_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    tune(fd);
    if (to.any.sa_family == AF_INET6) {
        to.in6.sin6_port = htons(port);
    } else {
        to.in.sin_port = htons(port);
    }
    if (connect(fd, &to.any, place->size) != 0 && errno != EINPROGRESS) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static uint16_t port_of(int fd)
{
    union address address;
    socklen_t size = sizeof(address);
    memset(&address, 0, sizeof(address));
    if (getsockname(fd, &address.any, &size) != 0) {
        return 0;
    }
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
                                                   : address.in.sin_port);
}

static enum rf_status listen_tcp(const struct rf_datalink_how *how,
                                 const char *address, int *fd_out,
                                 uint16_t *port, struct rf_err *err)
{
    struct addrinfo *info;
    enum rf_status status =
        rf_resolve(address, how->abort, how->deadline_ns, &info, err);
    int fd;
    if (status != RF_OK) {
        return status;
    }
    fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        tune(fd);
    }
    if (fd < 0 || bind(fd, info->ai_addr, info->ai_addrlen) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        status = rf_err_errno(
            err, RF_ERR_IO, errno,
            "listen for data on %s (an address of this node?)", address);
        rf_fd_close(&fd);
    } else {
        *fd_out = fd;
        *port = port_of(fd);
    }
    freeaddrinfo(info);
    return status;
}

const struct rf_datalink_sockets rf_datalink_tcp = {
    .locate = locate_tcp,
    .connect = connect_tcp,
    .listen = listen_tcp,
    .tune = tune,
};

/*
 * Passing descriptors. See fd_passing.h.
 *
 * All ranks send and receive at once, so no rank may block in a send while its
 * own queue fills: sockets do not block, and a send to a full queue is tried
 * again. Datagrams from strangers are dropped with their descriptors.
 */
#include "cuda/ipc/fd_passing.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"

#define MAGIC 0x52464450u
#define POLL_MS 1

struct note {
    uint32_t magic, tag;
};

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

enum rf_status rf_fd_passing_open(int *out, struct rf_fd_passing_name *name,
                                  struct rf_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(address);
    const int on = 1;
    const int fd =
        socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return rf_err_set(err, RF_ERR_IO, "socket: %s", strerror(errno));
    }
    /* If no name is bound, the kernel picks an abstract one. */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        rf_err_set(err, RF_ERR_IO, "Unix socket: %s", strerror(errno));
        close(fd);
        return RF_ERR_IO;
    }
    length -= (socklen_t)offsetof(struct sockaddr_un, sun_path);
    if (length > sizeof(name->bytes)) {
        close(fd);
        return rf_err_set(err, RF_ERR_INTERNAL, "socket name of %u bytes",
                          (unsigned)length);
    }
    memset(name, 0, sizeof(*name));
    name->length = (uint8_t)length;
    memcpy(name->bytes, address.sun_path, length);
    *out = fd;
    return RF_OK;
}

/* RF_OK with *sent false: the receiver's queue is full. */
static enum rf_status send_one(int fd, const struct rf_fd_passing_send *what,
                               bool *sent, struct rf_err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct note note = {.magic = MAGIC, .tag = what->tag};
    struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
    union control control;
    struct msghdr message = {
        .msg_name = &to,
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(sizeof(int)),
    };
    struct cmsghdr *header;
    const size_t length = what->to.length <= sizeof(what->to.bytes)
                              ? what->to.length
                              : sizeof(what->to.bytes);
    memset(&control, 0, sizeof(control));
    memcpy(to.sun_path, what->to.bytes, length);
    message.msg_namelen =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &what->fd, sizeof(int));
    *sent = sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
    if (*sent || errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
        errno == ETOOMANYREFS) {
        return RF_OK;
    }
    return rf_err_set(
        err, errno == ECONNREFUSED || errno == ENOENT ? RF_ERR_PEER : RF_ERR_IO,
        "sending a memory descriptor to rank %u: %s", what->rank,
        strerror(errno));
}

/* Parses a datagram: its descriptor (-1: none) and its sender. */
static bool receive(int fd, struct note *note, int *got, struct ucred *from)
{
    struct iovec part = {.iov_base = note, .iov_len = sizeof(*note)};
    union control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (n < 0) {
        return false;
    }
    *got = -1;
    memset(from, 0, sizeof(*from));
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level == SOL_SOCKET &&
            header->cmsg_type == SCM_RIGHTS) {
            memcpy(got, CMSG_DATA(header), sizeof(int));
        } else if (header->cmsg_level == SOL_SOCKET &&
                   header->cmsg_type == SCM_CREDENTIALS) {
            memcpy(from, CMSG_DATA(header), sizeof(*from));
        }
    }
    if (n != (ssize_t)sizeof(*note)) {
        note->magic = 0;
    }
    return true;
}

/* Receives all pending datagrams; returns the number of open `wants`. */
static size_t receive_all(int fd, struct rf_fd_passing_want *wants, size_t n)
{
    struct note note;
    struct ucred from;
    size_t open = 0;
    int got;
    while (receive(fd, &note, &got, &from)) {
        for (size_t i = 0; i < n && got >= 0; i++) {
            struct rf_fd_passing_want *want = &wants[i];
            if (note.magic == MAGIC && from.pid == want->pid &&
                from.uid == geteuid() && note.tag == want->tag &&
                want->fd < 0) {
                want->fd = got;
                got = -1;
            }
        }
        rf_fd_close(&got);
    }
    for (size_t i = 0; i < n; i++) {
        open += wants[i].fd < 0;
    }
    return open;
}

static enum rf_status too_late(const struct rf_fd_passing *pass,
                               struct rf_err *err)
{
    for (size_t i = 0; i < pass->n_wants; i++) {
        if (pass->wants[i].fd < 0) {
            return rf_err_set(err, RF_ERR_TIMEOUT,
                              "no memory descriptor from rank %u",
                              pass->wants[i].rank);
        }
    }
    return rf_err_set(err, RF_ERR_TIMEOUT,
                      "memory descriptors could not be sent in time");
}

enum rf_status rf_fd_passing_run(const struct rf_fd_passing *pass,
                                 struct rf_err *err)
{
    const int fd = pass->socket;
    size_t sent = 0;
    while (receive_all(fd, pass->wants, pass->n_wants) > 0 ||
           sent < pass->n_sends) {
        struct pollfd look = {.fd = fd, .events = POLLIN};
        bool good = true;
        while (sent < pass->n_sends && good) {
            RF_TRY(send_one(fd, &pass->sends[sent], &good, err));
            sent += good;
        }
        if (atomic_load(pass->abort)) {
            return rf_err_set(err, RF_ERR_ABORTED, "aborted");
        }
        if (rf_now_ns() > pass->deadline_ns) {
            return too_late(pass, err);
        }
        (void)poll(&look, 1, POLL_MS);
    }
    return RF_OK;
}

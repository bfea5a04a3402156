/*
 * The table of system calls. See system_calls.h.
 *
 * Calls that make a descriptor make one here, so that limits show, too. Calls
 * that use one get -1: the kernel answers EBADF if it allows the call.
 * tests/integration/t0462-refused-calls.sh reads the names from the table and
 * has each of them refused.
 */
#include "common/system_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/compiler.h"

/* For calls that return a descriptor. */
static bool made(int fd)
{
    return fd >= 0 && close(fd) == 0;
}

/* For calls on descriptor -1. */
static bool let_through(ssize_t result)
{
    return result >= 0 || errno == EBADF;
}

static bool try_ioctl(void)
{
    return let_through(ioctl(-1, FIONBIO, NULL));
}

static bool try_writev(void)
{
    const struct iovec nothing = {.iov_base = NULL};
    return let_through(writev(-1, &nothing, 1));
}

static bool try_epoll_create1(void)
{
    return made(epoll_create1(EPOLL_CLOEXEC));
}

static bool try_epoll_ctl(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    return let_through(epoll_ctl(-1, EPOLL_CTL_ADD, -1, &event));
}

static bool try_epoll_wait(void)
{
    struct epoll_event event;
    return let_through(epoll_wait(-1, &event, 1, 0));
}

static bool try_eventfd2(void)
{
    return made(eventfd(0, EFD_CLOEXEC));
}

static bool try_pipe2(void)
{
    int pipes[2];
    return pipe2(pipes, O_CLOEXEC) == 0 && close(pipes[0]) == 0 &&
           close(pipes[1]) == 0;
}

static bool try_memfd_create(void)
{
    return made(memfd_create("refit-probe", MFD_CLOEXEC));
}

/* On a file, whose growth a limit may forbid. */
static bool try_ftruncate(void)
{
    const int fd = memfd_create("refit-probe", MFD_CLOEXEC);
    const bool done = fd >= 0 && ftruncate(fd, 1) == 0;
    const int why = errno;
    (void)made(fd);
    errno = why;
    return done;
}

/* EAGAIN early in a boot. */
static bool try_getrandom(void)
{
    char byte;
    return getrandom(&byte, sizeof(byte), GRND_NONBLOCK) == 1 ||
           errno == EAGAIN;
}

static bool try_poll(void)
{
    return let_through(poll(NULL, 0, 0));
}

static bool try_socket(void)
{
    return made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static bool try_getsockopt(void)
{
    return let_through(getsockopt(-1, SOL_SOCKET, SO_ERROR, NULL, NULL));
}

static bool try_setsockopt(void)
{
    return let_through(setsockopt(-1, SOL_SOCKET, SO_KEEPALIVE, NULL, 0));
}

static bool try_bind(void)
{
    return let_through(bind(-1, NULL, 0));
}

static bool try_getsockname(void)
{
    return let_through(getsockname(-1, NULL, NULL));
}

static bool try_getpeername(void)
{
    return let_through(getpeername(-1, NULL, NULL));
}

static bool try_listen(void)
{
    return let_through(listen(-1, 1));
}

static bool try_connect(void)
{
    return let_through(connect(-1, NULL, 0));
}

static bool try_accept(void)
{
    return let_through(accept(-1, NULL, NULL));
}

static bool try_accept4(void)
{
    return let_through(accept4(-1, NULL, NULL, SOCK_CLOEXEC));
}

static bool try_sendto(void)
{
    return let_through(send(-1, NULL, 0, MSG_NOSIGNAL));
}

static bool try_recvfrom(void)
{
    return let_through(recv(-1, NULL, 0, 0));
}

static bool try_sendmsg(void)
{
    const struct msghdr nothing = {.msg_iov = NULL};
    return let_through(sendmsg(-1, &nothing, MSG_NOSIGNAL));
}

static bool try_recvmsg(void)
{
    struct msghdr nothing = {.msg_iov = NULL};
    return let_through(recvmsg(-1, &nothing, 0));
}

static bool try_timerfd_settime(void)
{
    const struct itimerspec never = {.it_value = {0, 0}};
    return let_through(timerfd_settime(-1, 0, &never, NULL));
}

static bool try_getdents64(void)
{
    char entries[1];
    return let_through(getdents64(-1, entries, sizeof(entries)));
}

static bool try_lseek(void)
{
    return let_through(lseek(-1, 0, SEEK_SET));
}

/* For a file that does not exist. */
static bool is_absent(int result)
{
    return result == 0 || errno == ENOENT;
}

static bool try_access(void)
{
    return is_absent(access("", F_OK));
}

static bool try_unlink(void)
{
    return is_absent(unlink(""));
}

static bool try_pwrite64(void)
{
    return let_through(pwrite(-1, "", 1, 0));
}

static bool try_fdatasync(void)
{
    return let_through(fdatasync(-1));
}

static const struct call {
    const char *name;
    unsigned of;
    bool (*works)(void); /* false: errno says why */
} calls[] = {
    {"ioctl", RF_CALLS_OF_LOOP, try_ioctl},
    {"writev", RF_CALLS_OF_LOOP, try_writev},
    {"epoll_create1", RF_CALLS_OF_LOOP, try_epoll_create1},
    {"epoll_ctl", RF_CALLS_OF_LOOP, try_epoll_ctl},
    {"epoll_wait", RF_CALLS_OF_LOOP, try_epoll_wait},
    {"eventfd2", RF_CALLS_OF_LOOP, try_eventfd2},
    {"pipe2", RF_CALLS_OF_LOOP, try_pipe2},
    {"memfd_create", RF_CALLS_OF_NODE, try_memfd_create},
    {"ftruncate", RF_CALLS_OF_NODE, try_ftruncate},
    {"getrandom", RF_CALLS_OF_TCP, try_getrandom},
    {"poll", RF_CALLS_OF_TCP, try_poll},
    {"socket", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX | RF_CALLS_OF_IPC, try_socket},
    {"getsockopt", RF_CALLS_OF_TCP, try_getsockopt},
    {"setsockopt", RF_CALLS_OF_UCX | RF_CALLS_OF_IPC, try_setsockopt},
    {"bind", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX | RF_CALLS_OF_IPC, try_bind},
    {"getsockname", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX | RF_CALLS_OF_IPC,
     try_getsockname},
    {"getpeername", RF_CALLS_OF_UCX, try_getpeername},
    {"listen", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX, try_listen},
    {"connect", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX, try_connect},
    {"accept", RF_CALLS_OF_UCX, try_accept},
    {"accept4", RF_CALLS_OF_TCP, try_accept4},
    {"sendto", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX, try_sendto},
    {"recvfrom", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX, try_recvfrom},
    {"sendmsg", RF_CALLS_OF_TCP | RF_CALLS_OF_UCX | RF_CALLS_OF_IPC,
     try_sendmsg},
    {"recvmsg", RF_CALLS_OF_UCX | RF_CALLS_OF_IPC, try_recvmsg},
    {"timerfd_settime", RF_CALLS_OF_UCX, try_timerfd_settime},
    {"getdents64", RF_CALLS_OF_UCX, try_getdents64},
    {"lseek", RF_CALLS_OF_UCX, try_lseek},
    {"access", RF_CALLS_OF_DISK, try_access},
    {"unlink", RF_CALLS_OF_DISK | RF_CALLS_OF_UCX, try_unlink},
    {"pwrite64", RF_CALLS_OF_DISK, try_pwrite64},
    {"fdatasync", RF_CALLS_OF_DISK, try_fdatasync},
};

static enum rf_status refused(const struct call *call, int why,
                              struct rf_err *err)
{
    if (why == EPERM || why == ENOSYS) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "system call %s: %s (blocked by a seccomp profile, "
                          "as in containers?)",
                          call->name, strerror(why));
    }
    return rf_err_errno(err, RF_ERR_UNSUPPORTED, why, "system call %s",
                        call->name);
}

enum rf_status rf_system_calls_try(unsigned what, struct rf_err *err)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(calls); i++) {
        if ((calls[i].of & what) != 0 && !calls[i].works()) {
            return refused(&calls[i], errno, err);
        }
    }
    return RF_OK;
}

/* Many connections. See flood.h. */
#include "tests/lib/flood.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"

#define SECONDS_MAX 60

struct flood {
    pid_t pid;
    atomic_ulong *count; /* shared with the process */
};

/* A connection, perhaps not complete yet; -1 when none can be opened now. */
static int open_one(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 &&
        errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static void serve(struct pollfd *one, const void *says, size_t size)
{
    char answer[4096];
    if (one->revents & POLLOUT) {
        one->events = POLLIN;
        (void)!send(one->fd, says, size, MSG_NOSIGNAL);
    }
    if (one->revents & (POLLIN | POLLERR | POLLHUP) &&
        recv(one->fd, answer, sizeof(answer), 0) <= 0) {
        close(one->fd);
        one->fd = -1;
    }
}

static void flood_for_ever(atomic_ulong *count, uint16_t port, unsigned n,
                           const void *says, size_t size)
{
    struct pollfd *all = rf_xcalloc(n, sizeof(*all));
    for (unsigned i = 0; i < n; i++) {
        all[i].fd = -1;
    }
    for (;;) {
        for (unsigned i = 0; i < n; i++) {
            if (all[i].fd < 0) {
                all[i] = (struct pollfd){open_one(port),
                                         size > 0 ? POLLOUT : POLLIN, 0};
                *count += all[i].fd >= 0;
            }
        }
        if (poll(all, n, 10) > 0) {
            for (unsigned i = 0; i < n; i++) {
                serve(&all[i], says, size);
            }
        }
    }
}

struct flood *flood_start(unsigned port, unsigned n, const void *says,
                          size_t size)
{
    struct flood *flood = rf_xcalloc(1, sizeof(*flood));
    flood->count = mmap(NULL, sizeof(*flood->count), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(flood->count, MAP_FAILED);
    flood->pid = fork();
    ck_assert_int_ge(flood->pid, 0);
    if (flood->pid == 0) {
        prctl(PR_SET_PDEATHSIG, (long)SIGKILL);
        alarm(SECONDS_MAX);
        flood_for_ever(flood->count, (uint16_t)port, n, says, size);
    }
    return flood;
}

unsigned long flood_count(const struct flood *flood)
{
    return *flood->count;
}

void flood_stop(struct flood *flood)
{
    if (flood != NULL) {
        kill(flood->pid, SIGKILL);
        waitpid(flood->pid, NULL, 0);
        munmap(flood->count, sizeof(*flood->count));
        free(flood);
    }
}

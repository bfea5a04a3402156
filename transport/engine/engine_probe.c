/* What the engine needs of the system. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/engine/engine.h"
#include "transport/method/system_calls.h"

static bool close_it(int fd)
{
    return fd >= 0 && close(fd) == 0;
}

static bool try_memfd(void)
{
    return close_it(memfd_create("refit-probe", MFD_CLOEXEC));
}

static bool try_ftruncate(void)
{
    const int fd = memfd_create("refit-probe", MFD_CLOEXEC);
    const bool done = fd >= 0 && ftruncate(fd, 1) == 0;
    const int why = errno;
    (void)close_it(fd);
    errno = why;
    return done;
}

static bool try_epoll(void)
{
    return close_it(epoll_create1(EPOLL_CLOEXEC));
}

enum rf_status rf_engine_probe(struct rf_err *err)
{
    static const struct rf_system_call needed[] = {
        {"memfd_create", try_memfd},
        {"ftruncate", try_ftruncate},
        {"epoll_create1", try_epoll},
    };
    return rf_system_calls_try(needed, RF_ARRAY_SIZE(needed), err);
}

/* The limit of open descriptors. See fd_limit.h. */
#include "common/fd_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "common/compiler.h"

#define ENOUGH ((rlim_t)1 << 20)

void rf_fd_limit_raise(void)
{
    struct rlimit limit;
    rlim_t wanted;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    wanted = RF_MIN(limit.rlim_max, ENOUGH);
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool is_free(rlim_t fd)
{
    return fcntl((int)fd, F_GETFD) < 0 && errno == EBADF;
}

/* The limit under which `n` more can be opened. Open descriptors count only if
 * below that limit, even if they are above the current one. */
static rlim_t limit_for(uint32_t n)
{
    rlim_t fd = 0;
    while (n > 0) {
        n -= is_free(fd++);
    }
    return fd;
}

enum rf_status rf_fd_limit_need(uint32_t n, uint32_t least, struct rf_err *err)
{
    struct rlimit limit;
    rlim_t needed;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return RF_OK; /* the next open will report it */
    }
    needed = limit_for(n);
    needed = RF_MAX(needed, least);
    if (limit.rlim_cur >= needed) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "limit of open files too low: %llu, %llu needed; raise "
                      "it with `ulimit -n %llu`",
                      (unsigned long long)limit.rlim_cur,
                      (unsigned long long)needed, (unsigned long long)needed);
}

uint32_t rf_fd_limit_free(uint32_t most)
{
    struct rlimit limit;
    uint32_t n = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return most;
    }
    for (rlim_t fd = 0; fd < limit.rlim_cur && n < most; fd++) {
        n += is_free(fd);
    }
    return n;
}

/* The limit of open descriptors. See descriptors.h. */
#include "common/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "common/compiler.h"

#define ENOUGH ((rlim_t)1 << 20)

void rf_descriptors_raise(void)
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

enum rf_status rf_descriptors_need(uint32_t n, struct rf_err *err)
{
    struct rlimit limit;
    rlim_t free_ones = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return RF_OK; /* whoever opens something will be told */
    }
    limit.rlim_cur = RF_MIN(limit.rlim_cur, ENOUGH);
    for (rlim_t fd = 0; fd < limit.rlim_cur && free_ones < n; fd++) {
        free_ones += fcntl((int)fd, F_GETFD) < 0 && errno == EBADF;
    }
    if (free_ones >= n) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "too many open files: %u more are needed, %llu are "
                      "allowed; raise the limit with `ulimit -n %llu`",
                      n, (unsigned long long)free_ones,
                      (unsigned long long)(limit.rlim_cur + n - free_ones));
}

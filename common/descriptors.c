/* The limit of open descriptors. See descriptors.h. */
#include "common/descriptors.h"

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

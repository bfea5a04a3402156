/* The limit of the stack. See stack_limit.h. */
#include "common/stack_limit.h"

#include <pthread.h>
#include <sys/resource.h>

#include "common/compiler.h"

#define LEAST ((rlim_t)256 << 10) /* runs worked with half of it */
#define ENOUGH ((rlim_t)8 << 20)  /* what systems usually allow */

enum rf_status rf_stack_limit_raise(struct rf_err *err)
{
    struct rlimit limit;
    pthread_attr_t threads;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= ENOUGH) {
        return RF_OK;
    }
    limit.rlim_cur = RF_MIN(limit.rlim_max, ENOUGH);
    if (limit.rlim_cur < LEAST) {
        return rf_err_set(
            err, RF_ERR_LAUNCH,
            "stack limit too low: %llu KiB, %llu needed; raise the hard limit "
            "(limits.conf, or `ulimit -s %llu` as root)",
            (unsigned long long)(limit.rlim_cur >> 10),
            (unsigned long long)(LEAST >> 10),
            (unsigned long long)(ENOUGH >> 10));
    }
    (void)setrlimit(RLIMIT_STACK, &limit);
    /* Their default is the limit at program start. */
    if (pthread_attr_init(&threads) == 0) {
        (void)pthread_attr_setstacksize(&threads, (size_t)limit.rlim_cur);
        (void)pthread_setattr_default_np(&threads);
        (void)pthread_attr_destroy(&threads);
    }
    return RF_OK;
}

/* A parallel-for: threads share a list of jobs. For work that waits for files
 * or takes long. */
#ifndef RF_COMMON_PARALLEL_H
#define RF_COMMON_PARALLEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define RF_PARALLEL_MAX 16

struct rf_parallel {
    unsigned threads; /* 1 … RF_PARALLEL_MAX, including the caller's */
    size_t jobs;
    /* Does one job. `thread` is below `threads`; no two concurrent calls have
     * the same one. */
    enum rf_status (*work)(size_t job, unsigned thread, void *data,
                           struct rf_err *err);
    void *data;
    const atomic_bool *abort; /* stops between two jobs; NULL: never */
};

/* Does all jobs, in any order, and returns when the last thread has ended. The
 * first failure stops it and is returned; RF_ERR_ABORTED after an abort. */
enum rf_status rf_parallel_run(const struct rf_parallel *parallel,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

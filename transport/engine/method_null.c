/*
 * Method `null`: does everything but move bytes. It measures the program's
 * overhead and tests the code around methods.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/system_calls.h"
#include "transport/method/method.h"

struct null_state {
    const atomic_bool *abort;
};

static enum rf_status null_open(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    struct null_state *null = rf_xcalloc(1, sizeof(*null));
    (void)err;
    null->abort = env->abort;
    *state = null;
    return RF_OK;
}

static enum rf_status null_start(void *state, uint64_t iteration,
                                 struct rf_err *err)
{
    (void)state;
    (void)iteration;
    (void)err;
    return RF_OK;
}

static enum rf_status null_progress(void *state, bool *done, struct rf_err *err)
{
    const struct null_state *null = state;
    if (atomic_load(null->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    *done = true;
    return RF_OK;
}

static void null_timing(void *state, struct rf_phase_times *out)
{
    (void)state;
    memset(out, 0, sizeof(*out));
}

static void null_abort(void *state)
{
    (void)state;
}

const struct rf_method_ops rf_method_null = {
    .info = &rf_method_infos[RF_METHOD_NULL],
    /* of arenas, and of probes of its links */
    .calls = RF_CALLS_OF_NODE | RF_CALLS_OF_TCP,
    .open = null_open,
    .start = null_start,
    .progress = null_progress,
    .timing = null_timing,
    .abort = null_abort,
    .close = free,
};

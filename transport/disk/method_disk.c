/*
 * Method `disk`: weights go through files of a folder that all nodes share, as
 * with checkpoint-based weight updates. Every op does, a rank's local ones too:
 * a trainer writes what it holds once, engines read the slices they need.
 */
#include "common/system_calls.h"
#include "transport/disk/disk_carrier.h"
#include "transport/engine/engine.h"

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)op;
    (void)same_node;
    return RF_ROUTE_FILE;
}

static const struct rf_copy_engine_policy policy = {
    .route = route,
    .carrier = &rf_carrier_files,
};

static enum rf_status probe_disk(struct rf_err *err)
{
    return rf_system_calls_try(RF_CALLS_OF_NODE | RF_CALLS_OF_DISK, err);
}

static enum rf_status open_disk(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    if (env->plan->spec->disk_folder == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "method disk needs \"disk.folder\"");
    }
    return rf_engine_open(env, &policy, state, err);
}

const struct rf_method_ops rf_method_disk = {
    .info = &rf_method_infos[RF_METHOD_DISK],
    .open = open_disk,
    .probe = probe_disk,
    RF_ENGINE_HOOKS,
};

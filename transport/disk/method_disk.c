/*
 * Method `disk`: weights go through files of a folder shared by all nodes, as
 * with checkpoint-based weight updates. All ops do, including a rank's local
 * ones: a trainer writes its weights once, engines read the slices they need.
 */
#include "common/system_calls.h"
#include "transport/disk/disk_carrier.h"
#include "transport/engine/engine.h"

static enum rf_status open_disk(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    static const struct rf_copy_engine_policy policy = {
        .inside = RF_ROUTE_FILE,
        .near = RF_ROUTE_FILE,
        .far = RF_ROUTE_FILE,
        .carrier = &rf_carrier_files,
    };
    return rf_engine_open(env, &policy, state, err);
}

const struct rf_method_ops rf_method_disk = {
    .info = &rf_method_infos[RF_METHOD_DISK],
    .calls = RF_CALLS_OF_NODE | RF_CALLS_OF_DISK,
    .open = open_disk,
    RF_ENGINE_HOOKS,
};

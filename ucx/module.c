/*
 * Method `ucx`: ops between different ranks go through UCX, inside a node only
 * if UCX gives no pointers; a rank's local ops are plain copies. Defines the
 * table that refit-worker finds in refit-ucx.so, which also has the wire for
 * method ucx-cuda of refit-cuda.so (wire.h).
 */
#include "common/system_calls.h"
#include "transport/method/module.h"
#include "ucx/carrier.h"
#include "ucx/wire.h"

static enum rf_status open_ucx(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    struct rf_copy_engine_policy policy = {.inside = RF_ROUTE_OWN,
                                           .near = RF_ROUTE_LINK,
                                           .far = RF_ROUTE_LINK,
                                           .carrier = &rf_carrier_ucx};
    struct rf_ucx_carrier *carrier;
    RF_TRY(rf_ucx_join(env, &carrier, err));
    policy.made = carrier;
    if (carrier->attached) {
        policy.inside = policy.near = RF_ROUTE_SHARED;
        policy.attach = rf_ucx_attach;
    }
    return rf_engine_open(env, &policy, state, err);
}

/* Probes with the settings of ranks. */
static enum rf_status probe_ucx(struct rf_err *err)
{
    struct rf_ucx_library *library;
    enum rf_status status = rf_ucx_check_settings(err);
    RF_THEN(status, rf_ucx_library_take(RF_UCX_CARRY, 1, &library, err));
    if (status == RF_OK) {
        rf_ucx_library_give(library);
        return RF_OK;
    }
    return err->status = RF_ERR_UNSUPPORTED;
}

static const struct rf_method_ops method = {
    .info = &rf_method_infos[RF_METHOD_UCX],
    .arenas = &rf_ucx_arenas,
    .calls = RF_CALLS_OF_NODE | RF_CALLS_OF_UCX,
    .probe = probe_ucx,
    .open = open_ucx,
    RF_ENGINE_HOOKS,
};

extern const struct rf_ucx_module rf_ucx_module;
const struct rf_ucx_module rf_ucx_module = {
    .abi = RF_UCX_MODULE_ABI,
    .method = &method,
    .wire = &rf_ucx_wire_ops,
};

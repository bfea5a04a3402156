/*
 * Method `ucx`: every op between different ranks goes through UCX, also inside
 * a node; a rank's local ops are plain copies. This is the table that
 * refit-worker finds in refit-ucx.so.
 */
#include "transport/module.h"
#include "ucx/carrier.h"

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)same_node;
    return op->src == op->dst ? RF_ROUTE_OWN : RF_ROUTE_LINK;
}

static const struct rf_engine_policy policy = {
    .route = route,
    .carrier = &rf_carrier_ucx,
};

static enum rf_status open_ucx(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    return rf_engine_open(env, &policy, state, err);
}

static const struct rf_method_ops method = {
    .info = &rf_method_infos[RF_METHOD_UCX],
    .open = open_ucx,
    RF_ENGINE_HOOKS,
};

extern const struct rf_ucx_module rf_ucx_module;
const struct rf_ucx_module rf_ucx_module = {
    .abi = RF_UCX_MODULE_ABI,
    .method = &method,
};

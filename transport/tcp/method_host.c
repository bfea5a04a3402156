/*
 * Method `host`: shared memory inside a node, TCP between nodes. Any rank of a
 * node runs any of its copies, on arenas mapped into all of them, straight from
 * training to inference memory with streaming stores.
 */
#include "common/system_calls.h"
#include "transport/engine/engine.h"
#include "transport/tcp/tcp_carrier.h"

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)op;
    return same_node ? RF_ROUTE_SHARED : RF_ROUTE_LINK;
}

static const struct rf_copy_engine_policy policy = {
    .route = route,
    .carrier = &rf_carrier_links,
};

static enum rf_status probe_host(struct rf_err *err)
{
    return rf_system_calls_try(RF_CALLS_OF_NODE | RF_CALLS_OF_TCP, err);
}

static enum rf_status open_host(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    return rf_engine_open(env, &policy, state, err);
}

const struct rf_method_ops rf_method_host = {
    .info = &rf_method_infos[RF_METHOD_HOST],
    .open = open_host,
    .probe = probe_host,
    RF_ENGINE_HOOKS,
};

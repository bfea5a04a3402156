/*
 * Method `tcp`: every op between different ranks goes over a TCP connection,
 * also inside a node, as programs without shared memory do it. A rank's local
 * ops are plain copies.
 */
#include "common/system_calls.h"
#include "transport/engine/engine.h"
#include "transport/tcp/tcp_carrier.h"

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)same_node;
    return op->src == op->dst ? RF_ROUTE_OWN : RF_ROUTE_LINK;
}

static const struct rf_copy_engine_policy policy = {
    .route = route,
    .carrier = &rf_carrier_links,
};

static enum rf_status probe_tcp(struct rf_err *err)
{
    return rf_system_calls_try(RF_CALLS_OF_NODE | RF_CALLS_OF_TCP, err);
}

static enum rf_status open_tcp(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    return rf_engine_open(env, &policy, state, err);
}

const struct rf_method_ops rf_method_tcp = {
    .info = &rf_method_infos[RF_METHOD_TCP],
    .open = open_tcp,
    .probe = probe_tcp,
    RF_ENGINE_HOOKS,
};

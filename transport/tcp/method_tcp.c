/*
 * Methods `host` and `tcp`, which differ in the routes inside a node. Both use
 * TCP between nodes.
 *
 * `host`: any rank of a node runs any of its copies, on arenas mapped into all
 * of them, straight from training to inference memory with streaming stores.
 * `tcp`: every op between different ranks goes over a TCP connection, also
 * inside a node, as in programs without shared memory. A rank's local ops are
 * plain copies.
 */
#include "common/system_calls.h"
#include "transport/engine/engine.h"
#include "transport/tcp/tcp_carrier.h"

static enum rf_status open_host(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    static const struct rf_copy_engine_policy policy = {
        .inside = RF_ROUTE_SHARED,
        .near = RF_ROUTE_SHARED,
        .far = RF_ROUTE_LINK,
        .carrier = &rf_carrier_links,
    };
    return rf_engine_open(env, &policy, state, err);
}

static enum rf_status open_tcp(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    static const struct rf_copy_engine_policy policy = {
        .inside = RF_ROUTE_OWN,
        .near = RF_ROUTE_LINK,
        .far = RF_ROUTE_LINK,
        .carrier = &rf_carrier_links,
    };
    return rf_engine_open(env, &policy, state, err);
}

const struct rf_method_ops rf_method_host = {
    .info = &rf_method_infos[RF_METHOD_HOST],
    .calls = RF_CALLS_OF_NODE | RF_CALLS_OF_TCP,
    .open = open_host,
    RF_ENGINE_HOOKS,
};

const struct rf_method_ops rf_method_tcp = {
    .info = &rf_method_infos[RF_METHOD_TCP],
    .calls = RF_CALLS_OF_NODE | RF_CALLS_OF_TCP,
    .open = open_tcp,
    RF_ENGINE_HOOKS,
};

/*
 * Method `tcp`: every op between different ranks goes over a TCP connection,
 * also inside a node, as programs without shared memory do it. A rank's local
 * ops are plain copies.
 */
#include "transport/engine.h"
#include "transport/links.h"

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)same_node;
    return op->src == op->dst ? RF_ROUTE_OWN : RF_ROUTE_LINK;
}

static const struct rf_engine_policy policy = {
    .route = route,
    .carrier = &rf_carrier_links,
};

static enum rf_status probe(struct rf_err *err)
{
    (void)err;
    return RF_OK;
}

static enum rf_status open_tcp(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    struct rf_engine *engine;
    enum rf_status status = rf_engine_open(env, &policy, &engine, err);
    if (status == RF_OK) {
        *state = engine;
    }
    return status;
}

const struct rf_method_ops rf_method_tcp = {
    .info = &rf_method_infos[RF_METHOD_TCP],
    .probe = probe,
    .open = open_tcp,
    .start = rf_engine_start,
    .progress = rf_engine_progress,
    .timing = rf_engine_timing,
    .base_of = rf_engine_base_of,
    .abort = rf_engine_abort,
    .close = rf_engine_close,
};

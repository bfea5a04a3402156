/*
 * Method `host`: shared memory inside a node, TCP between nodes. Any rank of a
 * node runs any of its copies, on arenas mapped into all of them, straight from
 * training to inference memory with streaming stores.
 */
#include "transport/engine.h"
#include "transport/links.h"

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)op;
    return same_node ? RF_ROUTE_SHARED : RF_ROUTE_LINK;
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

static enum rf_status open_host(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    struct rf_engine *engine;
    enum rf_status status = rf_engine_open(env, &policy, &engine, err);
    if (status == RF_OK) {
        *state = engine;
    }
    return status;
}

const struct rf_method_ops rf_method_host = {
    .info = &rf_method_infos[RF_METHOD_HOST],
    .probe = probe,
    .open = open_host,
    .start = rf_engine_start,
    .progress = rf_engine_progress,
    .timing = rf_engine_timing,
    .base_of = rf_engine_base_of,
    .abort = rf_engine_abort,
    .close = rf_engine_close,
};

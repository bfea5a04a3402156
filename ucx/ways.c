/* By which ways the carrier's ops go. See carrier.h. */
#include <stdlib.h>
#include <string.h>

#include "ucx/carrier.h"

static bool wants_rma(bool real)
{
    const char *value = getenv(RF_UCX_RMA_VARIABLE);
    return value == NULL ? real
                         : strcmp(value, "always") == 0 ||
                               (real && strcmp(value, "never") != 0);
}

static const char *way_of(const struct rf_ucx_peer *peer)
{
    return !peer->rma                                 ? "messages by"
           : peer->carrier->env->plan->spec->ucx_gets ? "gets by"
                                                      : "puts by";
}

/* A field for each rank that this one sends to or copies from: "puts by
 * rc_mlx5/mlx5_0:1". */
static enum rf_status describe(struct rf_ucx_carrier *carrier,
                               struct rf_blob *out, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    struct rf_ucx_ways ways;
    for (uint32_t i = 0; i < carrier->n_peers && status == RF_OK; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        status = rf_ucx_ask(peer->end.ep, &ways, err);
        if (status == RF_OK) {
            peer->rma = wants_rma(ways.rma);
            peer->eager = ways.tcp && !peer->rma;
            rf_ucx_tell(out, way_of(peer), ways.all);
        }
    }
    for (uint32_t i = 0;
         carrier->attached && i < carrier->n_neighbours && status == RF_OK;
         i++) {
        status = rf_ucx_ask(carrier->neighbours[i].end.ep, &ways, err);
        if (status == RF_OK) {
            rf_ucx_tell(out, "mapped by", ways.mapping);
        }
    }
    return status;
}

enum rf_status rf_ucx_tell_choices(struct rf_ucx_carrier *carrier,
                                   struct rf_err *err)
{
    struct rf_blob mine = {NULL, 0};
    enum rf_status status = describe(carrier, &mine, err);
    if (status == RF_OK) {
        status = rf_ucx_publish(carrier->env, &mine, err);
    }
    free(mine.data);
    return status;
}

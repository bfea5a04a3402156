/* Selects the protocols of the carrier's ops. See carrier.h. */
#include <stdlib.h>
#include <string.h>

#include "ucx/carrier.h"
#include "ucx/lanes.h"

/* When to use puts and gets. */
enum rma { RMA_REAL, RMA_ALWAYS, RMA_NEVER };

static enum rf_status rma_wish(enum rma *out, struct rf_err *err)
{
    const char *text = getenv("REFIT_UCX_RMA");
    if (text == NULL || strcmp(text, "auto") == 0) {
        *out = RMA_REAL;
    } else if (strcmp(text, "always") == 0) {
        *out = RMA_ALWAYS;
    } else if (strcmp(text, "never") == 0) {
        *out = RMA_NEVER;
    } else {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "REFIT_UCX_RMA is \"%.40s\", must be auto, always or never", text);
    }
    return RF_OK;
}

enum rf_status rf_ucx_check_settings(struct rf_err *err)
{
    enum rma wish;
    return rma_wish(&wish, err);
}

/* Counts lanes for each direction with ops, at the rank that moves the bytes:
 * the sender, or the receiver for gets. */
static void count_lanes(const struct rf_ucx_peer *peer,
                        const struct rf_ucx_lanes *lanes,
                        struct rf_ucx_lane_counts *out)
{
    const bool gets = peer->carrier->env->plan->spec->ucx_gets;
    const bool posix = strncmp(lanes->all, "posix/", 6) == 0;
    const enum rf_ucx_doubt tcp =
        lanes->tcp ? RF_UCX_OVER_TCP : RF_UCX_NO_DOUBT;
    if (peer->rma && gets && peer->get_mems != 0) {
        rf_ucx_lanes_count(out, "gets by", lanes->all, tcp);
    }
    if (peer->n_sends > 0 && !(peer->rma && peer->put_mems != 0)) {
        rf_ucx_lanes_count(out, "messages by", lanes->all,
                           posix ? RF_UCX_UNMAPPED : tcp);
    } else if (peer->n_sends > 0 && !gets) {
        rf_ucx_lanes_count(out, "puts by", lanes->all, tcp);
    }
}

/* Whether the peer's info has the keys for puts or gets. */
static bool has_keys(const struct rf_ucx_peer *peer)
{
    const uint32_t mems = !peer->rma ? 0
                          : peer->carrier->env->plan->spec->ucx_gets
                              ? peer->get_mems
                              : peer->put_mems;
    bool all = true;
    for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
        all &= (mems >> mem & 1) == 0 || peer->end.rkey[mem] != NULL;
    }
    return all;
}

/* Chooses between messages and puts or gets, and counts the lanes: "puts by
 * rc_mlx5/mlx5_0:1". */
static enum rf_status choose(struct rf_ucx_carrier *carrier,
                             struct rf_ucx_lane_counts *out, struct rf_err *err)
{
    enum rma wish = RMA_REAL;
    enum rf_status status = rma_wish(&wish, err);
    struct rf_ucx_lanes lanes;
    for (uint32_t i = 0; i < carrier->n_peers && status == RF_OK; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        status = rf_ucx_lanes_ask(peer->end.ep, &lanes, err);
        if (status == RF_OK) {
            peer->rma = wish == RMA_ALWAYS || (wish == RMA_REAL && lanes.rma);
            peer->eager = lanes.tcp && !peer->rma;
            count_lanes(peer, &lanes, out);
            status = has_keys(peer) ? RF_OK
                                    : rf_ucx_peer_info_wrong(peer->rank, err);
        }
    }
    for (uint32_t i = 0;
         carrier->attached && i < carrier->n_neighbours && status == RF_OK;
         i++) {
        status = rf_ucx_lanes_ask(carrier->neighbours[i].end.ep, &lanes, err);
        if (status == RF_OK) {
            rf_ucx_lanes_count(out, "mapped by", lanes.mapping,
                               RF_UCX_NO_DOUBT);
        }
    }
    return status;
}

enum rf_status rf_ucx_select_protocols(struct rf_ucx_carrier *carrier,
                                       struct rf_err *err)
{
    struct rf_ucx_lane_counts mine = {.n = 0};
    enum rf_status status = choose(carrier, &mine, err);
    RF_THEN(status, rf_ucx_lanes_publish(carrier->env, &mine, err));
    rf_ucx_lanes_free(&mine);
    return status;
}

/*
 * The lanes chosen by UCX for endpoints, shared with all ranks. Internal to
 * refit-ucx.so.
 */
#ifndef RF_UCX_LANES_H
#define RF_UCX_LANES_H

#include <ucp/api/ucp.h>

#include "transport/method/method.h"
#include "ucx/describe.h"

#define RF_UCX_LANE_BYTES (RF_UCX_NAMES_BYTES + 16)

enum rf_ucx_doubt {
    RF_UCX_NO_DOUBT,
    RF_UCX_OVER_TCP, /* alone */
    RF_UCX_UNMAPPED, /* inside a node, for lack of room in shared memory */
    RF_UCX_DOUBTS
};

/* Lanes ("messages by tcp/lo") and the pairs of ranks that use each. Initially
 * all zeros. */
struct rf_ucx_lane_counts {
    struct rf_ucx_lane_count {
        char text[RF_UCX_LANE_BYTES];
        uint32_t n;
        enum rf_ucx_doubt doubt;
    } * list;
    size_t n, cap;
};

enum rf_status rf_ucx_lanes_ask(ucp_ep_h ep, struct rf_ucx_lanes *out,
                                struct rf_err *err) RF_MUST_CHECK;
/* Counts one more pair: "messages by", "tcp/lo". */
void rf_ucx_lanes_count(struct rf_ucx_lane_counts *counts, const char *how,
                        const char *names, enum rf_ucx_doubt doubt);
/* "UCX 1.13.1; 6 messages by tcp/lo", and lanes in doubt. Lanes that do not fit
 * are counted at the end: "; 2 more". */
void rf_ucx_lanes_sum_up(const struct rf_ucx_lane_counts *counts,
                         struct rf_registration *out);
/* Collective if env->registration is wanted (by all ranks or none): sets it to
 * the sum of all ranks' lanes. */
enum rf_status rf_ucx_lanes_publish(const struct rf_method_env *env,
                                    const struct rf_ucx_lane_counts *mine,
                                    struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_lanes_free(struct rf_ucx_lane_counts *counts);

#endif

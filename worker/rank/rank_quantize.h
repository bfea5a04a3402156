/*
 * Quantising on a rank after an iteration has moved the weights, with the
 * exchange of largest magnitudes that the scales of tensors need
 * (planner/plan/quantize.h).
 */
#ifndef RF_WORKER_RANK_RANK_QUANTIZE_H
#define RF_WORKER_RANK_RANK_QUANTIZE_H

#include "transport/method/method.h"

/* A largest magnitude that a rank found in some elements of joined tensors. */
struct rf_rank_amax_part {
    uint32_t family, layer_index, expert;
    float amax;
};

struct rf_rank_amax {
    bool exchanged; /* some rank holds only some elements of such tensors */
    float *of;      /* of quantize.joined */
    struct rf_rank_amax_part *parts; /* room for those not whole here */
};

struct rf_rank_quantize {
    const struct rf_method_env *env;
    const struct rf_quantize *what;
    void *quantizer; /* NULL: this rank has nothing to quantise */
    struct rf_rank_amax *amax;
};

/* Allocates `amax` for `what`. rf_rank_amax_free() frees it. */
enum rf_status rf_rank_amax_make(const struct rf_plan *plan,
                                 const struct rf_quantize *what,
                                 struct rf_rank_amax *amax,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_rank_amax_free(struct rf_rank_amax *amax);

/* Quantises; collective if amax->exchanged, as env->exchange is. *ns is the
 * time of computing, *amax_ns that of the exchange, which waits for the slowest
 * rank. Adds events to env->trace. */
enum rf_status rf_rank_quantize_run(const struct rf_rank_quantize *quantize,
                                    int64_t *ns, int64_t *amax_ns,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Quantising on a rank: before or after an iteration moves the weights, or
 * meanwhile, group by group; with the exchange of largest magnitudes that the
 * scales of tensors need (planner/plan/quantize.h).
 */
#ifndef RF_WORKER_RANK_RANK_QUANTIZE_H
#define RF_WORKER_RANK_RANK_QUANTIZE_H

#include "planner/schedule/conversions.h"
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

/* With "overlap", or at a sender: conversions in the order of their groups. */
struct rf_rank_groups {
    struct rf_conversion *of; /* NULL: all at once */
    size_t n;
    size_t at;     /* of the iteration: the conversion in hand, */
    uint64_t done; /* and its rows that are done */
    int64_t ns;    /* spent on conversions that overlap */
};

struct rf_rank_quantize {
    const struct rf_method_env *env;
    const struct rf_quantize *what;
    void *quantizer; /* NULL: this rank has nothing to quantise */
    struct rf_rank_amax *amax;
    struct rf_rank_groups *groups;
};

/* Allocates `amax` for `what`. rf_rank_amax_free() frees it. */
enum rf_status rf_rank_amax_make(const struct rf_plan *plan,
                                 const struct rf_quantize *what,
                                 struct rf_rank_amax *amax,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_rank_amax_free(struct rf_rank_amax *amax);

/* Lists the conversions of `what`, if env->memory can convert in parts.
 * rf_rank_groups_free() frees them. */
void rf_rank_groups_make(const struct rf_method_env *env,
                         const struct rf_quantize *what,
                         struct rf_rank_groups *groups);
void rf_rank_groups_free(struct rf_rank_groups *groups);

/* Quantises, at a sender what its ops read, or with "overlap" only prepares
 * that; collective if amax->exchanged, as env->exchange is. *ns is the time of
 * computing, *amax_ns that of the exchange, which waits for the slowest rank.
 * Adds events to env->trace. */
enum rf_status rf_rank_quantize_run(const struct rf_rank_quantize *quantize,
                                    int64_t *ns, int64_t *amax_ns,
                                    struct rf_err *err) RF_MUST_CHECK;

/* env->convert: a sender's groups come in ascending order, a receiver's one
 * after another, in any order. */
enum rf_status rf_rank_quantize_part(const struct rf_rank_quantize *quantize,
                                     uint32_t group, bool *done,
                                     struct rf_err *err) RF_MUST_CHECK;

/* What a sender has left, since no op reads it; outside the window. */
enum rf_status rf_rank_quantize_rest(const struct rf_rank_quantize *quantize,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

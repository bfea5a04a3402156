/*
 * The first exchange of every pair of the plan: a few bytes each, outside the
 * window, so that NCCL connects the pairs then.
 */
#ifndef RF_CUDA_NCCL_NCCL_WARM_H
#define RF_CUDA_NCCL_NCCL_WARM_H

#include "cuda/nccl/nccl_wire.h"

/* The minimum size of each of the two buffers. */
uint64_t rf_nccl_warm_bytes(const struct rf_method_env *env);

/* Collective. `buffers`: [0] for sends, [1] for receives. */
enum rf_status rf_nccl_warm_up(struct rf_nccl_wire *wire,
                               const struct rf_steps *steps,
                               const struct rf_arena *buffers,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

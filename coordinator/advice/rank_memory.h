/*
 * Estimates a rank's memory from its mesh. Pure. Excludes workspaces,
 * fragmentation and communication buffers; framework and allocator usually need
 * some GB more.
 */
#ifndef RF_COORDINATOR_ADVICE_RANK_MEMORY_H
#define RF_COORDINATOR_ADVICE_RANK_MEMORY_H

#include "coordinator/config/links/timeline.h"
#include "planner/model/model.h"
#include "planner/scenario/spec.h"

/* Bytes of one training rank, in the pipeline stage that needs most. */
struct rf_training_memory {
    double states;      /* weights, gradients and optimizer */
    double activations; /* 0 without a sequence length */
};

/*
 * States: bfloat16 weights with float32 gradients take 6 bytes a parameter, and
 * Adam's float32 copies 12, which Megatron's distributed optimizer divides over
 * the ranks that hold the same parameters (Megatron-Core's guide, "Distributed
 * Optimizer": 6 + 12/d). FSDP and ZeRO-3 divide all 18 over their shards
 * (Rajbhandari et al. 2020, "ZeRO", stage 3). A stage has its layers, the first
 * one the embedding, the last one the output head, or a copy of the embedding
 * that it is tied to.
 *
 * Activations of a layer: 34·s·b·h bytes, divided over TP with sequence
 * parallelism and over CP (Korthikanti et al. 2022, "Reducing Activation
 * Recomputation in Large Transformer Models", equation 6). Attention that is
 * not fused adds its scores, 5·a·s²·b of a heads, their softmax and dropout
 * (equation 4), as if every layer had attention. Selective recomputation, that
 * is Megatron's of core attention, keeps those of one layer at a time; flash
 * attention has none (Dao et al. 2022, "FlashAttention"), so selective saves
 * nothing there. Full recomputation keeps 2·s·b·h a layer and one layer whole.
 * Of p stages, stage i keeps p - i micro-batches (with v virtual stages each
 * ((v - 1)·p + 2·(p - i) - 1)/v), or fewer where a step has fewer. The last one
 * also has the float32 logits: 4·s·b bytes for each word of the vocabulary,
 * over TP and CP.
 */
struct rf_training_memory
rf_rank_memory_training(const struct rf_model *model,
                        const struct rf_side_spec *side, uint32_t ranks,
                        const struct rf_timeline *timeline,
                        enum rf_recompute recompute);

/* Bytes of weights on one inference rank of the largest stage, in the side's
 * dtypes. */
double rf_rank_memory_inference(const struct rf_model *model,
                                const struct rf_side_spec *side);

/* Micro-batches per step on each replica; 0 without batch sizes. */
double rf_rank_memory_micro_batches(const struct rf_side_spec *side,
                                    const struct rf_timeline *timeline);

/* Whether the side's layout divides tensors over DP, like FSDP, without tensor
 * or pipeline parallelism. */
bool rf_rank_memory_over_dp(const struct rf_side_spec *side);
/* For such a side, the number of ranks that share one copy; else 1. */
double rf_rank_memory_dp_shards(const struct rf_side_spec *side);

#endif

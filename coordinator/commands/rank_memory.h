/*
 * What a rank keeps in memory, estimated from its mesh. Pure. It leaves
 * out workspaces, fragmentation and buffers of communication; framework and
 * allocator usually want some GB more.
 */
#ifndef RF_COORDINATOR_COMMANDS_RANK_MEMORY_H
#define RF_COORDINATOR_COMMANDS_RANK_MEMORY_H

#include "coordinator/config/timeline.h"
#include "planner/model.h"
#include "planner/spec.h"

/* Elements of a model that tensor parallelism divides, and of its routed
 * experts. */
struct rf_parameters {
    double dense, experts;
};

struct rf_parameters rf_parameters_of(const struct rf_model *model);
/* Of one rank: dense / (TP·PP) and experts / (EP·ETP·PP). */
struct rf_parameters rf_parameters_of_rank(const struct rf_model *model,
                                           const struct rf_side_spec *side);

/* Bytes of one training rank. */
struct rf_training_memory {
    double states;      /* weights, gradients and optimizer */
    double activations; /* 0 where no sequence length is given */
};

/*
 * States: bfloat16 weights with float32 gradients take 6 bytes a parameter, and
 * Adam's float32 copies 12, which Megatron's distributed optimizer divides over
 * the ranks that hold the same parameters (Megatron-Core's guide, "Distributed
 * Optimizer": 6 + 12/d).
 *
 * Activations of a layer: 34·s·b·h bytes, divided over TP with sequence
 * parallelism and over CP, where attention does not store its scores
 * (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
 * Transformer Models", equation 6); with full recomputation 2·s·b·h a layer and
 * one layer whole. The first stage keeps as many micro-batches as there are
 * stages, or fewer where a step has fewer. So without full recomputation,
 * selective or none make no difference here.
 */
struct rf_training_memory
rf_training_memory_of(const struct rf_model *model,
                      const struct rf_side_spec *side, uint32_t ranks,
                      const struct rf_timeline *timeline,
                      enum rf_recompute recompute);

/* Bytes of weights on one inference rank, in the model's own dtypes. */
double rf_engine_bytes_of(const struct rf_model *model,
                          const struct rf_side_spec *side);

/* Micro-batches of a step on each replica; 0 where batches are not given. */
double rf_micro_batches(const struct rf_side_spec *side,
                        const struct rf_timeline *timeline);

#endif

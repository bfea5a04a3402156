/*
 * Estimates a rank's memory. See rank_memory.h. A stage's parameters follow
 * from its families and the number of ranks that share each of their parts.
 */
#include "coordinator/advice/rank_memory.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/layout.h"
#include "planner/layout/layout_rules.h"
#include "planner/model/roles.h"
#include "planner/plan/quantize.h"

#define STATE_BYTES 6.0      /* per parameter, on every rank that has it */
#define OPTIMIZER_BYTES 12.0 /* per parameter, divided over these ranks */
#define LAYER_BYTES 34.0     /* per activation, in each layer */
#define INPUT_BYTES 2.0      /* of a recomputed layer */
#define SCORE_BYTES 5.0      /* per head and two tokens */
#define LOGIT_BYTES 4.0

/* One rank's parameters, and their bytes. */
struct held {
    double dense, experts; /* routed ones */
    double bytes;          /* of both, in the side's dtypes */
};

bool rf_rank_memory_over_dp(const struct rf_side_spec *side)
{
    return rf_layout_ops_of(side->layout)->by_dp;
}

double rf_rank_memory_dp_shards(const struct rf_side_spec *side)
{
    return rf_rank_memory_over_dp(side) ? (double)side->dp / side->dp_replicate
                                        : 1;
}

/* --- Parameters of a stage ------------------------------------------------ */

/* Number of TP, or ETP, ranks that share a part. */
static double sharers_of(const struct rf_model *model,
                         const struct rf_side_spec *side,
                         const struct rf_family *family,
                         const struct rf_part *part)
{
    const struct rf_role_division *division = rf_role_division(part->role);
    const bool repeats =
        division->repeats && rf_layout_ops_of(side->layout)->repeat_kv;
    const double units = (double)rf_part_units(model, part);
    double ranks = 1;
    if (rf_layout_divides(side, family, part)) {
        ranks = division->over == RF_OVER_ETP
                    ? side->etp
                    : rf_layout_tp_ranks(side, family, part, side->tp);
    }
    return repeats && units > 0 ? RF_MIN(ranks, units) : ranks;
}

/* A TP or ETP rank's share of a tensor. */
static double share_of(const struct rf_model *model,
                       const struct rf_side_spec *side,
                       const struct rf_family *family)
{
    double own = 0, all = 0;
    for (uint32_t p = 0; p < family->n_parts; p++) {
        const struct rf_part *part = &family->parts[p];
        const double size = (double)RF_MAX(part->size, 1);
        own += size / sharers_of(model, side, family, part);
        all += size;
    }
    return own / all;
}

/* Number of the family's tensors in a stage, along the layers. */
static uint32_t layers_in_stage(const struct rf_model *model,
                                const struct rf_side_spec *side,
                                const uint32_t *starts, uint32_t stage,
                                const struct rf_family *family)
{
    const bool tied = rf_layout_ops_of(side->layout)->tied_copy &&
                      model->tied_embeddings && family->role == RF_ROLE_EMBED;
    uint32_t n = 0;
    if (family->layers == NULL || family->own_layers) {
        const bool first = stage == 0, last = stage == side->pp - 1;
        const bool has = family->stage == RF_STAGE_EVERY ||
                         (family->stage == RF_STAGE_FIRST && first) ||
                         (family->stage == RF_STAGE_LAST && last) ||
                         (tied && last);
        return has ? family->n_layers : 0;
    }
    for (uint32_t chunk = 0; chunk < side->vpp; chunk++) {
        n +=
            rf_family_layers(family, rf_stage_chunk(side, starts, stage, chunk))
                .count;
    }
    return n;
}

static double bytes_each(const struct rf_side_spec *side,
                         const struct rf_family *family)
{
    const double bytes = rf_dtype_bytes(rf_side_dtype(side, family->dtype));
    const double share =
        side->quantize.format != NULL ? rf_family_converted(family) : 0;
    const double small =
        share > 0 ? rf_quant_bytes_each(side->quantize.format) : bytes;
    return share * small + (1 - share) * bytes;
}

static struct held held_by(const struct rf_model *model,
                           const struct rf_side_spec *side,
                           const uint32_t *starts, uint32_t stage)
{
    struct held held = {0, 0, 0};
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        double n = (double)rf_family_elements(family) / family->n_layers *
                   layers_in_stage(model, side, starts, stage, family);
        n *= share_of(model, side, family) / rf_rank_memory_dp_shards(side);
        n /= family->has_experts ? side->ep : 1;
        *(family->has_experts ? &held.experts : &held.dense) += n;
        held.bytes += n * bytes_each(side, family);
    }
    return held;
}

/* First layers of the stages. Caller frees. A mesh whose layers do not split is
 * refused before any estimate. */
static uint32_t *starts_of(const struct rf_model *model,
                           const struct rf_side_spec *side)
{
    const uint64_t slices = rf_stage_slices(side);
    uint32_t *starts = rf_xcalloc(slices + 1, sizeof(*starts));
    if (rf_stage_starts(rf_layout_ops_of(side->layout), side, model->n_layers,
                        starts, NULL) != RF_OK) {
        for (uint64_t i = 1; i <= slices; i++) {
            starts[i] = model->n_layers;
        }
    }
    return starts;
}

static uint32_t layers_of(const struct rf_side_spec *side,
                          const uint32_t *starts, uint32_t stage)
{
    uint32_t layers = 0;
    for (uint32_t chunk = 0; chunk < side->vpp; chunk++) {
        layers += rf_stage_chunk(side, starts, stage, chunk).count;
    }
    return layers;
}

/* --- Training ------------------------------------------------------------- */

double rf_rank_memory_micro_batches(const struct rf_side_spec *side,
                                    const struct rf_timeline *timeline)
{
    return timeline->micro_batch > 0
               ? timeline->global_batch / (timeline->micro_batch * side->dp)
               : 0;
}

static uint64_t hidden_size(const struct rf_model *model)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        if (model->families[i].role == RF_ROLE_EMBED) {
            return model->families[i].shape[1];
        }
    }
    return 0;
}

/* Micro-batches whose activations a stage keeps. */
static double kept_batches(const struct rf_side_spec *side,
                           const struct rf_timeline *timeline, uint32_t stage)
{
    const double batches = rf_rank_memory_micro_batches(side, timeline);
    const double behind = side->pp - stage;
    const double most =
        side->vpp == 1
            ? behind
            : ((side->vpp - 1.0) * side->pp + 2 * behind - 1) / side->vpp;
    return batches > 0 ? RF_MIN(batches, most) : most;
}

/* For one layer: scores of a rank's tokens with their whole sequence. */
static double score_bytes(const struct rf_model *model,
                          const struct rf_timeline *timeline, double tokens)
{
    const double sequence = timeline->sequence_length > 0
                                ? timeline->sequence_length
                                : timeline->max_tokens_in_packing;
    return timeline->attention == RF_ATTENTION_UNFUSED
               ? SCORE_BYTES * model->heads * sequence * tokens
               : 0;
}

static double activations(const struct rf_model *model,
                          const struct rf_side_spec *side,
                          const struct rf_timeline *timeline,
                          enum rf_recompute recompute, uint32_t layers,
                          uint32_t stage)
{
    const double kept = layers * kept_batches(side, timeline, stage);
    const double tokens =
        (timeline->max_tokens_in_packing > 0
             ? timeline->max_tokens_in_packing
             : timeline->sequence_length * RF_MAX(timeline->micro_batch, 1)) /
        ((double)side->tp * side->cp);
    const double sequence = tokens * (double)hidden_size(model);
    const double scores = score_bytes(model, timeline, tokens);
    const double logits =
        stage == side->pp - 1 ? LOGIT_BYTES * tokens * (double)model->vocab : 0;
    switch (recompute) {
    case RF_RECOMPUTE_FULL:
        return logits + sequence * (INPUT_BYTES * kept + LAYER_BYTES) + scores;
    case RF_RECOMPUTE_SELECTIVE:
        return logits + sequence * LAYER_BYTES * kept + scores;
    default:
        return logits + (sequence * LAYER_BYTES + scores) * kept;
    }
}

/* Ranks with the same dense parameters: as many as `ranks` has TP·PP groups.
 * Ranks with the same experts: as many as EP·ETP·PP groups. */
static double states(const struct rf_side_spec *side, const struct held *held,
                     uint32_t ranks)
{
    const double sharers = (double)ranks / ((double)side->tp * side->pp);
    const double expert_sharers =
        (double)ranks / ((double)side->ep * side->etp * side->pp);
    return rf_rank_memory_over_dp(side)
               ? (held->dense + held->experts) * (STATE_BYTES + OPTIMIZER_BYTES)
               : held->dense * (STATE_BYTES + OPTIMIZER_BYTES / sharers) +
                     held->experts *
                         (STATE_BYTES + OPTIMIZER_BYTES / expert_sharers);
}

struct rf_training_memory
rf_rank_memory_training(const struct rf_model *model,
                        const struct rf_side_spec *side, uint32_t ranks,
                        const struct rf_timeline *timeline,
                        enum rf_recompute recompute)
{
    struct rf_training_memory most = {0, 0};
    uint32_t *starts = starts_of(model, side);
    for (uint32_t stage = 0; stage < side->pp; stage++) {
        const struct held held = held_by(model, side, starts, stage);
        const struct rf_training_memory one = {
            states(side, &held, ranks),
            activations(model, side, timeline, recompute,
                        layers_of(side, starts, stage), stage)};
        if (one.states + one.activations > most.states + most.activations) {
            most = one;
        }
    }
    free(starts);
    return most;
}

double rf_rank_memory_inference(const struct rf_model *model,
                                const struct rf_side_spec *side)
{
    double most = 0;
    uint32_t *starts = starts_of(model, side);
    for (uint32_t stage = 0; stage < side->pp; stage++) {
        const struct held held = held_by(model, side, starts, stage);
        most = RF_MAX(most, held.bytes);
    }
    free(starts);
    return most;
}

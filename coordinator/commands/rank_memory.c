/* What a rank keeps in memory. See rank_memory.h. */
#include "coordinator/commands/rank_memory.h"

#include "common/mem.h"

#define STATE_BYTES 6.0      /* a parameter, on every rank that has it */
#define OPTIMIZER_BYTES 12.0 /* a parameter, divided over these ranks */
#define LAYER_BYTES 34.0     /* an activation, of each layer */
#define INPUT_BYTES 2.0      /* of a layer that is computed again */

struct rf_parameters rf_parameters_of(const struct rf_model *model)
{
    struct rf_parameters sum = {0, 0};
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        double elements = (double)rf_family_elements(family);
        *(family->has_experts ? &sum.experts : &sum.dense) += elements;
    }
    return sum;
}

struct rf_parameters rf_parameters_of_rank(const struct rf_model *model,
                                           const struct rf_side_spec *side)
{
    const struct rf_parameters all = rf_parameters_of(model);
    return (struct rf_parameters){
        .dense = all.dense / ((double)side->tp * side->pp),
        .experts = all.experts / ((double)side->ep * side->etp * side->pp)};
}

double rf_micro_batches(const struct rf_side_spec *side,
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

static double activations(const struct rf_model *model,
                          const struct rf_side_spec *side,
                          const struct rf_timeline *timeline,
                          enum rf_recompute recompute)
{
    const double batches = rf_micro_batches(side, timeline);
    const double kept = batches > 0 ? RF_MIN(batches, side->pp) : side->pp;
    const double layers = (double)model->n_layers / side->pp;
    const double tokens =
        timeline->max_tokens_in_packing > 0
            ? timeline->max_tokens_in_packing
            : timeline->sequence_length * RF_MAX(timeline->micro_batch, 1);
    const double sequence =
        tokens * (double)hidden_size(model) / ((double)side->tp * side->cp);
    return recompute == RF_RECOMPUTE_FULL
               ? sequence * (INPUT_BYTES * layers * kept + LAYER_BYTES)
               : sequence * LAYER_BYTES * layers * kept;
}

struct rf_training_memory
rf_training_memory_of(const struct rf_model *model,
                      const struct rf_side_spec *side, uint32_t ranks,
                      const struct rf_timeline *timeline,
                      enum rf_recompute recompute)
{
    const struct rf_parameters own = rf_parameters_of_rank(model, side);
    const double sharers = (double)ranks / ((double)side->tp * side->pp);
    const double expert_sharers =
        (double)ranks / ((double)side->ep * side->etp * side->pp);
    return (struct rf_training_memory){
        .states =
            own.dense * (STATE_BYTES + OPTIMIZER_BYTES / sharers) +
            own.experts * (STATE_BYTES + OPTIMIZER_BYTES / expert_sharers),
        .activations = activations(model, side, timeline, recompute)};
}

double rf_engine_bytes_of(const struct rf_model *model,
                          const struct rf_side_spec *side)
{
    const struct rf_parameters own = rf_parameters_of_rank(model, side);
    return (own.dense + own.experts) * (double)model->bytes /
           (double)model->parameters;
}

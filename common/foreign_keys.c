/*
 * ChatLearn's keys (runtime_args and models of its configurations), most of
 * them Megatron-LM's arguments. See foreign_keys.h.
 */
#include "common/foreign_keys.h"

#include <string.h>

#include "common/mem.h"

static const struct {
    const char *theirs, *ours;
} keys[] = {
    {"train_global_batch_size", "timeline.global_batch"},
    {"global_batch_size", "timeline.global_batch"},
    {"train_micro_batch_size", "timeline.micro_batch"},
    {"micro_batch_size", "timeline.micro_batch"},
    {"packing", "timeline.max_tokens_in_packing"},
    {"max_token_in_packing", "timeline.max_tokens_in_packing"},
    {"seq_length", "timeline.sequence_length"},
    {"recompute_granularity", "timeline.recompute"},
    {"attention_backend", "timeline.attention"},
    {"tensor_model_parallel_size", "tp of train or infer"},
    {"pipeline_model_parallel_size", "pp of train or infer"},
    {"virtual_pipeline_model_parallel_size", "vpp of train"},
    {"context_parallel_size", "cp of train or infer"},
    {"expert_model_parallel_size", "ep of train or infer"},
    {"expert_tensor_parallel_size", "etp of train or infer"},
    {"decoder_first_pipeline_num_layers",
     "num_layers_in_first_pipeline_stage of train"},
    {"decoder_last_pipeline_num_layers",
     "num_layers_in_last_pipeline_stage of train"},
    {"num_gpu", "slots of nodes"},
    {"runtime_args", "timeline"},
    {"policy_trainer", "train of scenarios, and timeline"},
};

const char *rf_foreign_key(const char *key)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        if (strcmp(keys[i].theirs, key) == 0) {
            return keys[i].ours;
        }
    }
    return NULL;
}

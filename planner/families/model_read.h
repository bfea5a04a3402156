/* Models from their inline descriptions. */
#ifndef RF_PLANNER_FAMILIES_MODEL_READ_H
#define RF_PLANNER_FAMILIES_MODEL_READ_H

#include "common/json.h"
#include "planner/model/model.h"

/*
 * Builds a model from its *inline* description, in which file contents replace
 * paths (see coordinator/config/model_file.h). Each form also takes "name", the
 * model's name in results, and "unknown_tensors": "error" (default) or
 * "replicate", see planner/layout/unknown_tensors.h.
 *
 * {"config": {…}}: a Hugging Face config.json of a model type that has a table
 * (planner/families/), or with "rules" beside it. Fields with a value in the
 * table may be absent or null; the dtype is then bfloat16. Keys that do not
 * affect weights are ignored; so is quantisation, which is listed in
 * not_counted, as are parts left out. Overrides beside "config" replace its
 * fields (list and spellings: model_fields.c). An override that the table does
 * not read is an error.
 *
 * "mtp": true and "vision": "replicate" or "split" beside "config" or
 * "manifest" add parts that are otherwise left out (components.h).
 *
 * "rules" beside "config" or "manifest": a table, a list of rules that take
 * precedence over the model type's table, or "config": those of the config's
 * own tensor-parallel plan (docs/MODELS.md).
 *
 * {"megatron": {…}}: num_layers, hidden_size, num_attention_heads, vocab_size
 * are required; num_query_groups (default: heads), kv_channels (hidden/heads),
 * swiglu (false), ffn_hidden_size (4·hidden, with swiglu ⌊8·hidden/3/64⌋·64),
 * untie_embeddings_and_output_weights (or untie; false), qk_layernorm (false),
 * dtype (bfloat16); num_experts with moe_ffn_hidden_size (ffn_hidden_size),
 * moe_shared_expert_intermediate_size (0), moe_layer_freq (1: every layer; N:
 * layers 0, N, 2N…; or a list of 0 and 1), moe_router_enable_expert_bias
 * (false); multi_latent_attention with q_lora_rank (none), kv_lora_rank (32),
 * qk_head_dim (128), qk_pos_emb_head_dim (64), v_head_dim (128).
 *
 * {"manifest": {name: {"shape": […], "dtype": "BF16"}}}: any tensors. Roles and
 * families follow from the names, by "rules", the table of the config's model
 * type, and the common names. Tensor parallelism over attention heads needs
 * num_attention_heads, num_key_value_heads (default: the same) and head_dim
 * (default: derived) beside it, or a "config" with them. Rotary frequencies
 * and, with a config, layers beyond its num_hidden_layers and scales of
 * quantised tensors are left out and listed in not_counted. With "folder"
 * beside it each tensor also has "file" and "offset", the place of its real
 * bytes; see `files` of struct rf_model.
 *
 * {"tensor": {"shape": […], "dtype": "F32", "name": "tensor"}}: one tensor of
 * role RF_ROLE_OTHER, for layout spec.
 *
 * The caller frees the result with rf_model_destroy(). Errors name the JSON
 * path and the rule. Sizes are checked: tensors have 1 to 5 dimensions, none of
 * them 0, and all tensors together stay below 2^63 bytes.
 */
enum rf_status rf_model_from_json(const struct rf_jnode *node,
                                  struct rf_model **out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The JSON Schema of inline descriptions, with the keys of all forms. It leaves
 * open what "config" and "rules" hold. A new reference. */
json_t *rf_model_schema(void);

#endif

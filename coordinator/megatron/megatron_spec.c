/*
 * Specs by their module, the last part of "package.module". Those of
 * Megatron-Core are GPT; those of slime's plugins are Hugging Face's model
 * types, and the flags give most of their sizes. Other sizes are the defaults
 * of the type's class (Transformers 5.23.0), unless a flag overrides them.
 */
#include "coordinator/megatron/megatron_spec.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/megatron/megatron_values.h"

#define DELTA_NET                                                              \
    "{\"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32, "          \
    "\"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128, "           \
    "\"linear_conv_kernel_dim\": 4}"

struct spec {
    const char *module;
    const char *dense, *sparse; /* model types; NULL: GPT */
    const char *defaults;       /* sizes that need no flag */
};

static const struct spec specs[] = {
    {"local", NULL, NULL, NULL},
    {"gpt_layer_specs", NULL, NULL, NULL},
    {"glm4", NULL, NULL, NULL}, /* its norms have flags */
    {"minimax_m2", "minimax_m2", "minimax_m2", "{}"},
    {"glm5", "glm_moe_dsa", "glm_moe_dsa",
     "{\"index_n_heads\": 32, \"index_head_dim\": 128}"},
    {"qwen3_next", "qwen3_next", "qwen3_next", DELTA_NET},
    {"qwen3_5", "qwen3_5_text", "qwen3_5_moe_text", DELTA_NET},
    {"qwen3_5_vl", "qwen3_5_text", "qwen3_5_moe_text", DELTA_NET},
};

/* Types use several names for one size; a table reads only its own. */
static const struct rf_megatron_copied of_config[] = {
    {"num-layers", "num_hidden_layers", NULL},
    {"hidden-size", "hidden_size", NULL},
    {"ffn-hidden-size", "intermediate_size", NULL},
    {"num-attention-heads", "num_attention_heads", NULL},
    {"num-query-groups", "num_key_value_heads", "group-query-attention"},
    {"kv-channels", "head_dim", NULL},
    {"vocab-size", "vocab_size", NULL},
    {"q-lora-rank", "q_lora_rank", NULL},
    {"kv-lora-rank", "kv_lora_rank", NULL},
    {"qk-head-dim", "qk_nope_head_dim", NULL},
    {"qk-pos-emb-head-dim", "qk_rope_head_dim", NULL},
    {"v-head-dim", "v_head_dim", NULL},
    {"num-experts", "num_experts", NULL},
    {"num-experts", "num_local_experts", NULL},
    {"num-experts", "n_routed_experts", NULL},
    {"moe-ffn-hidden-size", "moe_intermediate_size", NULL},
    {"moe-shared-expert-intermediate-size", "shared_expert_intermediate_size",
     NULL},
    {"mtp-num-layers", "num_nextn_predict_layers", NULL},
    {"mtp-num-layers", "mtp_num_hidden_layers", NULL},
    {"linear-num-key-heads", "linear_num_key_heads", NULL},
    {"linear-num-value-heads", "linear_num_value_heads", NULL},
    {"linear-key-head-dim", "linear_key_head_dim", NULL},
    {"linear-value-head-dim", "linear_value_head_dim", NULL},
    {"linear-conv-kernel-dim", "linear_conv_kernel_dim", NULL},
};

static const struct spec *find(const char *text)
{
    const char *dot = strrchr(text, '.');
    const char *module = dot != NULL ? dot + 1 : text;
    for (size_t i = 0; i < RF_ARRAY_SIZE(specs); i++) {
        if (strcmp(specs[i].module, module) == 0) {
            return &specs[i];
        }
    }
    return NULL;
}

/* Layers without experts: in GLM the first ones, in Qwen any. */
static void add_dense_layers(const struct rf_megatron_args *args,
                             json_t *config)
{
    const json_t *pattern = json_object_get(args->values, "moe-layer-freq");
    json_t *dense = json_array(), *sparse;
    json_int_t first = -1;
    size_t i;
    json_array_foreach (pattern, i, sparse) {
        if (json_integer_value(sparse) == 0) {
            json_array_append_new(dense, json_integer((json_int_t)i));
        } else if (first < 0) {
            first = (json_int_t)i;
        }
    }
    json_object_set_new(config, "mlp_only_layers", dense);
    json_object_set_new(config, "first_k_dense_replace",
                        json_integer(first > 0 ? first : 0));
}

static json_t *config_of(struct rf_megatron_args *args, const struct spec *spec)
{
    const json_int_t width = rf_megatron_number(args, "moe-ffn-hidden-size", 0);
    const json_int_t shared =
        rf_megatron_number(args, "moe-shared-expert-intermediate-size", 0);
    json_t *config = json_loads(spec->defaults, 0, NULL);
    rf_megatron_copy(args, of_config, RF_ARRAY_SIZE(of_config), config);
    json_object_set_new(config, "model_type",
                        json_string(rf_megatron_number(args, "num-experts", 0)
                                        ? spec->sparse
                                        : spec->dense));
    json_object_set_new(config, "tie_word_embeddings",
                        json_boolean(!rf_megatron_has(
                            args, "untie-embeddings-and-output-weights")));
    json_object_set_new(config, "n_shared_experts",
                        json_integer(width > 0 ? shared / width : 0));
    add_dense_layers(args, config);
    return config;
}

enum rf_status rf_megatron_spec(struct rf_megatron_args *args, json_t **out,
                                struct rf_err *err)
{
    const char *text = rf_megatron_word(args, "spec", "local");
    const struct spec *spec = find(text);
    if (spec == NULL) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--spec %.60s: unsupported model; give its "
                          "config.json in a cluster file",
                          text);
    }
    if (spec->defaults == NULL) {
        return !rf_megatron_has(args, "attention-output-gate")
                   ? RF_OK
                   : rf_err_set(err, RF_ERR_USAGE,
                                "--attention-output-gate: needs a --spec with "
                                "the gate's weights, such as qwen3_next");
    }
    if (strcmp(spec->defaults, "{}") != 0) {
        rf_info("--spec %s: unless a flag says otherwise, %s", text,
                spec->defaults);
    }
    *out = json_pack("{s:o, s:b}", "config", config_of(args, spec), "mtp",
                     (int)(rf_megatron_number(args, "mtp-num-layers", 0) > 0));
    return RF_OK;
}

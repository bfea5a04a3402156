/*
 * From Megatron-LM's flags to a cluster file. See megatron_cluster.h.
 *
 * A flag that is a key of the model's "megatron" block or of a side is copied
 * by a table; what follows from several is worked out below. The values are
 * checked by who reads the file.
 */
#include "coordinator/megatron/megatron_cluster.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "planner/scenario/world.h"

#define VOCAB_SIZE 50257 /* the benchmark's, as GPT-2 has it */

struct copied_flag {
    const char *flag, *key;
    const char *needs; /* the flag without which it has no meaning, or NULL */
};

static const struct copied_flag of_model[] = {
    {"num-layers", "num_layers", NULL},
    {"hidden-size", "hidden_size", NULL},
    {"num-attention-heads", "num_attention_heads", NULL},
    {"num-query-groups", "num_query_groups", "group-query-attention"},
    {"kv-channels", "kv_channels", NULL},
    {"ffn-hidden-size", "ffn_hidden_size", NULL},
    {"add-qkv-bias", "add_qkv_bias", NULL},
    {"untie-embeddings-and-output-weights",
     "untie_embeddings_and_output_weights", NULL},
    {"num-experts", "num_experts", NULL},
    {"moe-ffn-hidden-size", "moe_ffn_hidden_size", "num-experts"},
    {"moe-shared-expert-intermediate-size",
     "moe_shared_expert_intermediate_size", "num-experts"},
    {"moe-shared-expert-gate", "moe_shared_expert_gate", "num-experts"},
    {"moe-router-enable-expert-bias", "moe_router_enable_expert_bias",
     "num-experts"},
    {"moe-layer-freq", "moe_layer_freq", "num-experts"},
    {"multi-latent-attention", "multi_latent_attention", NULL},
    {"q-lora-rank", "q_lora_rank", "multi-latent-attention"},
    {"kv-lora-rank", "kv_lora_rank", "multi-latent-attention"},
    {"qk-head-dim", "qk_head_dim", "multi-latent-attention"},
    {"qk-pos-emb-head-dim", "qk_pos_emb_head_dim", "multi-latent-attention"},
    {"v-head-dim", "v_head_dim", "multi-latent-attention"},
};

static const struct copied_flag of_train[] = {
    {"pipeline-model-parallel-size", "pp", NULL},
    {"context-parallel-size", "cp", NULL},
    {"expert-model-parallel-size", "ep", NULL},
    {"expert-tensor-parallel-size", "etp", NULL},
    {"num-virtual-stages-per-pipeline-rank", "vpp", NULL},
    {"decoder-first-pipeline-num-layers", "num_layers_in_first_pipeline_stage",
     NULL},
    {"decoder-last-pipeline-num-layers", "num_layers_in_last_pipeline_stage",
     NULL},
};

static const struct copied_flag of_infer[] = {
    {"rl-inference-pipeline-model-parallel-size", "pp", NULL},
    {"rl-inference-expert-model-parallel-size", "ep", NULL},
    {"rl-inference-expert-tensor-model-parallel-size", "etp", NULL},
};

static bool is_given(const struct rf_megatron_args *args, const char *name)
{
    return json_object_get(args->values, name) != NULL;
}

static json_int_t number_of(const struct rf_megatron_args *args,
                            const char *name, json_int_t otherwise)
{
    const json_t *value = json_object_get(args->values, name);
    return value != NULL ? json_integer_value(value) : otherwise;
}

/* The word of a flag, or what it is without the flag. */
static const char *word_of(const struct rf_megatron_args *args,
                           const char *name, const char *otherwise)
{
    const char *word = json_string_value(json_object_get(args->values, name));
    return word != NULL ? word : otherwise;
}

const char *rf_megatron_backend(const struct rf_megatron_args *args)
{
    return word_of(args, "refit-method", "nvshmem");
}

static void put(json_t *object, const char *key, json_int_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static void copy(struct rf_megatron_args *args, const struct copied_flag *list,
                 size_t n, json_t *out)
{
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_object_get(args->values, list[i].flag);
        if (value == NULL) {
            continue;
        }
        if (list[i].needs != NULL && number_of(args, list[i].needs, 0) == 0 &&
            !json_is_true(json_object_get(args->values, list[i].needs))) {
            rf_megatron_is_idle(args, list[i].flag);
        } else {
            json_object_set(out, list[i].key, value);
        }
    }
}

/* --- Rules between flags -------------------------------------------------- */

static enum rf_status check_missing(const struct rf_megatron_args *args,
                                    struct rf_err *err)
{
    static const char *const required[] = {
        "refit-mode",          "num-layers", "hidden-size",
        "num-attention-heads", "seq-length", "max-position-embeddings"};
    char list[200] = "";
    for (size_t i = 0; i < RF_ARRAY_SIZE(required); i++) {
        size_t used = strlen(list);
        if (!is_given(args, required[i])) {
            snprintf(list + used, sizeof(list) - used, "%s--%s",
                     used > 0 ? ", " : "", required[i]);
        }
    }
    return list[0] == '\0'
               ? RF_OK
               : rf_err_set(err, RF_ERR_USAGE, "megatron: missing %s", list);
}

static enum rf_status check_pairs(const struct rf_megatron_args *args,
                                  struct rf_err *err)
{
    static const char *const exclude[][2] = {
        {"bf16", "fp16"},
        {"swiglu", "quick-geglu"},
        {"num-virtual-stages-per-pipeline-rank",
         "num-layers-per-virtual-pipeline-stage"},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(exclude); i++) {
        if (is_given(args, exclude[i][0]) && is_given(args, exclude[i][1])) {
            return rf_err_set(err, RF_ERR_USAGE,
                              "--%s and --%s cannot be combined; remove one",
                              exclude[i][0], exclude[i][1]);
        }
    }
    if (number_of(args, "max-position-embeddings", 0) <
        number_of(args, "seq-length", 0)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--max-position-embeddings must not be less than "
                          "--seq-length");
    }
    if (is_given(args, "multi-latent-attention") &&
        strcmp(word_of(args, "transformer-impl", ""), "local") == 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--transformer-impl local cuts the compressing "
                          "matrices of --multi-latent-attention, which is not "
                          "described; remove it");
    }
    return RF_OK;
}

/* Megatron-Core has biases in experts only where these are not cut. */
static enum rf_status check_experts(const struct rf_megatron_args *args,
                                    const struct rf_spec *spec,
                                    struct rf_err *err)
{
    if (number_of(args, "num-experts", 0) == 0 ||
        is_given(args, "disable-bias-linear")) {
        return RF_OK;
    }
    if (spec->train.etp > 1 || spec->infer.etp > 1) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "experts that are cut over expert tensor "
                          "parallelism have no biases: add "
                          "--disable-bias-linear");
    }
    return number_of(args, "moe-shared-expert-intermediate-size", 0) == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_USAGE,
                            "shared experts have no biases: add "
                            "--disable-bias-linear");
}

/* --- The model ------------------------------------------------------------ */

static const char *dtype_of(const struct rf_megatron_args *args)
{
    return is_given(args, "bf16")   ? "bfloat16"
           : is_given(args, "fp16") ? "float16"
                                    : "float32";
}

static enum rf_status add_positions(const struct rf_megatron_args *args,
                                    json_t *model, struct rf_err *err)
{
    const char *kind =
        is_given(args, "use-rotary-position-embeddings")
            ? "rope"
            : word_of(args, "position-embedding-type", "learned_absolute");
    bool learned = strcmp(kind, "learned_absolute") == 0;
    if (learned && is_given(args, "no-position-embedding")) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--no-position-embedding: give "
                          "--position-embedding-type none or rope");
    }
    json_object_set_new(model, "position_embedding_type", json_string(kind));
    if (learned) {
        put(model, "max_position_embeddings",
            number_of(args, "max-position-embeddings", 0));
    }
    return RF_OK;
}

/* A "megatron" block; a new reference in any case. */
static enum rf_status model_of(struct rf_megatron_args *args, json_t **out,
                               struct rf_err *err)
{
    json_t *model = json_object();
    *out = model;
    copy(args, of_model, RF_ARRAY_SIZE(of_model), model);
    put(model, "vocab_size", number_of(args, "vocab-size", VOCAB_SIZE));
    json_object_set_new(
        model, "normalization",
        json_string(word_of(args, "normalization", "LayerNorm")));
    json_object_set_new(model, "add_bias_linear",
                        json_boolean(!is_given(args, "disable-bias-linear")));
    json_object_set_new(model, "qk_layernorm",
                        json_boolean(is_given(args, "qk-layernorm")));
    json_object_set_new(model, "dtype", json_string(dtype_of(args)));
    if (is_given(args, "group-query-attention") &&
        !is_given(args, "num-query-groups")) {
        put(model, "num_query_groups", 1);
    }
    if (is_given(args, "swiglu") || is_given(args, "quick-geglu")) {
        json_object_set_new(model, "swiglu", json_true());
    }
    if (is_given(args, "quick-geglu") && !is_given(args, "ffn-hidden-size")) {
        put(model, "ffn_hidden_size", 4 * number_of(args, "hidden-size", 0));
    }
    return add_positions(args, model, err);
}

/* --- The scenario --------------------------------------------------------- */

/* --num-layers-per-virtual-pipeline-stage as the number of virtual stages. */
static enum rf_status add_virtual_stages(const struct rf_megatron_args *args,
                                         json_t *train, struct rf_err *err)
{
    json_int_t layers = number_of(args, "num-layers", 0);
    json_int_t stages = number_of(args, "pipeline-model-parallel-size", 1);
    json_int_t each =
        number_of(args, "num-layers-per-virtual-pipeline-stage", 0);
    if (!is_given(args, "num-layers-per-virtual-pipeline-stage")) {
        return RF_OK;
    }
    if (each == 0 || stages == 0 || layers % stages != 0 ||
        layers / stages % each != 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--num-layers-per-virtual-pipeline-stage %lld does "
                          "not divide the layers of a pipeline stage",
                          (long long)each);
    }
    put(train, "vpp", layers / stages / each);
    return RF_OK;
}

/* "tp2pp2": the sizes that are not 1. */
static void name_side(const json_t *side, char *out, size_t size)
{
    static const char *const keys[] = {"pp", "ep", "etp", "cp", "vpp"};
    int used =
        snprintf(out, size, "tp%lld",
                 (long long)json_integer_value(json_object_get(side, "tp")));
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys) && (size_t)used < size; i++) {
        json_int_t n = json_integer_value(json_object_get(side, keys[i]));
        if (n > 1) {
            used += snprintf(out + used, size - (size_t)used, "%s%lld", keys[i],
                             (long long)n);
        }
    }
}

/* A new reference in any case. */
static enum rf_status scenario_of(struct rf_megatron_args *args, json_t **out,
                                  struct rf_err *err)
{
    const bool collocated =
        strcmp(word_of(args, "refit-mode", ""), "collocated") == 0;
    json_t *train = json_object(), *infer = json_object();
    char from[80], to[80];
    enum rf_status status;
    put(train, "tp", number_of(args, "tensor-model-parallel-size", 1));
    put(infer, "tp",
        number_of(args, "rl-inference-tensor-model-parallel-size", 1));
    copy(args, of_train, RF_ARRAY_SIZE(of_train), train);
    copy(args, of_infer, RF_ARRAY_SIZE(of_infer), infer);
    status = add_virtual_stages(args, train, err);
    name_side(train, from, sizeof(from));
    name_side(infer, to, sizeof(to));
    *out = json_pack(
        "{s:s++, s:s, s:o, s:o, s:s, s:I, s:I}", "name", from, "-to-", to,
        "mode", collocated ? "colocated" : "disaggregated", "train", train,
        "infer", infer, "method", rf_megatron_backend(args), "warmup",
        number_of(args, "num-benchmark-warmup", 2), "iterations",
        number_of(args, "num-benchmark-iterations", 10));
    return status;
}

/* How many slots the scenario needs. */
static enum rf_status count_slots(const struct rf_megatron_args *args,
                                  json_t *scenario, json_int_t *out,
                                  struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_root(scenario, RF_MEGATRON_FILE);
    struct rf_spec *spec = NULL;
    uint64_t slots;
    enum rf_status status;
    RF_TRY(rf_spec_from_json(&node, NULL, 0, &spec, err));
    status = check_experts(args, spec, err);
    slots = rf_world_smallest(spec);
    rf_spec_destroy(spec);
    if (status == RF_OK && slots == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "megatron: these sizes need more than %u ranks",
                          RF_WORLD_MAX_RANKS);
    }
    *out = (json_int_t)slots;
    return status;
}

/* What was only checked. */
static void note_idle(struct rf_megatron_args *args, const json_t *model)
{
    static const char *const checked[] = {"seq-length", "no-position-embedding",
                                          "transformer-impl"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(checked); i++) {
        if (is_given(args, checked[i])) {
            rf_megatron_is_idle(args, checked[i]);
        }
    }
    if (json_object_get(model, "max_position_embeddings") == NULL) {
        rf_megatron_is_idle(args, "max-position-embeddings");
    }
}

enum rf_status rf_megatron_cluster(struct rf_megatron_args *args, json_t **out,
                                   struct rf_err *err)
{
    json_t *model = NULL, *scenario = NULL;
    json_int_t slots = 0;
    enum rf_status status;
    if ((status = check_missing(args, err)) != RF_OK ||
        (status = check_pairs(args, err)) != RF_OK ||
        (status = model_of(args, &model, err)) != RF_OK ||
        (status = scenario_of(args, &scenario, err)) != RF_OK ||
        (status = count_slots(args, scenario, &slots, err)) != RF_OK) {
        json_decref(model);
        json_decref(scenario);
        return status;
    }
    note_idle(args, model);
    *out = json_pack("{s:s, s:{s:s}, s:[{s:s, s:I}], s:{s:o}, s:[o]}", "name",
                     "megatron", "launch", "method", "local", "nodes", "host",
                     "localhost", "slots", slots, "model", "megatron", model,
                     "scenarios", scenario);
    return RF_OK;
}

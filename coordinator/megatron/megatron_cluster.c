/*
 * Converts Megatron-LM's flags to a cluster file. See megatron_cluster.h.
 *
 * Flags that are keys of the model's "megatron" block or of a side are copied
 * by a table; values that follow from several flags are computed below. The
 * reader of the file checks the values.
 */
#include "coordinator/megatron/megatron_cluster.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/megatron/megatron_spec.h"
#include "coordinator/megatron/megatron_stages.h"
#include "coordinator/megatron/megatron_table.h"
#include "coordinator/megatron/megatron_values.h"
#include "planner/scenario/world.h"

#define LAYOUT "pipeline-model-parallel-layout"
#define VOCAB_SIZE 50257 /* the benchmark's, from GPT-2 */

static const struct rf_megatron_copied of_model[] = {
    {"num-layers", "num_layers", NULL},
    {"hidden-size", "hidden_size", NULL},
    {"num-attention-heads", "num_attention_heads", NULL},
    {"num-query-groups", "num_query_groups", "group-query-attention"},
    {"kv-channels", "kv_channels", NULL},
    {"ffn-hidden-size", "ffn_hidden_size", NULL},
    {"add-qkv-bias", "add_qkv_bias", NULL},
    {"untie-embeddings-and-output-weights",
     "untie_embeddings_and_output_weights", NULL},
    {"post-self-attn-layernorm", "post_self_attn_layernorm", NULL},
    {"post-mlp-layernorm", "post_mlp_layernorm", NULL},
    {"mtp-num-layers", "mtp_num_layers", NULL},
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

static const struct rf_megatron_copied of_train[] = {
    {"pipeline-model-parallel-size", "pp", NULL},
    {"context-parallel-size", "cp", NULL},
    {"expert-model-parallel-size", "ep", NULL},
    {"expert-tensor-parallel-size", "etp", NULL},
    {"num-virtual-stages-per-pipeline-rank", "vpp", NULL},
    {"decoder-first-pipeline-num-layers", "num_layers_in_first_pipeline_stage",
     NULL},
    {"decoder-last-pipeline-num-layers", "num_layers_in_last_pipeline_stage",
     NULL},
    {"make-vocab-size-divisible-by", "make_vocab_size_divisible_by", NULL},
};

static const struct rf_megatron_copied of_infer[] = {
    {"rl-inference-pipeline-model-parallel-size", "pp", NULL},
    {"rl-inference-expert-model-parallel-size", "ep", NULL},
    {"rl-inference-expert-tensor-model-parallel-size", "etp", NULL},
};

const char *rf_megatron_backend(const struct rf_megatron_args *args)
{
    return rf_megatron_word(args, "refit-method", "nvshmem");
}

static void put(json_t *object, const char *key, json_int_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

/* --- Rules between flags -------------------------------------------------- */

static enum rf_status check_missing(const struct rf_megatron_args *args,
                                    struct rf_err *err)
{
    enum rf_status status = RF_OK;
    char *list = NULL;
    for (const struct rf_megatron_flag *f = rf_megatron_flags; f->name != NULL;
         f++) {
        if (f->fallback == rf_megatron_required &&
            !rf_megatron_has(args, f->name)) {
            rf_text_add(&list, ", ", "--%s", f->name);
        }
    }
    if (list != NULL) {
        status = rf_err_set(err, RF_ERR_USAGE,
                            "megatron: missing %s; \"refit-coord megatron "
                            "--help\" ends with an example",
                            list);
    }
    free(list);
    return status;
}

static enum rf_status check_pairs(const struct rf_megatron_args *args,
                                  struct rf_err *err)
{
    static const char *const exclude[][2] = {
        {"bf16", "fp16"},
        {"swiglu", "quick-geglu"},
        {"num-virtual-stages-per-pipeline-rank",
         "num-layers-per-virtual-pipeline-stage"},
        {LAYOUT, "num-virtual-stages-per-pipeline-rank"},
        {LAYOUT, "num-layers-per-virtual-pipeline-stage"},
        {LAYOUT, "decoder-first-pipeline-num-layers"},
        {LAYOUT, "decoder-last-pipeline-num-layers"},
        {LAYOUT, "account-for-embedding-in-pipeline-split"},
        {LAYOUT, "account-for-loss-in-pipeline-split"},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(exclude); i++) {
        if (rf_megatron_has(args, exclude[i][0]) &&
            rf_megatron_has(args, exclude[i][1])) {
            return rf_err_set(err, RF_ERR_USAGE,
                              "--%s and --%s cannot be combined; remove one",
                              exclude[i][0], exclude[i][1]);
        }
    }
    if (rf_megatron_number(args, "max-position-embeddings", 0) <
        rf_megatron_number(args, "seq-length", 0)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--max-position-embeddings must not be less than "
                          "--seq-length");
    }
    if (rf_megatron_has(args, "multi-latent-attention") &&
        strcmp(rf_megatron_word(args, "transformer-impl", ""), "local") == 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--transformer-impl local is not supported with "
                          "--multi-latent-attention, whose compression "
                          "matrices it splits; remove it");
    }
    return RF_OK;
}

/* --- The model ------------------------------------------------------------ */

static const char *dtype_of(const struct rf_megatron_args *args)
{
    return rf_megatron_has(args, "bf16")   ? "bfloat16"
           : rf_megatron_has(args, "fp16") ? "float16"
                                           : "float32";
}

static enum rf_status add_positions(const struct rf_megatron_args *args,
                                    json_t *model, struct rf_err *err)
{
    const char *kind = rf_megatron_has(args, "use-rotary-position-embeddings")
                           ? "rope"
                           : rf_megatron_word(args, "position-embedding-type",
                                              "learned_absolute");
    bool learned = strcmp(kind, "learned_absolute") == 0;
    if (learned && rf_megatron_has(args, "no-position-embedding")) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--no-position-embedding: give "
                          "--position-embedding-type none or rope");
    }
    json_object_set_new(model, "position_embedding_type", json_string(kind));
    if (learned) {
        put(model, "max_position_embeddings",
            rf_megatron_number(args, "max-position-embeddings", 0));
    }
    return RF_OK;
}

/* A "megatron" block as a model; a new reference in any case. */
static enum rf_status block_of(struct rf_megatron_args *args, json_t **out,
                               struct rf_err *err)
{
    json_t *model = json_object();
    *out = json_pack("{s:o}", "megatron", model);
    rf_megatron_copy(args, of_model, RF_ARRAY_SIZE(of_model), model);
    put(model, "vocab_size",
        rf_megatron_number(args, "vocab-size", VOCAB_SIZE));
    json_object_set_new(
        model, "normalization",
        json_string(rf_megatron_word(args, "normalization", "LayerNorm")));
    json_object_set_new(
        model, "add_bias_linear",
        json_boolean(!rf_megatron_has(args, "disable-bias-linear")));
    json_object_set_new(model, "qk_layernorm",
                        json_boolean(rf_megatron_has(args, "qk-layernorm")));
    json_object_set_new(model, "dtype", json_string(dtype_of(args)));
    if (rf_megatron_has(args, "group-query-attention") &&
        !rf_megatron_has(args, "num-query-groups")) {
        put(model, "num_query_groups", 1);
    }
    if (rf_megatron_has(args, "swiglu") ||
        rf_megatron_has(args, "quick-geglu")) {
        json_object_set_new(model, "swiglu", json_true());
    }
    if (rf_megatron_has(args, "quick-geglu") &&
        !rf_megatron_has(args, "ffn-hidden-size")) {
        put(model, "ffn_hidden_size",
            4 * rf_megatron_number(args, "hidden-size", 0));
    }
    return add_positions(args, model, err);
}

/* Likewise; "--spec" may ask for another model than GPT. */
static enum rf_status model_of(struct rf_megatron_args *args, json_t **out,
                               struct rf_err *err)
{
    *out = NULL;
    RF_TRY(rf_megatron_spec(args, out, err));
    if (*out == NULL) {
        return block_of(args, out, err);
    }
    json_object_set_new(*out, "dtype", json_string(dtype_of(args)));
    return RF_OK;
}

/* --- The scenario --------------------------------------------------------- */

/* "tp2pp2": TP and the other sizes that are not 1. */
static char *name_side(const json_t *side)
{
    static const char *const keys[] = {"tp", "pp", "ep", "etp", "cp", "vpp"};
    char *name = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        json_int_t n = json_integer_value(json_object_get(side, keys[i]));
        if (n > 1 || i == 0) {
            rf_text_add(&name, "", "%s%lld", keys[i], (long long)n);
        }
    }
    return name;
}

/* A new reference in any case. */
static enum rf_status scenario_of(struct rf_megatron_args *args, json_t **out,
                                  struct rf_err *err)
{
    const bool collocated =
        strcmp(rf_megatron_word(args, "refit-mode", ""), "collocated") == 0;
    json_t *train = json_object(), *infer = json_object();
    char *from, *to;
    enum rf_status status;
    put(train, "tp", rf_megatron_number(args, "tensor-model-parallel-size", 1));
    put(infer, "tp",
        rf_megatron_number(args, "rl-inference-tensor-model-parallel-size", 1));
    rf_megatron_copy(args, of_train, RF_ARRAY_SIZE(of_train), train);
    rf_megatron_copy(args, of_infer, RF_ARRAY_SIZE(of_infer), infer);
    status = rf_megatron_stages(args, train, err);
    from = name_side(train);
    to = name_side(infer);
    *out = json_pack(
        "{s:s++, s:s, s:o, s:o, s:s, s:I, s:I}", "name", from, "-to-", to,
        "mode", collocated ? "colocated" : "disaggregated", "train", train,
        "infer", infer, "method", rf_megatron_backend(args), "warmup",
        rf_megatron_number(args, "num-benchmark-warmup", 2), "iterations",
        rf_megatron_number(args, "num-benchmark-iterations", 10));
    free(from);
    free(to);
    return status;
}

/* The number of slots that the scenario needs. */
static enum rf_status count_slots(json_t *scenario, json_int_t *out,
                                  struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_root(scenario, RF_MEGATRON_FILE);
    struct rf_spec *spec = NULL;
    uint64_t slots;
    RF_TRY(rf_spec_from_json(&node, NULL, 0, &spec, err));
    slots = rf_world_smallest(spec);
    rf_spec_destroy(spec);
    if (slots == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "megatron: these sizes need more than %u ranks",
                          RF_WORLD_MAX_RANKS);
    }
    *out = (json_int_t)slots;
    return RF_OK;
}

/* Records as idle the flags that are only checked. */
static void note_idle(struct rf_megatron_args *args, const json_t *model)
{
    static const char *const checked[] = {"seq-length", "no-position-embedding",
                                          "transformer-impl"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(checked); i++) {
        if (rf_megatron_has(args, checked[i])) {
            rf_megatron_is_idle(args, checked[i]);
        }
    }
    if (json_object_get(json_object_get(model, "megatron"),
                        "max_position_embeddings") == NULL) {
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
        (status = count_slots(scenario, &slots, err)) != RF_OK) {
        json_decref(model);
        json_decref(scenario);
        return status;
    }
    note_idle(args, model);
    *out = json_pack("{s:s, s:{s:s}, s:[{s:s, s:I}], s:o, s:[o]}", "name",
                     "megatron", "launch", "method", "local", "nodes", "host",
                     "localhost", "slots", slots, "model", model, "scenarios",
                     scenario);
    return RF_OK;
}

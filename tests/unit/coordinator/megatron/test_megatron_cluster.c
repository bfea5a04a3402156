/* Clusters from Megatron-LM's flags: meshes, worlds, and the parameters of the
 * model, counted module by module as Megatron-Core builds a GPTModel. */
#include "coordinator/megatron/megatron_cluster.h"
#include "planner/families/model_read.h"
#include "planner/model/model.h"
#include "tests/lib/auto_planner.h"
#include "tests/lib/quotes.h"
#include "tests/unit/coordinator/megatron/megatron_lab.h"
#include "tests/unit/unit.h"

/* --- Parameters ----------------------------------------------------------- */

struct gpt {
    bool root_norm, no_bias, qkv_bias, gated, untied, qk_norm;
    uint64_t groups, channels, ffn; /* 0: heads, hidden / heads, 4 hidden */
    uint64_t vocab;                 /* 0: 200 */
    bool no_positions;
    uint64_t experts, expert_ffn, shared; /* expert_ffn 0: ffn */
    uint64_t dense_layers;                /* of 4, with experts */
    bool shared_gate, expert_bias;
    uint64_t attention_norm, mlp_norm; /* behind them, per layer */
    uint64_t mtp;                      /* layers like the last one */
    bool latent;
    uint64_t q_rank, kv_rank, nope, rope, v;
};

#define LAYERS 4
#define HIDDEN 64
#define HEADS 8
#define POSITIONS 48

static uint64_t linear(uint64_t out, uint64_t in, bool bias)
{
    return out * in + (bias ? out : 0);
}

static uint64_t norm(const struct gpt *gpt, uint64_t width)
{
    return gpt->root_norm ? width : 2 * width;
}

static uint64_t feed_forward(const struct gpt *gpt, uint64_t width, bool bias)
{
    return linear(gpt->gated ? 2 * width : width, HIDDEN, bias) +
           linear(HIDDEN, width, bias);
}

static uint64_t attention(const struct gpt *gpt)
{
    uint64_t groups = gpt->groups > 0 ? gpt->groups : HEADS;
    uint64_t width = gpt->channels > 0 ? gpt->channels : HIDDEN / HEADS;
    return linear((HEADS + 2 * groups) * width, HIDDEN,
                  !gpt->no_bias || gpt->qkv_bias) +
           linear(HIDDEN, HEADS * width, !gpt->no_bias) +
           (gpt->qk_norm ? 2 * norm(gpt, width) : 0);
}

static uint64_t latent_attention(const struct gpt *gpt)
{
    uint64_t query = HEADS * (gpt->nope + gpt->rope);
    uint64_t sum = linear(gpt->kv_rank + gpt->rope, HIDDEN, false) +
                   linear(HEADS * (gpt->nope + gpt->v), gpt->kv_rank, false) +
                   linear(HIDDEN, HEADS * gpt->v, !gpt->no_bias);
    sum += gpt->q_rank == 0 ? linear(query, HIDDEN, false)
                            : linear(gpt->q_rank, HIDDEN, false) +
                                  linear(query, gpt->q_rank, false);
    return sum + (gpt->qk_norm
                      ? norm(gpt, gpt->kv_rank) + norm(gpt, gpt->q_rank)
                      : 0);
}

static uint64_t experts(const struct gpt *gpt, uint64_t ffn)
{
    uint64_t width = gpt->expert_ffn > 0 ? gpt->expert_ffn : ffn;
    return linear(gpt->experts, HIDDEN, !gpt->no_bias) +
           gpt->experts * feed_forward(gpt, width, !gpt->no_bias) +
           (gpt->shared > 0 ? feed_forward(gpt, gpt->shared, false) : 0) +
           (gpt->shared_gate ? HIDDEN : 0) +
           (gpt->expert_bias ? gpt->experts : 0);
}

static uint64_t layer(const struct gpt *gpt, bool sparse)
{
    uint64_t ffn = gpt->ffn > 0 ? gpt->ffn : 4 * HIDDEN;
    return (2 + gpt->attention_norm + gpt->mlp_norm) * norm(gpt, HIDDEN) +
           (gpt->latent ? latent_attention(gpt) : attention(gpt)) +
           (sparse ? experts(gpt, ffn) : feed_forward(gpt, ffn, !gpt->no_bias));
}

static uint64_t parameters(const struct gpt *gpt)
{
    uint64_t vocab = gpt->vocab > 0 ? gpt->vocab : 200;
    uint64_t dense = gpt->experts > 0 ? gpt->dense_layers : LAYERS;
    return vocab * HIDDEN * (gpt->untied ? 2 : 1) +
           (gpt->no_positions ? 0 : POSITIONS * HIDDEN) +
           dense * layer(gpt, false) + (LAYERS - dense) * layer(gpt, true) +
           norm(gpt, HIDDEN) +
           gpt->mtp *
               (3 * norm(gpt, HIDDEN) + linear(HIDDEN, 2 * HIDDEN, false) +
                layer(gpt, gpt->experts > 0));
}

static const struct {
    const char *flags;
    struct gpt gpt;
} models[] = {
    {"", {.groups = 0}},
    {"--disable-bias-linear", {.no_bias = true}},
    {"--disable-bias-linear --add-qkv-bias",
     {.no_bias = true, .qkv_bias = true}},
    {"--add-qkv-bias", {.qkv_bias = true}},
    {"--normalization RMSNorm", {.root_norm = true}},
    {"--normalization LayerNorm", {.root_norm = false}},
    {"--untie-embeddings-and-output-weights", {.untied = true}},
    {"--position-embedding-type rope", {.no_positions = true}},
    {"--position-embedding-type none --no-position-embedding",
     {.no_positions = true}},
    {"--use-rotary-position-embeddings", {.no_positions = true}},
    {"--swiglu", {.gated = true, .ffn = 128}}, /* ⌊8·64/3/64⌋·64 */
    {"--swiglu --ffn-hidden-size 96", {.gated = true, .ffn = 96}},
    {"--quick-geglu", {.gated = true}},
    {"--ffn-hidden-size 100", {.ffn = 100}},
    {"--vocab-size 999", {.vocab = 999}},
    {"--group-query-attention --num-query-groups 2", {.groups = 2}},
    {"--group-query-attention", {.groups = 1}},
    {"--num-query-groups 2", {.groups = HEADS}},
    {"--kv-channels 16", {.channels = 16}},
    {"--qk-layernorm", {.qk_norm = true}},
    {"--qk-layernorm --normalization RMSNorm",
     {.qk_norm = true, .root_norm = true}},
    {"--num-experts 6", {.experts = 6}},
    {"--num-experts 6 --moe-ffn-hidden-size 32",
     {.experts = 6, .expert_ffn = 32}},
    {"--num-experts 6 --swiglu --disable-bias-linear",
     {.experts = 6, .gated = true, .ffn = 128, .no_bias = true}},
    {"--num-experts 6 --moe-layer-freq 2", {.experts = 6, .dense_layers = 2}},
    {"--num-experts 6 --moe-layer-freq [0]+[1]*3",
     {.experts = 6, .dense_layers = 1}},
    {"--num-experts 6 --disable-bias-linear "
     "--moe-shared-expert-intermediate-size 40",
     {.experts = 6, .no_bias = true, .shared = 40}},
    {"--num-experts 6 --disable-bias-linear --moe-shared-expert-gate "
     "--moe-shared-expert-intermediate-size 40",
     {.experts = 6, .no_bias = true, .shared = 40, .shared_gate = true}},
    {"--num-experts 6 --moe-shared-expert-intermediate-size 40",
     {.experts = 6, .shared = 40}},
    {"--post-self-attn-layernorm", {.attention_norm = 1}},
    {"--post-mlp-layernorm --normalization RMSNorm",
     {.mlp_norm = 1, .root_norm = true}},
    {"--mtp-num-layers 0", {.mtp = 0}},
    {"--mtp-num-layers 2", {.mtp = 2}},
    {"--mtp-num-layers 1 --num-experts 6 --moe-layer-freq [0]+[1]*3",
     {.mtp = 1, .experts = 6, .dense_layers = 1}},
    {"--mtp-num-layers 1 --untie-embeddings-and-output-weights "
     "--normalization RMSNorm --disable-bias-linear",
     {.mtp = 1, .untied = true, .root_norm = true, .no_bias = true}},
    {"--spec megatron.core.models.gpt.gpt_layer_specs get_gpt_layer_local_spec",
     {.mtp = 0}},
    {"--num-experts 6 --moe-router-enable-expert-bias",
     {.experts = 6, .expert_bias = true}},
    {"--moe-ffn-hidden-size 32 --moe-layer-freq 2", {.experts = 0}},
    {"--multi-latent-attention",
     {.latent = true, .kv_rank = 32, .nope = 128, .rope = 64, .v = 128}},
    {"--multi-latent-attention --qk-layernorm --q-lora-rank 24 "
     "--kv-lora-rank 16 --qk-head-dim 12 --qk-pos-emb-head-dim 4 "
     "--v-head-dim 10",
     {.latent = true,
      .qk_norm = true,
      .q_rank = 24,
      .kv_rank = 16,
      .nope = 12,
      .rope = 4,
      .v = 10}},
    {"--multi-latent-attention --q-lora-rank 24 --disable-bias-linear",
     {.latent = true,
      .no_bias = true,
      .q_rank = 24,
      .kv_rank = 32,
      .nope = 128,
      .rope = 64,
      .v = 128}},
    {"--kv-lora-rank 16", {.latent = false}},
};

static struct rf_model *model_of(const json_t *cluster)
{
    struct rf_jnode node =
        rf_jnode_root(json_object_get(cluster, "model"), "megatron");
    struct rf_model *model = NULL;
    struct rf_err err = {.text = ""};
    assert_ok(rf_model_from_json(&node, &model, &err), err);
    return model;
}

LOOP_TEST(test_megatron_counts_what_each_flag_adds, RF_ARRAY_SIZE(models))
{
    json_auto_t *cluster = megatron_cluster(
        MEGATRON_SMALL "--refit-mode collocated %s", models[_i].flags);
    AUTO(rf_model) *model = model_of(cluster);
    ck_assert_uint_eq(model->parameters, parameters(&models[_i].gpt));
    ck_assert_uint_eq(model->bytes, 4 * model->parameters);
}

/* Published models by the sizes of their launch scripts, and what their
 * checkpoints hold. */
#define SPEC(name) "--spec slime_plugins.models." name " get_spec "
static const struct {
    const char *flags;
    uint64_t parameters;
} specs[] = {
    {SPEC("glm4") "--num-layers 40 --hidden-size 4096 --ffn-hidden-size 13696 "
                  "--num-attention-heads 32 --group-query-attention "
                  "--num-query-groups 2 --vocab-size 151552 --swiglu "
                  "--disable-bias-linear --add-qkv-bias --normalization "
                  "RMSNorm --use-rotary-position-embeddings "
                  "--post-self-attn-layernorm --post-mlp-layernorm "
                  "--untie-embeddings-and-output-weights",
     9400279040},
    {SPEC("minimax_m2") "--num-layers 62 --hidden-size 3072 --ffn-hidden-size "
                        "1536 --num-attention-heads 48 --kv-channels 128 "
                        "--group-query-attention --num-query-groups 8 "
                        "--vocab-size 200064 --num-experts 256 "
                        "--moe-ffn-hidden-size 1536 --moe-layer-freq [1]*62 "
                        "--untie-embeddings-and-output-weights",
     228689764864},
    {SPEC("qwen3_next") "--num-layers 48 --hidden-size 2048 --ffn-hidden-size "
                        "5120 --num-attention-heads 16 --kv-channels 256 "
                        "--group-query-attention --num-query-groups 2 "
                        "--vocab-size 151936 --num-experts 512 "
                        "--moe-ffn-hidden-size 512 "
                        "--moe-shared-expert-intermediate-size 512 "
                        "--moe-shared-expert-gate --attention-output-gate "
                        "--untie-embeddings-and-output-weights",
     79674391296},
    {SPEC("qwen3_5") "--num-layers 64 --hidden-size 5120 --ffn-hidden-size "
                     "17408 --num-attention-heads 24 --kv-channels 256 "
                     "--group-query-attention --num-query-groups 4 "
                     "--vocab-size 248320 --linear-num-value-heads 48 "
                     "--attention-output-gate "
                     "--untie-embeddings-and-output-weights",
     26895998464},
    {SPEC("glm5.glm5") "--num-layers 78 --hidden-size 6144 --ffn-hidden-size "
                       "12288 --num-attention-heads 64 --vocab-size 154880 "
                       "--multi-latent-attention --q-lora-rank 2048 "
                       "--kv-lora-rank 512 --qk-head-dim 192 --v-head-dim 256 "
                       "--qk-pos-emb-head-dim 64 --num-experts 256 "
                       "--moe-ffn-hidden-size 2048 "
                       "--moe-shared-expert-intermediate-size 2048 "
                       "--moe-layer-freq [0]*3+[1]*75 "
                       "--untie-embeddings-and-output-weights",
     743911218432},
};

LOOP_TEST(test_megatron_spec_makes_a_published_model, RF_ARRAY_SIZE(specs))
{
    json_auto_t *cluster = megatron_cluster(
        MEGATRON_SMALL "--refit-mode collocated --bf16 %s", specs[_i].flags);
    AUTO(rf_model) *model = model_of(cluster);
    ck_assert_uint_eq(model->parameters, specs[_i].parameters);
}

static const struct {
    const char *flags;
    uint64_t bytes;
} dtypes[] = {{"", 4}, {"--bf16", 2}, {"--fp16", 2}};

LOOP_TEST(test_megatron_weights_are_of_the_type_asked_for,
          RF_ARRAY_SIZE(dtypes))
{
    json_auto_t *cluster = megatron_cluster(
        MEGATRON_SMALL "--refit-mode collocated %s", dtypes[_i].flags);
    AUTO(rf_model) *model = model_of(cluster);
    ck_assert_uint_eq(model->bytes, dtypes[_i].bytes * model->parameters);
}

/* --- Meshes --------------------------------------------------------------- */

#define TP "--tensor-model-parallel-size "
#define PP "--pipeline-model-parallel-size "
#define EP "--expert-model-parallel-size "
#define ITP "--rl-inference-tensor-model-parallel-size "
#define IPP "--rl-inference-pipeline-model-parallel-size "
#define IEP "--rl-inference-expert-model-parallel-size "

static const struct {
    const char *flags;
    bool collocated;
    int slots;
    const char *name, *train, *infer;
} meshes[] = {
    {"", true, 1, "tp1-to-tp1", "{'tp': 1}", "{'tp': 1}"},
    {TP "2", true, 2, "tp2-to-tp1", "{'tp': 2}", "{'tp': 1}"},
    {TP "2 " ITP "1", true, 2, "tp2-to-tp1", "{'tp': 2}", "{'tp': 1}"},
    {TP "2 " PP "2 " ITP "4 " IPP "1", true, 4, "tp2pp2-to-tp4",
     "{'tp': 2, 'pp': 2}", "{'tp': 4, 'pp': 1}"},
    {TP "2 " ITP "3", true, 6, "tp2-to-tp3", "{'tp': 2}", "{'tp': 3}"},
    {TP "2 " ITP "4", false, 6, "tp2-to-tp4", "{'tp': 2}", "{'tp': 4}"},
    {TP "2 " PP "2 " ITP "4 " IPP "1", false, 8, "tp2pp2-to-tp4",
     "{'tp': 2, 'pp': 2}", "{'tp': 4, 'pp': 1}"},
    {TP "1 " EP "2 " ITP "1 " IEP "4 --num-experts 8", true, 4,
     "tp1ep2-to-tp1ep4", "{'tp': 1, 'ep': 2}", "{'tp': 1, 'ep': 4}"},
    {TP "2 " EP "2 --num-experts 8 --disable-bias-linear", true, 4,
     "tp2ep2-to-tp1", "{'tp': 2, 'ep': 2}", "{'tp': 1}"},
    {TP "2 " EP "2 --num-experts 8", true, 4, "tp2ep2-to-tp1",
     "{'tp': 2, 'ep': 2}", "{'tp': 1}"},
    {TP "2 " ITP "3 --make-vocab-size-divisible-by 384", true, 6, "tp2-to-tp3",
     "{'tp': 2, 'make_vocab_size_divisible_by': 384}", "{'tp': 3}"},
    {PP "2 --account-for-loss-in-pipeline-split "
        "--account-for-embedding-in-pipeline-split",
     true, 2, "tp1pp2-to-tp1", "{'tp': 1, 'pp': 2, 'pp_layers': [2, 2]}",
     "{'tp': 1}"},
    {PP "2 --num-layers 7 --account-for-loss-in-pipeline-split "
        "--num-virtual-stages-per-pipeline-rank 2",
     true, 2, "tp1pp2vpp2-to-tp1",
     "{'tp': 1, 'pp': 2, 'vpp': 2, 'pp_layers': [2, 2, 2, 1]}", "{'tp': 1}"},
    {PP "2 --num-layers 7 --account-for-embedding-in-pipeline-split "
        "--num-layers-per-virtual-pipeline-stage 2",
     true, 2, "tp1pp2vpp2-to-tp1",
     "{'tp': 1, 'pp': 2, 'vpp': 2, 'pp_layers': [1, 2, 2, 2]}", "{'tp': 1}"},
    {PP "2 --pipeline-model-parallel-layout Et*3|tL", true, 2, "tp1pp2-to-tp1",
     "{'tp': 1, 'pp': 2, 'pp_layers': [3, 1]}", "{'tp': 1}"},
    {PP "2 --pipeline-model-parallel-layout E,(tt|)*2,|mL --mtp-num-layers 1",
     true, 2, "tp1pp2vpp2-to-tp1",
     "{'tp': 1, 'pp': 2, 'vpp': 2, 'pp_layers': [2, 2, 0, 0]}", "{'tp': 1}"},
    {TP "4 " EP "4 --expert-tensor-parallel-size 1 --num-experts 8", true, 4,
     "tp4ep4-to-tp1", "{'tp': 4, 'ep': 4, 'etp': 1}", "{'tp': 1}"},
    {PP "2 --num-layers-per-virtual-pipeline-stage 1", true, 2,
     "tp1pp2vpp2-to-tp1", "{'tp': 1, 'pp': 2, 'vpp': 2}", "{'tp': 1}"},
    {PP "2 --num-virtual-stages-per-pipeline-rank 2", true, 2,
     "tp1pp2vpp2-to-tp1", "{'tp': 1, 'pp': 2, 'vpp': 2}", "{'tp': 1}"},
    {PP "2 --decoder-first-pipeline-num-layers 1", true, 2, "tp1pp2-to-tp1",
     "{'tp': 1, 'pp': 2, 'num_layers_in_first_pipeline_stage': 1}",
     "{'tp': 1}"},
    {TP "2 --context-parallel-size 2", false, 5, "tp2cp2-to-tp1",
     "{'tp': 2, 'cp': 2}", "{'tp': 1}"},
};

static void assert_json(const json_t *value, const char *quoted)
{
    json_auto_t *expected = json_loads(Q(quoted), JSON_DECODE_ANY, NULL);
    ck_assert_msg(json_equal(value, expected), "%s, not %s", quoted,
                  json_dumps(value, JSON_ENCODE_ANY));
}

LOOP_TEST(test_megatron_world_is_what_the_meshes_need, RF_ARRAY_SIZE(meshes))
{
    json_auto_t *cluster =
        megatron_cluster(MEGATRON_SMALL "--refit-mode %scollocated %s",
                         meshes[_i].collocated ? "" : "non-", meshes[_i].flags);
    json_t *node = json_at(cluster, "nodes[0]");
    json_t *scenario = json_at(cluster, "scenarios[0]");
    ck_assert_int_eq(json_integer_at(node, "slots"), meshes[_i].slots);
    ck_assert_str_eq(json_text_at(scenario, "name"), meshes[_i].name);
    ck_assert_str_eq(json_text_at(scenario, "mode"),
                     meshes[_i].collocated ? "colocated" : "disaggregated");
    assert_json(json_object_get(scenario, "train"), meshes[_i].train);
    assert_json(json_object_get(scenario, "infer"), meshes[_i].infer);
}

TEST(test_megatron_has_the_benchmarks_defaults)
{
    json_auto_t *cluster = megatron_cluster(
        "--refit-mode collocated --num-layers 2 --hidden-size 64 "
        "--num-attention-heads 8 --seq-length 8 --max-position-embeddings 8");
    json_t *scenario = json_at(cluster, "scenarios[0]");
    json_t *model = json_at(cluster, "model.megatron");
    ck_assert_str_eq(json_text_at(scenario, "method"), "nvshmem");
    assert_json(json_object_get(scenario, "warmup"), "2");
    assert_json(json_object_get(scenario, "iterations"), "10");
    assert_json(json_object_get(model, "vocab_size"), "50257");
}

/* --- What contradicts itself ---------------------------------------------- */

#define MODE MEGATRON_SMALL "--refit-mode collocated "

static const struct {
    const char *line, *says;
} refused[] = {
    {"--refit-mode collocated --num-layers 2",
     "missing --hidden-size, --num-attention-heads, --seq-length, "
     "--max-position-embeddings"},
    {MEGATRON_SMALL, "missing --refit-mode"},
    {MODE "--bf16 --fp16", "--bf16 and --fp16 cannot be combined"},
    {MODE "--swiglu --quick-geglu", "cannot be combined"},
    {MODE "--seq-length 64", "must not be less than --seq-length"},
    {MODE "--no-position-embedding", "--position-embedding-type none or rope"},
    {MODE "--multi-latent-attention --transformer-impl local", "remove it"},
    {MODE PP "2 --num-layers-per-virtual-pipeline-stage 3", "does not divide"},
    {MODE PP "4 --account-for-loss-in-pipeline-split",
     "5 layers, embedding and loss included, do not divide"},
    {MODE "--pipeline-model-parallel-layout Ettttx", "must be made of E, t, m"},
    {MODE "--pipeline-model-parallel-layout (t", "must be made of"},
    {MODE "--pipeline-model-parallel-layout (t)", "must be made of"},
    {MODE "--pipeline-model-parallel-layout t*99999999", "must be made of"},
    {MODE PP "2 --pipeline-model-parallel-layout Et|t|ttL",
     "3 virtual stages do not divide over 2 pipeline stages"},
    {MODE PP "2 --pipeline-model-parallel-layout Ett|tt|m|L",
     "on the last pipeline stage only"},
    {MODE PP "2 --pipeline-model-parallel-layout Ett|ttL "
             "--account-for-loss-in-pipeline-split",
     "cannot be combined"},
    {MODE "--spec megatron.core.models.mamba.mamba_layer_specs x",
     "--spec megatron.core.models.mamba.mamba_layer_specs: unsupported model"},
    {MODE "--attention-output-gate", "--attention-output-gate: needs a --spec"},
    {MODE TP "65537", "megatron: $.train.tp: must be an integer from 1"},
    {MODE "--num-benchmark-iterations 1000001", "$.iterations"},
    {MODE TP "65536 " PP "65536", "more than 1048576 ranks"},
};

LOOP_TEST(test_megatron_refuses_what_contradicts_itself, RF_ARRAY_SIZE(refused))
{
    const char *text = megatron_error(refused[_i].line);
    assert_says(text, refused[_i].says);
}

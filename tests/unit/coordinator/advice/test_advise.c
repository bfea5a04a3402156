/* The search of `advise`: which meshes it finds, and which it puts first. */
#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/advice/advise_search.h"
#include "coordinator/advice/rank_memory.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

struct searched {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario *base;
    struct rf_advised advised;
};

/* All that a search begins with. */
static struct searched begin(const char *text)
{
    struct searched searched = {.base = NULL};
    struct rf_err err = {.text = ""};
    configured(text, &searched.config, &searched.model);
    ck_assert_msg(rf_scenario_build(searched.config, searched.model, 0,
                                    &searched.base, &err) == RF_OK,
                  "%s", err.text);
    return searched;
}

/* See rf_advise_search(). */
static struct searched search_within(uint64_t budget, const char *text)
{
    struct searched searched = begin(text);
    struct rf_err err = {.text = ""};
    struct rf_capacities links;
    rf_capacities_init(&links, searched.base->world->n_nodes);
    rf_links_apply(&searched.config->links, searched.base->method, &links);
    ck_assert_msg(rf_advise_search(searched.base, &searched.config->timeline,
                                   &links, budget, &searched.advised,
                                   &err) == RF_OK,
                  "%s", err.text);
    rf_capacities_free(&links);
    return searched;
}

static struct searched search(const char *text)
{
    return search_within(4096, text);
}

static void searched_free(struct searched *searched)
{
    free(searched->advised.choices);
    rf_scenario_destroy(searched->base);
    rf_model_destroy(searched->model);
    rf_config_destroy(searched->config);
}
AUTO_STRUCT(searched, searched_free)

#define NODES(n)                                                               \
    "'launch': {'method': 'local'}, 'nodes': [{'host': 'a', 'slots': " #n      \
    "}, {'host': 'b', 'slots': " #n "}]"
#define DENSE                                                                  \
    "'model': {'megatron': {'num_layers': 6, 'hidden_size': 64, "              \
    "'num_attention_heads': 4, 'vocab_size': 128}}"
#define QWEN3_30B                                                              \
    "'model': {'config': {'model_type': 'qwen3_moe', 'hidden_size': 2048, "    \
    "'num_hidden_layers': 48, 'num_attention_heads': 32, "                     \
    "'num_key_value_heads': 4, 'head_dim': 128, 'intermediate_size': 6144, "   \
    "'moe_intermediate_size': 768, 'num_experts': 128, 'vocab_size': 151936}}"

/* Whether a scenario of such nodes and model works with those members of a
 * side. */
static bool works(const char *base, enum rf_side side, const char *members)
{
    AUTO(rf_config) *config;
    AUTO(rf_model) *model;
    struct rf_scenario *scenario = NULL;
    bool ok;
    AUTO_FREE char *text = rf_xasprintf(
        "{%s, 'scenarios': [{'name': 's', '%s': {'tp': 1}, '%s': {%s}}]}", base,
        side == RF_TRAIN ? "infer" : "train",
        side == RF_TRAIN ? "train" : "infer", members);
    configured(text, &config, &model);
    ok = rf_scenario_build(config, model, 0, &scenario, NULL) == RF_OK;
    rf_scenario_destroy(scenario);
    return ok;
}

/* Tried one by one, as a user would edit the file. */
static size_t meshes_that_work(enum rf_side side, uint32_t most_cp)
{
    size_t n = 0;
    for (int i = 0; i < 9 * 9 * 9; i++) {
        const int tp = i % 9, cp = i / 9 % 9, pp = i / 81;
        if (tp >= 1 && cp >= 1 && pp >= 1 && (uint32_t)cp <= most_cp) {
            AUTO_FREE char *members =
                rf_xasprintf("'tp': %d, 'cp': %d, 'pp': %d", tp, cp, pp);
            n += works(NODES(4) ", " DENSE, side, members);
        }
    }
    return n;
}

#define EXPERTS                                                                \
    "'model': {'megatron': {'num_layers': 6, 'hidden_size': 64, "              \
    "'num_attention_heads': 4, 'vocab_size': 128, 'num_experts': 4, "          \
    "'moe_ffn_hidden_size': 32}}"

/* Of sizes that are powers of two up to 8, beside `fixed` ones; without `etp`
 * it is the default. */
static size_t expert_meshes_that_work(enum rf_side side, bool etp,
                                      const char *fixed)
{
    size_t n = 0;
    for (int i = 0; i < 4 * 4 * 4 * (etp ? 4 : 1); i++) {
        AUTO_FREE char *members =
            etp ? rf_xasprintf("'tp': %d, 'pp': %d, 'ep': %d, 'etp': %d%s",
                               1 << i % 4, 1 << i / 4 % 4, 1 << i / 16 % 4,
                               1 << i / 64, fixed)
                : rf_xasprintf("'tp': %d, 'pp': %d, 'ep': %d%s", 1 << i % 4,
                               1 << i / 4 % 4, 1 << i / 16 % 4, fixed);
        n += works(NODES(4) ", " EXPERTS, side, members);
    }
    return n;
}

LIMIT(60)

TEST(test_every_mesh_of_experts_that_works_is_considered)
{
    AUTO(searched) searched =
        search("{" NODES(4) ", " EXPERTS ", 'scenarios': [{'name': 's', "
                            "'train': {'tp': 1}, 'infer': {'tp': 1}}]}");
    const size_t train = expert_meshes_that_work(RF_TRAIN, true, "") +
                         expert_meshes_that_work(RF_TRAIN, true, ", 'cp': 2") +
                         expert_meshes_that_work(RF_TRAIN, true, ", 'cp': 4") +
                         expert_meshes_that_work(RF_TRAIN, true, ", 'cp': 8");
    ck_assert_uint_gt(train, 64);
    ck_assert_uint_eq(searched.advised.feasible[RF_TRAIN], train);
    ck_assert_uint_eq(searched.advised.feasible[RF_INFER],
                      expert_meshes_that_work(RF_INFER, true, ""));
}

/* SGLang cuts experts over what EP leaves of TP. */
TEST(test_engines_have_the_expert_meshes_that_they_know)
{
    AUTO(searched) searched =
        search("{" NODES(4) ", " EXPERTS ", 'scenarios': [{'name': 's', "
                            "'train': {'tp': 1}, 'infer': {'tp': 1, 'layout': "
                            "'sglang'}}]}");
    ck_assert_uint_eq(
        searched.advised.feasible[RF_INFER],
        expert_meshes_that_work(RF_INFER, false, ", 'layout': 'sglang'"));
    for (size_t i = 0; i < searched.advised.n; i++) {
        const struct rf_mesh *infer = &searched.advised.choices[i].infer;
        ck_assert_uint_eq(infer->etp, infer->tp / infer->ep);
    }
}

/* Refits of thousands of ranks take long to predict: a wave of them is enough,
 * with the scenario's own among them. */
TEST(test_a_large_world_has_few_pairs_predicted)
{
    AUTO(searched) searched =
        search("{" NODES(1024) ", " QWEN3_30B ", 'scenarios': [{'name': 's', "
                               "'train': {'tp': 1, 'pp': 16, 'ep': 2}, "
                               "'infer': {'tp': 8}}]}");
    bool own = false;
    ck_assert_uint_gt(searched.advised.feasible[RF_TRAIN], 1000);
    ck_assert_uint_ge(searched.advised.n, 4);
    ck_assert_uint_le(searched.advised.n, 8);
    for (size_t i = 0; i < searched.advised.n; i++) {
        own |= searched.advised.choices[i].train.pp == 16;
    }
    ck_assert(own);
}

/* FSDP has only its own. */
TEST(test_layouts_without_tensor_parallelism_keep_their_mesh)
{
    AUTO(searched) searched =
        search("{" NODES(4) ", " DENSE ", 'scenarios': [{'name': 's', 'train': "
                            "{'layout': 'fsdp', 'dp_replicate': 2}, 'infer': "
                            "{'tp': 1}}]}");
    const struct rf_mesh_choice *first = &searched.advised.choices[0];
    ck_assert_uint_eq(searched.advised.feasible[RF_TRAIN], 1);
    ck_assert_uint_eq(searched.advised.refused, 0);
    ck_assert_uint_eq(first->train.dp, 8);
    /* 18 bytes a parameter over four shards */
    ck_assert_double_eq_tol(first->training_gbytes * 1e9,
                            18.0 * (double)searched.model->parameters / 4,
                            1e-3);
}

TEST(test_every_mesh_that_works_is_considered)
{
    AUTO(searched) searched =
        search("{" NODES(4) ", " DENSE ", 'scenarios': [{'name': 's', 'train': "
                            "{'tp': 1}, 'infer': {'tp': 1}}]}");
    const size_t train = meshes_that_work(RF_TRAIN, 8);
    const size_t infer = meshes_that_work(RF_INFER, 1);
    ck_assert_uint_gt(train, 8);
    ck_assert_uint_eq(searched.advised.feasible[RF_TRAIN], train);
    ck_assert_uint_eq(searched.advised.feasible[RF_INFER], infer);
    ck_assert_uint_eq(searched.advised.n, train * infer);
    ck_assert_uint_eq(searched.advised.refused, 0);
}

/* What the guide says of 30 billion parameters with experts on 16 GPUs: about 4
 * billion over ETP·EP, EP before ETP, PP 2 or more with many micro-batches,
 * TP within a node. */
TEST(test_the_first_choice_is_the_guide_s)
{
    AUTO(searched) searched = search_within(
        512,
        "{" NODES(8) ", " QWEN3_30B ", 'scenarios': [{'name': 's', 'method': "
                     "'nccl', 'train': {'tp': 1}, 'infer': {'tp': 8}}], "
                     "'timeline': {'sequence_length': 4096, 'global_batch': "
                     "256, 'micro_batch': 1, 'memory_gbytes': 80}}");
    const struct rf_mesh_choice *first = &searched.advised.choices[0];
    ck_assert_uint_eq(first->train.ep, 8);
    ck_assert_uint_eq(first->train.etp, 1);
    ck_assert_uint_eq(first->train.cp, 1);
    ck_assert_uint_ge(first->train.pp, 2);
    ck_assert_uint_le(first->train.tp, 8);
    ck_assert_uint_le(first->infer.tp, 8);
    ck_assert_double_eq_tol(first->parameters, 30.53e9 / 8, 0.01e9);
    ck_assert_uint_eq(first->weight, 0);
}

/* What is found can be pasted into the file, and the plan is the same. */
TEST(test_a_choice_is_a_scenario)
{
    AUTO(searched) searched =
        search("{" NODES(2) ", " DENSE ", 'scenarios': [{'name': 's', 'train': "
                            "{'tp': 2, 'pp': 2, 'pp_layers': [2, 4]}, 'infer': "
                            "{'tp': 4}}]}");
    for (size_t i = 0; i < searched.advised.n; i++) {
        const struct rf_mesh_choice *choice = &searched.advised.choices[i];
        json_auto_t *scenario = rf_advise_scenario_json(searched.base, choice);
        struct rf_jnode node = rf_jnode_root(scenario, "c.json");
        AUTO(rf_spec) *spec = NULL;
        struct rf_err err = {.text = ""};
        assert_ok(rf_spec_from_json(&node, searched.config->node_names, 2,
                                    &spec, &err),
                  err);
        ck_assert_uint_eq(spec->train.pp, choice->train.pp);
        ck_assert_uint_eq(spec->infer.tp, choice->infer.tp);
        ck_assert_int_eq(spec->train.pp_layers != NULL,
                         choice->train.tp == 2 && choice->train.pp == 2);
    }
    ck_assert_uint_gt(searched.advised.n, 4);
}

TEST(test_rules_go_before_seconds)
{
    struct rf_mesh_choice choices[] = {
        {.weight = 4, .refit_ms = 1},
        {.weight = 0, .octaves = 1, .refit_ms = 2},
        {.weight = 0, .octaves = 0, .refit_ms = 200},
        {.weight = 0, .octaves = 0, .refit_ms = 100, .train = {.tp = 4}},
        {.weight = 0, .octaves = 0, .refit_ms = 100.01, .train = {.tp = 2}},
    };
    static const double order[] = {100.01, 100, 200, 2, 1};
    rf_advise_rank(choices, RF_ARRAY_SIZE(choices));
    for (size_t i = 0; i < RF_ARRAY_SIZE(order); i++) {
        ck_assert_double_eq(choices[i].refit_ms, order[i]);
    }
}

/* 6 + 12/d bytes a parameter (see rank_memory.h), and activations. Of a layer
 * TP divides 49152 parameters and leaves the norms' 128 whole; the first and
 * the last stage have the tied embedding of 8192. */
TEST(test_training_memory)
{
    AUTO(searched) searched =
        begin("{" NODES(2) ", " DENSE ", 'scenarios': [{'name': 's', 'train': "
                           "{'tp': 2, 'pp': 2}, 'infer': {'tp': 4}}]}");
    const struct rf_side_spec side = {.tp = 2,
                                      .cp = 1,
                                      .pp = 3,
                                      .dp = 4,
                                      .ep = 1,
                                      .etp = 2,
                                      .vpp = 1,
                                      .attention_dp = 1,
                                      .dp_replicate = 1};
    const double stage = 8192 / 2 + 2 * (49152 / 2 + 128);
    struct rf_timeline timeline = {.sequence_length = 100, .micro_batch = 2};
    struct rf_training_memory memory = rf_rank_memory_training(
        searched.model, &side, 24, &timeline, RF_RECOMPUTE_NONE);
    ck_assert_double_eq_tol(memory.states, stage * (6 + 12.0 / 4), 1e-3);
    /* three micro-batches of two layers of 200 tokens, halved by TP */
    ck_assert_double_eq_tol(memory.activations, 34.0 * 3 * 2 * 200 * 64 / 2,
                            1e-3);
    timeline.global_batch = 16; /* two micro-batches a replica */
    memory = rf_rank_memory_training(searched.model, &side, 24, &timeline,
                                     RF_RECOMPUTE_FULL);
    /* the last stage: the final norm, one micro-batch, and 128 logits a token
     */
    ck_assert_double_eq_tol(memory.states, (stage + 64) * (6 + 12.0 / 4), 1e-3);
    ck_assert_double_eq_tol(
        memory.activations,
        (2.0 * 2 * 1 + 34) * 200 * 64 / 2 + 4.0 * 200 * 128 / 2, 1e-3);
}

/* Four heads, each with a score of every two tokens: 5 bytes in a layer (34 of
 * everything else for each of 64 elements of a token). Recomputing them leaves
 * those of one layer. */
LOOP_TEST(test_selective_recomputation_saves_stored_scores, 6)
{
    static const struct {
        enum rf_attention attention;
        enum rf_recompute recompute;
        double layers, scores; /* whose bytes are kept */
    } cases[] = {
        {RF_ATTENTION_UNFUSED, RF_RECOMPUTE_NONE, 6, 6},
        {RF_ATTENTION_UNFUSED, RF_RECOMPUTE_SELECTIVE, 6, 1},
        {RF_ATTENTION_UNFUSED, RF_RECOMPUTE_FULL, 1 + 6 * 2.0 / 34, 1},
        {RF_ATTENTION_FLASH, RF_RECOMPUTE_NONE, 6, 0},
        {RF_ATTENTION_FLASH, RF_RECOMPUTE_SELECTIVE, 6, 0},
        {RF_ATTENTION_UNSAID, RF_RECOMPUTE_SELECTIVE, 6, 0},
    };
    const double tokens = 2 * 100, ranks = 2 * 2;
    AUTO(searched) searched =
        begin("{" NODES(2) ", " DENSE ", 'scenarios': [{'name': 's', 'train': "
                           "{'tp': 2, 'cp': 2}, 'infer': {'tp': 4}}]}");
    const struct rf_timeline timeline = {.sequence_length = 100,
                                         .micro_batch = 2,
                                         .attention = cases[_i].attention};
    const struct rf_training_memory memory =
        rf_rank_memory_training(searched.model, &searched.base->spec->train, 4,
                                &timeline, cases[_i].recompute);
    ck_assert_double_eq_tol(memory.activations,
                            tokens / ranks *
                                (34.0 * 64 * cases[_i].layers +
                                 5.0 * 4 * 100 * cases[_i].scores + 4.0 * 128),
                            1e-3);
}

/* Qwen3-30B-A3B on 16 GPUs, by hand. TP 2, PP 2: a stage has 24 layers, each
 * with 18,874,368 parameters of attention, of which a rank has half, and norms
 * and a router of 266,496, and half of the embedding or of the output head.
 * EP 8: 16 experts of 4,718,592 in each layer. Four ranks have the same dense
 * parameters, one has its experts. */
TEST(test_training_memory_of_a_known_model)
{
    AUTO(searched) searched = begin(
        "{" NODES(8) ", " QWEN3_30B ", 'scenarios': [{'name': 's', 'train': "
                     "{'tp': 2, 'pp': 2, 'ep': 8, 'etp': 1}, 'infer': {'tp': "
                     "8, 'layout': 'vllm', 'dtype': 'float32'}}]}");
    const struct rf_spec *spec = searched.base->spec;
    const struct rf_timeline timeline = {.sequence_length = 0};
    const double dense = 24.0 * (18874368 / 2 + 266496) + 151936.0 * 1024;
    const double experts = 24.0 * 16 * 4718592;
    const struct rf_training_memory memory = rf_rank_memory_training(
        searched.model, &spec->train, 16, &timeline, RF_RECOMPUTE_NONE);
    ck_assert_double_eq_tol(memory.states, (dense + 2048) * 9 + experts * 18,
                            1);
    ck_assert_double_eq(memory.activations, 0);
    /* Over TP 8, of which two ranks share each of the four heads of keys and
       values; in the side's dtype. */
    ck_assert_double_eq_tol(
        rf_rank_memory_inference(searched.model, &spec->infer),
        4 * (48.0 * (2 * 8388608 / 8 + 2 * 1048576 / 4 + 266496 +
                     128.0 * 4718592 / 8) +
             2 * 151936.0 * 2048 / 8 + 2048),
        1);
}

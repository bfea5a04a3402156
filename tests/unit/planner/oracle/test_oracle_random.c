/*
 * Random models, meshes and layouts against the oracle: 300 of them, or as many
 * as the environment variable RF_ORACLE_PAIRS says, from a fixed seed or
 * RF_ORACLE_SEED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/layout/mesh_rules.h"
#include "tests/lib/quoted.h"
#include "tests/lib/text_add.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/planner/schedule/schedule_parts.h"
#include "tests/unit/unit.h"

#define MOST_RANKS 24

struct random {
    uint64_t state;
};

static uint32_t below(struct random *random, uint32_t n)
{
    random->state += 0x9E3779B97F4A7C15u;
    return (uint32_t)(rf_mix64(random->state) >> 32) % n;
}

static uint32_t pick(struct random *random, const uint32_t *values, uint32_t n)
{
    return values[below(random, n)];
}

#define PICK(random, ...)                                                      \
    pick((random), (const uint32_t[]){__VA_ARGS__},                            \
         sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static const char *yes_no(struct random *random)
{
    return below(random, 2) ? "true" : "false";
}

static void add_megatron(struct random *random, struct text *out)
{
    uint32_t heads = PICK(random, 4, 6, 8, 12);
    uint32_t groups = heads / PICK(random, 1, 2, 2, heads);
    text_add(out,
             "{'megatron': {'num_layers': %u, 'hidden_size': %u, "
             "'num_attention_heads': %u, 'num_query_groups': %u, "
             "'kv_channels': %u, 'vocab_size': %u, 'swiglu': %s, 'untie': %s, "
             "'qk_layernorm': %s, 'ffn_hidden_size': %u",
             1 + below(random, 6), PICK(random, 12, 24, 10), heads, groups,
             PICK(random, 2, 4, 6), 40 + below(random, 300), yes_no(random),
             yes_no(random), yes_no(random), PICK(random, 24, 48));
    if (below(random, 2)) {
        text_add(out,
                 ", 'num_experts': %u, 'moe_ffn_hidden_size': %u, "
                 "'moe_router_enable_expert_bias': %s, 'moe_layer_freq': %u",
                 PICK(random, 2, 4, 6, 8), PICK(random, 12, 24), yes_no(random),
                 PICK(random, 1, 1, 2));
        if (below(random, 2)) {
            text_add(out, ", 'moe_shared_expert_intermediate_size': 24");
        }
    }
    text_add(out, "}}");
}

static void add_config(struct random *random, struct text *out)
{
    uint32_t heads = PICK(random, 4, 8, 12);
    text_add(out,
             "{'config': {'hidden_size': %u, 'num_hidden_layers': %u, "
             "'num_attention_heads': %u, 'intermediate_size': %u, "
             "'vocab_size': %u, 'tie_word_embeddings': %s, ",
             PICK(random, 24, 48), 2 + below(random, 4), heads,
             PICK(random, 24, 48, 72), 60 + below(random, 200), yes_no(random));
    switch (below(random, 3)) {
    case 0:
        text_add(out, "'model_type': 'qwen2', 'num_key_value_heads': %u}}",
                 heads / PICK(random, 1, 2, 4));
        break;
    case 1:
        text_add(out,
                 "'model_type': 'qwen3_moe', 'num_key_value_heads': %u, "
                 "'head_dim': %u, 'moe_intermediate_size': 24, "
                 "'num_experts': %u, 'num_experts_per_tok': 2, "
                 "'decoder_sparse_step': %u, 'mlp_only_layers': [], "
                 "'norm_topk_prob': true}}",
                 heads / PICK(random, 1, 2), PICK(random, 2, 4),
                 PICK(random, 4, 6, 8), PICK(random, 1, 2));
        break;
    default:
        text_add(out,
                 "'model_type': 'deepseek_v3', 'num_key_value_heads': %u, "
                 "'q_lora_rank': %s, 'kv_lora_rank': 6, "
                 "'qk_nope_head_dim': 2, 'qk_rope_head_dim': 1, "
                 "'v_head_dim': 3, 'n_routed_experts': %u, "
                 "'n_shared_experts': 1, 'moe_intermediate_size': 24, "
                 "'first_k_dense_replace': %u, 'topk_method': 'noaux_tc'}}",
                 heads, below(random, 3) ? "8" : "null", PICK(random, 4, 6, 8),
                 below(random, 3));
        break;
    }
}

static void add_side(struct random *random, bool experts, struct text *out)
{
    static const char *const layouts[] = {"megatron", "megatron", "hf",
                                          "vllm",     "sglang",   "fsdp",
                                          "fsdp1",    "zero3"};
    const char *layout = layouts[below(random, RF_ARRAY_SIZE(layouts))];
    text_add(out, "{'layout': '%s'", layout);
    if (below(random, 6) == 0) {
        text_add(out, ", 'dtype': '%s'",
                 below(random, 2) ? "float32" : "bfloat16");
    }
    if (layout[0] == 'f' || layout[0] == 'z') {
        uint32_t copies = PICK(random, 1, 1, 2, 3);
        text_add(out, ", 'dp': %u, 'dp_replicate': %u}",
                 copies * (1 + below(random, copies > 1 ? 4 : 9)), copies);
        return;
    }
    uint32_t pp = PICK(random, 1, 1, 2, 3);
    text_add(out, ", 'tp': %u, 'pp': %u", PICK(random, 1, 2, 2, 3, 4, 6, 8),
             pp);
    if (below(random, 4) == 0) {
        text_add(out, ", 'cp': 2");
    }
    if (experts && below(random, 2)) {
        text_add(out, ", 'ep': %u, 'etp': %u", PICK(random, 1, 2, 3, 4),
                 PICK(random, 1, 1, 2, 4));
    }
    if (layout[0] == 's' && below(random, 2)) {
        text_add(out, ", 'attention_dp': 2");
    }
    if (layout[0] == 'm' && pp > 1 && below(random, 3) == 0) {
        text_add(out, ", 'vpp': 2");
    } else if (pp > 1 && below(random, 3) == 0) {
        text_add(out, ", 'num_layers_in_first_pipeline_stage': %u",
                 1 + below(random, 2));
    }
    text_add(out, "}");
}

/* One pool, or in one case of three a list of some. */
static void add_pools(struct random *random, bool experts, struct text *out)
{
    const uint32_t n = PICK(random, 0, 0, 0, 0, 2, 3);
    text_add(out, n > 0 ? "[" : "");
    add_side(random, experts, out);
    for (uint32_t i = 1; i < n; i++) {
        text_add(out, ", ");
        add_side(random, experts, out);
    }
    text_add(out, n > 0 ? "]" : "");
}

static void add_tensor_case(struct random *random, struct text *model,
                            struct text *spec)
{
    static const char *const words[][3] = {
        {"S0", "R", "S1"}, {"S1", "S0", "R"}, {"S01", "R", "R"},
        {"R", "R", "R"},   {"R", "S01", "R"}, {"R", "S1", "S0"},
    };
    text_add(model, "{'tensor': {'shape': [%u, %u, %u]}}", 8 + below(random, 8),
             8 + below(random, 8), 8 + below(random, 8));
    text_add(spec, "'train': {'layout': 'spec', 'mesh': [%u, %u], 'spec': ",
             1 + below(random, 3), 1 + below(random, 3));
    for (int side = 0; side < 2; side++) {
        const char *const *of = words[below(random, RF_ARRAY_SIZE(words))];
        text_add(spec, "['%s', '%s', '%s']}", of[0], of[1], of[2]);
        if (side == 0) {
            text_add(spec,
                     ", 'infer': {'layout': 'spec', 'mesh': [%u, %u], "
                     "'spec': ",
                     1 + below(random, 3), 1 + below(random, 3));
        }
    }
}

/* NULL when the text is no possible scenario. */
static struct rf_spec *try_spec(const struct text *text)
{
    json_auto_t *value = quoted_json("{'name': 'random', %s}", text->text);
    struct rf_jnode node = rf_jnode_root(value, "random");
    struct rf_spec *spec = NULL;
    if (rf_spec_from_json(&node, quoted_nodes, 4, &spec, NULL) != RF_OK) {
        spec = NULL;
    }
    return spec;
}

/* With balance time: links that are far from alike. */
static void weigh_links(struct rf_spec *spec, uint32_t n_nodes)
{
    if (spec->balance == RF_BALANCE_TIME) {
        spec->n_balance_links = n_nodes;
        spec->balance_links = rf_xcalloc(n_nodes, sizeof(*spec->balance_links));
    }
    for (uint32_t n = 0; n < spec->n_balance_links; n++) {
        spec->balance_links[n] = (struct rf_link_weight){
            .nics = 1 + n % 3, .weight = 1 + (n * 7 + spec->train.tp) % 11};
    }
}

/* Plans and checks on some machines; false when these do not fit. */
static bool check_on(const struct rf_model *model, const struct text *text,
                     const uint32_t *slots, uint32_t n_nodes, uint32_t *n_ranks)
{
    AUTO(rf_spec) *spec = try_spec(text);
    AUTO(rf_world) *world = NULL;
    AUTO(rf_plan) *plan = NULL;
    struct rf_err err = {0};
    bool fits = spec != NULL && rf_mesh_rules_place(spec, model, slots, n_nodes,
                                                    &world, NULL) == RF_OK;
    if (fits && world->n_ranks <= MOST_RANKS) {
        weigh_links(spec, world->n_nodes);
        enum rf_status status = rf_plan_build(model, world, spec, &plan, &err);
        oracle_assert(status == RF_OK ||
                          (status == RF_ERR_CONFIG &&
                           strstr(err.text, "would be empty") != NULL),
                      "%s", err.text);
        fits = status == RF_OK;
        if (fits) {
            oracle_check(plan);
            /* Any strategy: it does not change the plan. */
            spec->strategy =
                (enum rf_strategy)(plan->n_transfers % RF_STRATEGIES);
            schedule_parts_check(plan, oracle_case);
            *n_ranks = world->n_ranks;
        }
    } else {
        fits = false;
    }
    return fits;
}

/* One random case; whether it was possible. */
static bool check_random(struct random *random)
{
    static const char *const balances[] = {"size", "order", "none", "time"};
    struct text model_text = {.used = 0}, text = {.used = 0};
    uint32_t n_ranks = 0;
    text_add(&text, "'mode': '%s', 'balance': '%s', ",
             below(random, 2) ? "colocated" : "disaggregated",
             balances[below(random, 4)]);
    if (below(random, 8) == 0) {
        add_tensor_case(random, &model_text, &text);
    } else {
        if (below(random, 2)) {
            add_megatron(random, &model_text);
        } else {
            add_config(random, &model_text);
        }
        bool experts = strstr(model_text.text, "experts") != NULL;
        text_add(&text, "'train': ");
        add_side(random, experts, &text);
        text_add(&text, ", 'infer': ");
        add_pools(random, experts, &text);
    }
    AUTO(rf_model) *model = quoted_model("%s", model_text.text);
    char both[sizeof(text.text) * 2 + 32];
    snprintf(both, sizeof(both), "model %s, scenario %s", model_text.text,
             text.text);
    oracle_case = both;
    bool possible = check_on(model, &text, NULL, 0, &n_ranks);
    if (possible) {
        /* The same and twice as many ranks over several nodes. */
        uint32_t total = n_ranks * PICK(random, 1, 1, 2);
        uint32_t cut = 1 + below(random, total);
        const uint32_t slots[] = {cut / 2, cut - cut / 2, (total - cut) / 2,
                                  total - cut - (total - cut) / 2};
        check_on(model, &text, slots, 4, &n_ranks);
    }
    oracle_case = "";
    return possible;
}

LIMIT(getenv("RF_ORACLE_PAIRS") ? 3600 : 120)

TEST(test_oracle_agrees_on_random_pairs)
{
    const char *pairs = getenv("RF_ORACLE_PAIRS");
    const char *seed = getenv("RF_ORACLE_SEED");
    long wanted = pairs ? atol(pairs) : 300, done = 0, tried = 0;
    struct random random = {seed ? (uint64_t)atoll(seed) : 1};
    while (done < wanted) {
        done += check_random(&random);
        oracle_assert(++tried < 100 * wanted, "only %ld of %ld are possible",
                      done, tried);
    }
    if (pairs != NULL) {
        printf("oracle: %ld random pairs agree (%ld drawn)\n", done, tried);
    }
}

/*
 * Source choice: the cases in which the reference planner of Megatron-LM loads
 * one sender up to eight times as much as necessary, and the bytes that it
 * moves between ranks in its published configurations.
 */
#include <stdio.h>

#include "planner/layout/mesh_rules.h"
#include "planner/plan/plan.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define MEGATRON                                                               \
    "{'megatron': {'num_layers': %d, 'hidden_size': %d, "                      \
    "'num_attention_heads': %d, 'ffn_hidden_size': %d, 'vocab_size': 50304, "  \
    "'swiglu': true, 'untie': true%s}}"
#define EXPERTS ", 'num_experts': 8, 'moe_ffn_hidden_size': 4096"

static struct rf_model *small(void)
{
    return quoted_model(MEGATRON, 4, 1024, 8, 4096, "");
}

static struct rf_model *small_experts(void)
{
    return quoted_model(MEGATRON, 4, 1024, 8, 4096, EXPERTS);
}

static struct rf_model *small_deep(void)
{
    return quoted_model(MEGATRON, 8, 1024, 8, 4096, "");
}

static struct rf_model *large(void)
{
    return quoted_model(MEGATRON, 32, 4096, 32, 16384, "");
}

static struct rf_model *llama_8b(void)
{
    return file_model("llama-3.1-8b", "");
}

static struct rf_model *llama_70b(void)
{
    return file_model("llama-3.1-70b", "");
}

static struct rf_model *qwen_30b(void)
{
    return file_model("qwen3-30b-a3b", "");
}

/* Plans on `n_nodes` nodes of `slots` slots; 0 nodes: as many as it takes of
 * one imaginary node. */
static struct rf_plan_totals totals_of(struct rf_model *model, uint32_t slots,
                                       uint32_t n_nodes, const char *members)
{
    uint32_t all[64];
    struct rf_err err = {0};
    AUTO(rf_spec) *spec = quoted_spec("%s", members);
    AUTO(rf_world) *world = NULL;
    AUTO(rf_plan) *plan = NULL;
    for (uint32_t i = 0; i < n_nodes; i++) {
        all[i] = slots;
    }
    ck_assert_msg(
        rf_mesh_rules_place(spec, model, all, n_nodes, &world, &err) == RF_OK,
        "%s: %s", members, err.text);
    ck_assert_msg(rf_plan_build(model, world, spec, &plan, &err) == RF_OK,
                  "%s: %s", members, err.text);
    return plan->totals;
}

static const struct {
    struct rf_model *(*model)(void);
    const char *from, *to;
} uneven[] = {
    {llama_8b, "'dp': 8", "'dp': 8"},
    {small, "'tp': 1, 'dp': 2", "'tp': 2, 'dp': 1"},
    {small, "'tp': 2, 'dp': 2", "'tp': 4, 'dp': 1"},
    {small_experts, "'ep': 2, 'dp': 4", "'ep': 4, 'dp': 4"},
    {llama_8b, "'tp': 2, 'dp': 4", "'tp': 8, 'dp': 1"},
    {llama_8b, "'tp': 2, 'pp': 2, 'dp': 2", "'tp': 4, 'dp': 2"},
    {qwen_30b, "'tp': 2, 'ep': 4, 'dp': 8", "'tp': 4, 'dp': 4"},
    {qwen_30b, "'pp': 2, 'ep': 8, 'dp': 8", "'ep': 8, 'dp': 16"},
    {qwen_30b, "'pp': 2, 'ep': 8, 'dp': 8", "'tp': 2, 'dp': 8"},
    {llama_70b, "'tp': 4, 'pp': 8, 'dp': 8", "'tp': 8, 'dp': 32"},
    {llama_8b, "'tp': 8, 'dp': 1", "'tp': 2, 'dp': 4"},
    {large, "'tp': 2, 'pp': 2, 'dp': 1", "'tp': 4, 'dp': 1"},
};

LIMIT(60)

/* Each case in both modes, on one node and on nodes of eight. */
LOOP_TEST(test_assign_reaches_the_bound_where_the_reference_does_not,
          RF_ARRAY_SIZE(uneven))
{
    static const char *const modes[] = {"colocated", "disaggregated"};
    for (int mode = 0; mode < 2; mode++) {
        for (int by_node = 0; by_node < 2; by_node++) {
            AUTO(rf_model) *model = uneven[_i].model();
            char text[256];
            struct rf_plan_totals t;
            snprintf(text, sizeof(text),
                     "'mode': '%s', 'train': {%s}, 'infer': {%s}", modes[mode],
                     uneven[_i].from, uneven[_i].to);
            t = totals_of(model, 8, by_node ? 64 : 0, text);
            ck_assert_msg(t.max_send_bytes * 100 <= t.bound_send_bytes * 101,
                          "%s: %llu sent, %llu possible", text,
                          (unsigned long long)t.max_send_bytes,
                          (unsigned long long)t.bound_send_bytes);
            ck_assert_uint_eq(t.max_recv_bytes, t.bound_recv_bytes);
            ck_assert_uint_le(t.max_node_send_bytes * 100,
                              t.bound_node_send_bytes * 101);
            ck_assert_uint_eq(t.max_node_recv_bytes, t.bound_node_recv_bytes);
        }
    }
}

/* Bytes between different ranks in 10^6, rounded up, as the reference plans
 * them. */
static const struct {
    struct rf_model *(*model)(void);
    const char *from, *to;
    uint64_t remote_mb;
} published[] = {
    {small, "'tp': 1, 'dp': 2", "'tp': 2", 0},
    {small_deep, "'tp': 2, 'pp': 2", "'tp': 4", 356},
    {small, "'pp': 2", "'tp': 2", 170},
    {small, "'tp': 2, 'dp': 2", "'tp': 4", 170},
    {small_experts, "'ep': 2", "'ep': 1", 805},
    {small_experts, "'ep': 2", "'ep': 4", 403},
    {large, "'tp': 2, 'pp': 2", "'tp': 4", 13500},
};

LOOP_TEST(test_assign_never_moves_more_than_the_reference,
          RF_ARRAY_SIZE(published))
{
    AUTO(rf_model) *model = published[_i].model();
    char text[256];
    struct rf_plan_totals t;
    snprintf(text, sizeof(text), "'train': {%s}, 'infer': {%s}",
             published[_i].from, published[_i].to);
    t = totals_of(model, 0, 0, text);
    /* The published figures have three digits. */
    ck_assert_uint_le(t.bytes_total - t.bytes_local,
                      published[_i].remote_mb * 1005000);
}

TEST(test_assign_prefers_the_own_slot_then_the_own_node)
{
    AUTO(rf_model) *model = small();
    /* TP 2 on both sides, four replicas of it over four nodes: nothing has to
     * move at all. */
    struct rf_plan_totals t =
        totals_of(model, 2, 4, "'train': {'tp': 2}, 'infer': {'tp': 2}");
    ck_assert_uint_eq(t.bytes_local, t.bytes_total);
    ck_assert_uint_eq(t.max_send_bytes, 0);
    ck_assert_uint_eq(t.bound_send_bytes, 0);
    /* TP 2 to TP 1: half of it moves, but only inside nodes. */
    t = totals_of(model, 2, 4, "'train': {'tp': 2}, 'infer': {'tp': 1}");
    ck_assert_uint_eq(t.bytes_inter_node, 0);
    ck_assert_uint_gt(t.bytes_intra_node, 0);
}

TEST(test_assign_does_not_cut_where_whole_boxes_are_even)
{
    AUTO(rf_model) *model = small();
    struct rf_plan_totals t = totals_of(
        model, 0, 0,
        "'mode': 'disaggregated', 'train': {'dp': 4}, 'infer': {'dp': 4}");
    /* Every engine rank reads all from a trainer of its own. */
    ck_assert_uint_eq(t.transfers, 4 * model->n_tensors +
                                       4 * 4 * 3 * 7); /* per query group */
    ck_assert_uint_eq(t.max_send_bytes, t.bound_send_bytes);
}

TEST(test_assign_is_the_same_every_time)
{
    struct rf_err err = {0};
    AUTO(rf_model) *model = small_experts();
    AUTO(rf_spec) *spec = quoted_spec(
        "'mode': 'disaggregated', 'train': {'tp': 2, 'ep': 2, 'dp': 2}, "
        "'infer': {'ep': 4, 'layout': 'vllm'}");
    const uint32_t slots[] = {4, 8};
    AUTO(rf_world) *world = NULL;
    struct rf_plan *a = NULL, *b = NULL;
    assert_ok(rf_mesh_rules_place(spec, model, slots, 2, &world, &err), err);
    assert_ok(rf_plan_build(model, world, spec, &a, &err), err);
    assert_ok(rf_plan_build(model, world, spec, &b, &err), err);
    ck_assert_mem_eq(&a->digest, &b->digest, sizeof(a->digest));
    rf_plan_destroy(b);
    spec->balance = RF_BALANCE_NONE;
    assert_ok(rf_plan_build(model, world, spec, &b, &err), err);
    ck_assert_mem_ne(&a->digest, &b->digest, sizeof(a->digest));
    rf_plan_destroy(a);
    rf_plan_destroy(b);
}

/* Trainers on a and b, each with all of it; receivers on c and d. */
static const struct {
    uint32_t slots;
    const char *links, *train;
    double node, rank; /* the busiest's part of what leaves nodes */
} weighed[] = {
    {1, "{'weight': 1}, {'weight': 1}", "'nodes': ['a', 'b']", 0.5, 0.5},
    {1, "{'weight': 1}, {'weight': 1, 'nics': 3}", "'nodes': ['a', 'b']", 0.5,
     0.5}, /* one rank uses one NIC */
    {3, "{'weight': 1}, {'weight': 1, 'nics': 3}", "'nodes': ['a', 'b']", 0.75,
     0.25},
    {1, "{'weight': 1000}, {'weight': 1}", "'nodes': ['a', 'b']", 0.999, 0.999},
    /* three ranks on two NICs: the first and the last share one */
    {3, "{'weight': 1, 'nics': 2}, {'weight': 1}", "'nodes': ['a']", 1, 0.5},
    {4, "{'weight': 5, 'nics': 4}, {'weight': 4}",
     "'tp': 2, 'nodes': ['a', 'b']", 20. / 24, 5. / 24},
};

LOOP_TEST(test_assign_by_time_divides_as_links_can_send, RF_ARRAY_SIZE(weighed))
{
    AUTO(rf_model) *model = small();
    struct rf_plan_totals t;
    char text[512];
    snprintf(text, sizeof(text),
             "'mode': 'disaggregated', 'balance': 'time', 'balance_links': "
             "[%s, {'weight': 1}, {'weight': 1}], 'train': {%s}, 'infer': "
             "{'tp': 2, 'nodes': ['c', 'd']}",
             weighed[_i].links, weighed[_i].train);
    t = totals_of(model, weighed[_i].slots, 4, text);
    ck_assert_uint_eq(t.bytes_total, t.bytes_inter_node);
    ck_assert_double_eq_tol((double)t.max_node_send_bytes,
                            weighed[_i].node * (double)t.bytes_total,
                            0.01 * (double)t.bytes_total);
    ck_assert_double_eq_tol((double)t.max_send_bytes,
                            weighed[_i].rank * (double)t.bytes_total,
                            0.01 * (double)t.bytes_total);
}

#define INSIDE "'mode': 'disaggregated', 'train': {'dp': 4}, 'infer': {'dp': 4}"

/* What stays in a node is divided evenly there, whatever its links are. */
TEST(test_assign_by_time_weighs_only_what_leaves_nodes)
{
    AUTO(rf_model) *model = small();
    struct rf_plan_totals size, time;
    size = totals_of(model, 8, 4, INSIDE);
    time = totals_of(model, 8, 4,
                     INSIDE ", 'balance': 'time', 'balance_links': "
                            "[{'weight': 9, 'nics': 3}, {'weight': 1}, "
                            "{'weight': 1}, {'weight': 1}]");
    ck_assert_uint_eq(size.bytes_inter_node, 0);
    ck_assert_uint_eq(time.max_send_bytes, size.max_send_bytes);
    ck_assert_uint_eq(time.transfers, size.transfers);
}

TEST(test_assign_by_time_needs_weights)
{
    struct rf_err err = {0};
    AUTO(rf_model) *model = small();
    struct rf_spec *spec = quoted_spec("'balance': 'time', 'train': {}, "
                                       "'infer': {}");
    const uint32_t slots[] = {1, 1};
    AUTO(rf_world) *world = NULL;
    struct rf_plan *plan = NULL;
    assert_ok(rf_mesh_rules_place(spec, model, slots, 2, &world, &err), err);
    assert_fails(rf_plan_build(model, world, spec, &plan, &err), RF_ERR_CONFIG,
                 err, "link weights of 2 nodes");
    rf_spec_destroy(spec);
}

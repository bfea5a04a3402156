/* Worlds: who sits where, and the groups that Megatron-LM forms. */
#include <stdio.h>
#include <string.h>

#include "planner/layout/mesh_rules.h"
#include "planner/scenario/world.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

static struct rf_model *tiny(void)
{
    return quoted_model("{'tensor': {'shape': [64, 64]}}");
}

/* A model with experts that all small meshes divide. */
static struct rf_model *sparse(void)
{
    return quoted_model(
        "{'megatron': {'num_layers': 8, 'hidden_size': 512, "
        "'num_attention_heads': 16, 'vocab_size': 1024, 'swiglu': true, "
        "'ffn_hidden_size': 1024, 'num_experts': 16}}");
}

static struct rf_world *build(struct rf_spec *spec, struct rf_model *model,
                              const uint32_t *slots, uint32_t n_nodes)
{
    struct rf_world *world = NULL;
    struct rf_err err = {0};
    assert_ok(rf_mesh_rules_place(spec, model, slots, n_nodes, &world, &err),
              err);
    for (int side = 0; side < RF_SIDES; side++) {
        for (uint32_t i = 0; i < world->size[side]; i++) {
            uint32_t rank = world->rank_of[side][i];
            ck_assert_uint_lt(rank, world->n_ranks);
            ck_assert_uint_eq(world->ranks[rank].index[side], i);
        }
    }
    return world;
}

static void assert_rank(const struct rf_world *world, uint32_t rank,
                        uint32_t node, uint32_t slot, uint32_t train,
                        uint32_t infer)
{
    ck_assert_uint_eq(world->ranks[rank].node, node);
    ck_assert_uint_eq(world->ranks[rank].slot, slot);
    ck_assert_uint_eq(world->ranks[rank].index[RF_TRAIN], train);
    ck_assert_uint_eq(world->ranks[rank].index[RF_INFER], infer);
}

TEST(test_world_colocated_fills_all_slots)
{
    const uint32_t slots[] = {4, 4};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 8}");
    AUTO(rf_world) *world = build(spec, model, slots, 2);
    ck_assert_uint_eq(world->n_ranks, 8);
    ck_assert_uint_eq(world->n_nodes, 2);
    ck_assert_uint_eq(spec->train.dp, 2);
    ck_assert_uint_eq(spec->infer.dp, 1);
    assert_rank(world, 0, 0, 0, 0, 0);
    assert_rank(world, 5, 1, 1, 5, 5);
    ck_assert(!rf_same_slot(world, 0, 4));
}

TEST(test_world_explicit_dp_uses_the_first_slots)
{
    const uint32_t slots[] = {4, 4};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {'tp': 2, 'dp': 1}, 'infer': {'tp': 4, 'dp': 1}");
    AUTO(rf_world) *world = build(spec, model, slots, 2);
    ck_assert_uint_eq(world->n_ranks, 4); /* idle slots have no rank */
    assert_rank(world, 1, 0, 1, 1, 1);
    assert_rank(world, 3, 0, 3, RF_NONE, 3);
}

TEST(test_world_separate_processes_share_slots)
{
    const uint32_t slots[] = {2, 2};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {'tp': 2}, 'infer': {'tp': 4}, 'colocated_processes': "
        "'separate'");
    AUTO(rf_world) *world = build(spec, model, slots, 2);
    ck_assert_uint_eq(world->n_ranks, 8);
    assert_rank(world, 2, 1, 0, 2, RF_NONE);
    assert_rank(world, 6, 1, 0, RF_NONE, 2);
    ck_assert(rf_same_slot(world, 2, 6));
    ck_assert(!rf_same_slot(world, 2, 7));
}

TEST(test_world_disaggregated_takes_smallest_worlds_in_order)
{
    const uint32_t slots[] = {3, 3};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec(
        "'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': {'tp': 2}");
    AUTO(rf_world) *world = build(spec, model, slots, 2);
    ck_assert_uint_eq(world->n_ranks, 4);
    assert_rank(world, 1, 0, 1, 1, RF_NONE);
    assert_rank(world, 2, 0, 2, RF_NONE, 0);
    assert_rank(world, 3, 1, 0, RF_NONE, 1);
}

TEST(test_world_disaggregated_nodes_belong_to_their_side)
{
    const uint32_t slots[] = {2, 2, 2, 2};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec(
        "'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': {'tp': 2, "
        "'nodes': ['c', 'a']}");
    AUTO(rf_world) *world = build(spec, model, slots, 4);
    ck_assert_uint_eq(world->n_ranks, 6);
    ck_assert_uint_eq(spec->train.dp, 1);
    ck_assert_uint_eq(spec->infer.dp, 2);
    assert_rank(world, 0, 1, 0, 0, RF_NONE); /* node a is taken */
    assert_rank(world, 2, 2, 0, RF_NONE, 0); /* listed order */
    assert_rank(world, 4, 0, 0, RF_NONE, 2);
}

TEST(test_world_colocated_on_named_nodes)
{
    const uint32_t slots[] = {2, 2, 2};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {'tp': 2, 'nodes': ['b', 'c']}, 'infer': {}");
    AUTO(rf_world) *world = build(spec, model, slots, 3);
    ck_assert_uint_eq(world->n_ranks, 4);
    ck_assert_uint_eq(spec->infer.dp, 4);
    assert_rank(world, 0, 1, 0, 0, 0);
}

static const struct {
    const char *text;
    uint32_t ranks, train_dp, infer_dp;
} slotless[] = {
    /* the reference's rule: least common multiple, or the sum */
    {"'train': {'tp': 2}, 'infer': {'tp': 1}", 2, 1, 2},
    {"'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}", 4, 1, 1},
    {"'train': {'tp': 2}, 'infer': {'tp': 8, 'dp': 3}", 24, 12, 3},
    {"'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': {'tp': 4}", 6, 1,
     1},
    {"'mode': 'disaggregated', 'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': "
     "4}",
     8, 1, 1},
    {"'train': {'ep': 2}, 'infer': {'ep': 4}", 4, 4, 4},
    {"'mode': 'disaggregated', 'train': {'tp': 8, 'ep': 8}, 'infer': {'tp': "
     "8, 'ep': 4}",
     96, 8, 4},
    {"'train': {'tp': 4, 'ep': 2, 'etp': 1}, 'infer': {'tp': 2, 'ep': 4, "
     "'etp': 1}",
     4, 1, 2},
    {"'train': {'cp': 3}, 'infer': {'tp': 2}", 6, 2, 3},
    {"'train': {'layout': 'fsdp', 'dp': 8}, 'infer': {'layout': 'vllm', "
     "'tp': 4}",
     8, 8, 2},
};

/* As where the model is not known yet; no size may overflow then. */
TEST(test_world_is_placed_without_a_model)
{
    const uint32_t slots[] = {4, 4};
    AUTO(rf_model) *model = sparse();
    struct rf_spec *spec =
        quoted_spec("'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 8}");
    struct rf_world *world = build(spec, model, slots, 2), *placed = NULL;
    struct rf_err err = {0};
    assert_ok(rf_world_place(spec, slots, 2, &placed, &err), err);
    ck_assert_uint_eq(placed->n_ranks, world->n_ranks);
    ck_assert_mem_eq(placed->ranks, world->ranks,
                     world->n_ranks * sizeof(*world->ranks));
    rf_world_destroy(placed);
    rf_world_destroy(world);
    rf_spec_destroy(spec);
    spec = quoted_spec("'train': {'tp': 65536, 'cp': 65536, 'pp': 65536, 'dp': "
                       "65536}, 'infer': {}");
    assert_fails(rf_world_place(spec, slots, 2, &placed, &err), RF_ERR_CONFIG,
                 err, "these sizes need");
    rf_spec_destroy(spec);
}

LOOP_TEST(test_world_without_slots_is_the_smallest, RF_ARRAY_SIZE(slotless))
{
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec("%s", slotless[_i].text);
    uint64_t smallest = rf_world_smallest(spec);
    AUTO(rf_world) *world = build(spec, model, NULL, 0);
    ck_assert_uint_eq(world->n_ranks, slotless[_i].ranks);
    ck_assert_uint_eq(smallest, slotless[_i].ranks);
    ck_assert_uint_eq(world->n_nodes, 1);
    ck_assert_uint_eq(spec->train.dp, slotless[_i].train_dp);
    ck_assert_uint_eq(spec->infer.dp, slotless[_i].infer_dp);
}

LOOP_TEST(test_world_of_a_printed_scenario_is_the_same, 2)
{
    const uint32_t slots[] = {4, 4, 4, 4};
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec("%s", slotless[_i].text), *again = NULL;
    AUTO(rf_world) *first = build(spec, model, slots, 4), *second;
    json_auto_t *text = rf_spec_to_json(spec, quoted_nodes);
    struct rf_jnode node = rf_jnode_root(text, "test");
    struct rf_err err = {0};
    ck_assert_msg(rf_spec_from_json(&node, quoted_nodes, 4, &again, &err) ==
                      RF_OK,
                  "%s", err.text);
    second = build(again, model, slots, 4);
    ck_assert_uint_eq(second->n_ranks, first->n_ranks);
    ck_assert_mem_eq(second->ranks, first->ranks,
                     first->n_ranks * sizeof(*first->ranks));
}

/* All groups of ranks that agree in everything but one coordinate, written
 * {0,1}{2,3}…, in the order of their first rank. */
enum axis { AXIS_TP, AXIS_CP, AXIS_DP, AXIS_PP, AXIS_ETP, AXIS_EP, AXIS_EDP };

static struct rf_coord without(struct rf_coord at, enum axis axis)
{
    bool expert = axis >= AXIS_ETP;
    /* a group lives in one of the two grids: forget the other */
    if (expert) {
        at.tp = at.cp = at.dp = 0;
    } else {
        at.etp = at.ep = at.edp = 0;
    }
    *(axis == AXIS_TP    ? &at.tp
      : axis == AXIS_CP  ? &at.cp
      : axis == AXIS_DP  ? &at.dp
      : axis == AXIS_PP  ? &at.pp
      : axis == AXIS_ETP ? &at.etp
      : axis == AXIS_EP  ? &at.ep
                         : &at.edp) = 0;
    return at;
}

static const char *groups(const struct rf_side_spec *side, uint32_t size,
                          enum axis axis)
{
    static char text[512];
    bool seen[64] = {false};
    size_t used = 0;
    for (uint32_t i = 0; i < size; i++) {
        struct rf_coord mine = without(rf_coord_of(side, size, i), axis);
        if (seen[i]) {
            continue;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "{%u", i);
        for (uint32_t j = i + 1; j < size; j++) {
            struct rf_coord other = without(rf_coord_of(side, size, j), axis);
            if (memcmp(&mine, &other, sizeof(mine)) == 0) {
                seen[j] = true;
                used += (size_t)snprintf(text + used, sizeof(text) - used,
                                         ",%u", j);
            }
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "}");
    }
    return text;
}

TEST(test_world_groups_are_those_of_megatron)
{
    struct rf_side_spec side = {
        .tp = 2, .cp = 1, .ep = 4, .etp = 1, .pp = 1, .vpp = 1};
    ck_assert_str_eq(groups(&side, 8, AXIS_TP), "{0,1}{2,3}{4,5}{6,7}");
    ck_assert_str_eq(groups(&side, 8, AXIS_DP), "{0,2,4,6}{1,3,5,7}");
    ck_assert_str_eq(groups(&side, 8, AXIS_EP), "{0,1,2,3}{4,5,6,7}");
    ck_assert_str_eq(groups(&side, 8, AXIS_EDP), "{0,4}{1,5}{2,6}{3,7}");
    side = (struct rf_side_spec){
        .tp = 2, .cp = 1, .ep = 1, .etp = 2, .pp = 4, .vpp = 1};
    ck_assert_str_eq(groups(&side, 16, AXIS_DP),
                     "{0,2}{1,3}{4,6}{5,7}{8,10}{9,11}{12,14}{13,15}");
    ck_assert_str_eq(groups(&side, 16, AXIS_PP),
                     "{0,4,8,12}{1,5,9,13}{2,6,10,14}{3,7,11,15}");
    side = (struct rf_side_spec){
        .tp = 2, .cp = 2, .ep = 2, .etp = 2, .pp = 1, .vpp = 1};
    ck_assert_str_eq(groups(&side, 8, AXIS_CP), "{0,2}{1,3}{4,6}{5,7}");
    ck_assert_str_eq(groups(&side, 8, AXIS_EP), "{0,2}{1,3}{4,6}{5,7}");
    ck_assert_str_eq(groups(&side, 8, AXIS_ETP), "{0,1}{2,3}{4,5}{6,7}");
    ck_assert_str_eq(groups(&side, 8, AXIS_EDP), "{0,4}{1,5}{2,6}{3,7}");
}

TEST(test_world_formulae_invert)
{
    const struct rf_side_spec side = {
        .tp = 3, .cp = 2, .ep = 4, .etp = 1, .pp = 5, .vpp = 1};
    const uint32_t size = 3 * 2 * 2 * 5, dp = 2, edp = 3;
    for (uint32_t i = 0; i < size; i++) {
        struct rf_coord at = rf_coord_of(&side, size, i);
        ck_assert_uint_eq(at.tp + 3 * (at.cp + 2 * (at.dp + dp * at.pp)), i);
        ck_assert_uint_eq(at.etp + at.ep + 4 * (at.edp + edp * at.pp), i);
    }
}

static const struct {
    const char *text, *says;
    uint32_t slots[2];
} refused[] = {
    {"'train': {'tp': 2, 'cp': 3}, 'infer': {}",
     "train: 8 slots do not divide into groups of tp·cp·pp = 2·3·1 = 6 ranks; "
     "nearest numbers of slots that work: 6, 12",
     {4, 4}},
    {"'train': {}, 'infer': {'tp': 2, 'ep': 8}",
     "infer: needs at least 16 slots but has 8: etp·ep·pp = 2·8·1 (\"etp\" "
     "defaults to tp); with \"etp\": 1 it needs 8",
     {4, 4}},
    {"'train': {}, 'infer': {'ep': 8, 'etp': 1}",
     "infer: 12 slots do not divide into groups of etp·ep·pp = 1·8·1 = 8 "
     "ranks; nearest numbers of slots that work: 8, 16",
     {6, 6}},
    {"'train': {'layout': 'fsdp', 'dp_replicate': 3}, 'infer': {}",
     "train: 8 slots do not divide into dp_replicate = 3 groups; nearest "
     "numbers of slots that work: 6, 9",
     {4, 4}},
    {"'train': {'tp': 2, 'ep': 4, 'etp': 1, 'dp': 3}, 'infer': {}",
     "train: tp·cp·pp·dp = 6 ranks do not divide into groups of etp·ep·pp = "
     "1·4·1 = 4; nearest values of dp that work: 2, 4",
     {4, 4}},
    {"'train': {'tp': 2, 'dp': 5}, 'infer': {}",
     "train: needs at least 10 slots but has 8: tp·cp·pp·dp = 2·1·1·5",
     {4, 4}},
    {"'mode': 'disaggregated', 'train': {'tp': 4}, 'infer': {'tp': 8}",
     "infer: needs at least 8 slots but has 4: tp·cp·pp·dp = 8·1·1·1; "
     "disaggregated sides share no slots",
     {4, 4}},
    {"'mode': 'disaggregated', 'train': {'nodes': ['a']}, 'infer': {'nodes': "
     "['b', 'a']}",
     "must not share nodes",
     {4, 4}},
    {"'mode': 'disaggregated', 'train': {'nodes': ['a'], 'cp': 3}, 'infer': "
     "{'nodes': ['b']}",
     "train: 4 slots do not divide into groups of tp·cp·pp = 1·3·1 = 3",
     {4, 4}},
    {"'train': {'nodes': ['a']}, 'infer': {'nodes': ['b']}",
     "colocated sides share their slots",
     {4, 4}},
    {"'train': {'nodes': ['a', 'd']}, 'infer': {}",
     "train: \"nodes\" refers to a node outside of the 2 of the cluster",
     {4, 4}},
    {"'train': {'dp': 65536, 'cp': 65536}, 'infer': {}",
     "train: these sizes need more than 1048576 ranks",
     {4, 4}},
    {"'train': {'dp': 65536, 'cp': 16}, 'infer': {'cp': 3}",
     "all sides need more than 1048576 ranks together",
     {0, 0}},
    {"'train': {}, 'infer': {}", "the limit is 1048576", {1000000, 1000000}},
    {"'train': {}, 'infer': {'cp': 2}",
     "infer: needs at least 2 slots but has 1",
     {1, 0}},
    {"'mode': 'disaggregated', 'train': {'nodes': ['a']}, 'infer': [{'nodes': "
     "['b']}, {'nodes': ['b']}]",
     "infer[1]: sides with slots of their own must not share nodes: \"nodes\" "
     "lists a "
     "node of infer[0]",
     {4, 4}},
    {"'mode': 'disaggregated', 'train': {'tp': 4}, 'infer': [{'tp': 2}, "
     "{'tp': 4}]",
     "infer[1]: needs at least 4 slots but has 2",
     {4, 4}},
    {"'train': {'nodes': ['a']}, 'infer': [{}, {'nodes': ['a']}]",
     "infer[1]: sides with slots of their own must not share nodes: \"nodes\" "
     "lists a "
     "node of the training side",
     {4, 4}},
    {"'train': {}, 'infer': [{'tp': 4}, {'tp': 8}]",
     "has 0: tp·cp·pp·dp = 1·1·1·1; pools share no slots",
     {4, 4}},
};

static const struct {
    const char *text;
    uint32_t slots[3];
    const char *ranks; /* node, slot, index in training and in the pools; "-":
                          none; then the number of the pool */
} pooled[] = {
    {"'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': [{'tp': 2}, "
     "{'dp': 1}]",
     {3, 3, 0},
     "000-0 011-0 02-01 10-11 11-22 "},
    {"'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': [{'nodes': ['a']}, "
     "{'nodes': ['c']}]",
     {1, 2, 2},
     "100-0 111-0 00-01 20-12 21-22 "},
    {"'train': {'tp': 2}, 'infer': [{'cp': 3}, {'tp': 2, 'dp': 1}]",
     {4, 4, 0},
     "00001 01111 02221 03331 10441 11551 12-62 13-72 "},
    {"'train': {'nodes': ['b']}, 'infer': [{}, {'nodes': ['a']}]",
     {1, 2, 0},
     "10001 11111 00-22 "},
    {"'colocated_processes': 'separate', 'train': {'nodes': 1}, 'infer': [{}, "
     "{'nodes': 1}]",
     {2, 1, 0},
     "000-0 011-0 00-01 01-11 10-22 "},
};

/* Training, then pool after pool; colocated, the first shares the slots that
 * the others leave. */
LOOP_TEST(test_world_places_pools, RF_ARRAY_SIZE(pooled))
{
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec("%s", pooled[_i].text);
    AUTO(rf_world) *world = build(spec, model, pooled[_i].slots, 3);
    char found[128] = "";
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const struct rf_rank *rank = &world->ranks[r];
        const char digits[] = "0123456789";
        for (int side = 0; side < RF_SIDES; side++) {
            ck_assert(rank->index[side] == RF_NONE || rank->index[side] < 10);
        }
        snprintf(found + strlen(found), sizeof(found) - strlen(found),
                 "%u%u%c%c%d ", rank->node, rank->slot,
                 rank->index[0] == RF_NONE ? '-' : digits[rank->index[0]],
                 rank->index[1] == RF_NONE ? '-' : digits[rank->index[1]],
                 (int)rf_world_pool(world, r));
    }
    ck_assert_str_eq(found, pooled[_i].ranks);
}

LOOP_TEST(test_world_refuses_impossible_worlds_with_sizes_that_work,
          RF_ARRAY_SIZE(refused))
{
    AUTO(rf_model) *model = sparse();
    AUTO(rf_spec) *spec = quoted_spec("%s", refused[_i].text);
    struct rf_world *world = NULL;
    struct rf_err err = {0};
    uint32_t dp = spec->train.dp;
    assert_fails(
        rf_mesh_rules_place(
            spec, model, refused[_i].slots,
            refused[_i].says[0] == 'a' && refused[_i].slots[0] == 0 ? 0 : 2,
            &world, &err),
        RF_ERR_CONFIG, err, refused[_i].says);
    /* The caller knows where the scenario stands, and names it. */
    ck_assert_ptr_null(strstr(err.text, "scenario \""));
    ck_assert_ptr_null(world);
    ck_assert_uint_eq(spec->train.dp, dp);
}

TEST(test_world_of_a_sharded_tensor)
{
    AUTO(rf_model) *model = tiny();
    AUTO(rf_spec) *spec = quoted_spec(
        "'mode': 'disaggregated', 'train': {'layout': 'spec', 'mesh': [1, 1], "
        "'spec': 'RR'}, 'infer': {'layout': 'spec', 'mesh': [2, 3], 'spec': "
        "'S0S1'}");
    AUTO(rf_world) *world = build(spec, model, NULL, 0);
    ck_assert_uint_eq(world->n_ranks, 7);
    ck_assert_uint_eq(world->size[RF_INFER], 6);
    ck_assert_uint_eq(rf_coord_of(&spec->infer, 6, 4).dp, 4);
}

TEST(test_world_of_sixteen_thousand_ranks)
{
    const uint32_t slots[] = {16384};
    AUTO(rf_model) *model = file_model("kimi-k2", "");
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {'tp': 8, 'ep': 64, 'etp': 1, 'pp': 8, "
        "'num_layers_in_first_pipeline_stage': 7, "
        "'num_layers_in_last_pipeline_stage': 6}, 'infer': {'tp': 16, 'ep': "
        "16, 'layout': 'vllm'}");
    AUTO(rf_world) *world = build(spec, model, slots, 1);
    ck_assert_uint_eq(world->n_ranks, 16384);
    ck_assert_uint_eq(spec->train.dp, 256);
    ck_assert_uint_eq(world->mesh[RF_TRAIN].edp, 32);
}

/* Ranks 0 to 2 infer on one node, 3 on the next, 4 and 5 on the last; the node
 * between has none. */
TEST(test_world_load_goes_round_the_nodes_that_have_one)
{
    static const uint32_t expected[] = {3, 3, 3, 4, 0, 1, RF_NONE};
    struct rf_rank ranks[] = {{.node = 0},
                              {.node = 0},
                              {.node = 0},
                              {.node = 2},
                              {.node = 3},
                              {.node = 3},
                              {.node = 1, .index = {0, RF_NONE}}};
    const struct rf_world world = {.n_ranks = 7, .ranks = ranks, .n_nodes = 4};
    const struct rf_load_spec load = {.given = true, .network = true};
    AUTO_FREE uint32_t *peers = rf_world_load_peers(&world, &load);
    ck_assert_mem_eq(peers, expected, sizeof(expected));
    for (uint32_t r = 0; r < world.n_ranks; r++) { /* all on one node */
        ranks[r].node = 1;
    }
    free(peers);
    peers = rf_world_load_peers(&world, &load);
    for (uint32_t r = 0; r < world.n_ranks; r++) {
        ck_assert_uint_eq(peers[r], RF_NONE);
    }
}

/* Two ranks train, two others infer. */
LOOP_TEST(test_world_has_a_load_on_the_ranks_of_its_side, 4)
{
    static const struct {
        const char *load;
        bool on[4];
    } cases[] = {
        {"", {false, false, false, false}},
        {", 'load': {'memory_gbytes_per_s': 1}", {false, false, true, true}},
        {", 'load': {'memory_gbytes_per_s': 1, 'on': 'train'}",
         {true, true, false, false}},
        {", 'load': {'memory_gbytes_per_s': 1, 'on': 'all'}",
         {true, true, true, true}}};
    const uint32_t slots[] = {4};
    AUTO(rf_spec) *spec = quoted_spec("'mode': 'disaggregated', 'train': "
                                      "{'tp': 2}, 'infer': {'tp': 2}%s",
                                      cases[_i].load);
    AUTO(rf_world) *world = NULL;
    struct rf_err err;
    assert_ok(rf_world_place(spec, slots, 1, &world, &err), err);
    for (uint32_t r = 0; r < 4; r++) {
        ck_assert_int_eq(rf_world_loads(world, &spec->load, r),
                         cases[_i].on[r]);
    }
}

/* Predicted times that can be worked out by hand; test_strategy_links.c
 * compares with a simulation of every op. */
#include <stdio.h>

#include "common/compiler.h"
#include "common/mem.h"
#include "planner/predict/simulate.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define BYTES 4194304. /* 1024 x 1024 floats */
#define TENSOR                                                                 \
    "{'tensor': {'name': 'w', 'shape': [1024, 1024], 'dtype': 'float32'}}"
#define ACROSS(train, infer, more)                                             \
    "{'mode': 'disaggregated', " more                                          \
    " 'train': {'layout': 'spec', 'nodes': ['n0'], " train                     \
    "}, 'infer': {'layout': 'spec', 'nodes': ['n1'], " infer "}}"
#define WHOLE "'mesh': [1, 1], 'spec': 'RR'"
#define HALVES "'mesh': [1, 2], 'spec': 'S1R'"

static const char *const names[] = {"a", "b"};

static struct rf_simulated simulate_with(const char *scenario, uint32_t slots,
                                         const struct rf_capacities *links,
                                         double per_op_us,
                                         struct rf_intra_node inside)
{
    const uint32_t all[] = {slots, slots};
    struct rf_simulated found;
    AUTO(planned) lab;
    assert_ok(lab_make(&lab, TENSOR, scenario, all, 2), lab.err);
    ck_assert_int_eq(
        rf_simulate(&(struct rf_simulate_env){.plan = lab.plan,
                                              .schedule = lab.schedule,
                                              .links = links,
                                              .node_names = names,
                                              .per_op_us = per_op_us,
                                              .inside = inside},
                    &found, NULL),
        RF_OK);
    return found;
}

static struct rf_simulated simulate(const char *scenario, uint32_t slots,
                                    const struct rf_capacities *links,
                                    double per_op_us)
{
    return simulate_with(scenario, slots, links, per_op_us,
                         (struct rf_intra_node){.left = RF_LEFT_SLOT});
}

LIMIT(60)

TEST(test_simulate_adds_latency_and_operations)
{
    AUTO(rf_capacities) links;
    struct rf_simulated found;
    lab_links(&links, 2, 10, 10, 0.5);
    links.pair_latency_us[0 * 2 + 1] = 200;
    found = simulate(ACROSS(WHOLE, WHOLE, ""), 1, &links, 0);
    ck_assert_double_eq_tol(found.ms, BYTES / 0.5e6 + 0.2, 0.15);
    ck_assert_str_eq(found.busiest, "link a out");
    ck_assert_int_eq(found.path, RF_PATH_BETWEEN);
    found = simulate(ACROSS(WHOLE, WHOLE, ""), 1, &links, 1e6);
    ck_assert_double_ge(found.ms, 1000);
    ck_assert_str_eq(found.busiest, "operations of rank 0");
    ck_assert_int_eq(found.path, RF_PATH_CPU);
}

/* Two ranks on two NICs take half the time of two ranks on one. */
TEST(test_simulate_ranks_share_nics_by_slot)
{
    const char *scenario = ACROSS(HALVES, HALVES, "");
    AUTO(rf_capacities) links;
    struct rf_simulated one, two, from;
    lab_links(&links, 2, 0, 0, 0);
    links.nic_gbytes_per_s[0] = links.nic_gbytes_per_s[1] = 0.5;
    one = simulate(scenario, 2, &links, 0);
    links.nics[0] = links.nics[1] = 2;
    two = simulate(scenario, 2, &links, 0);
    ck_assert_double_eq_tol(one.ms, BYTES / 0.5e6, BYTES / 0.5e6 / 20);
    ck_assert_double_eq_tol(two.ms, one.ms / 2, one.ms / 20);
    /* Two NICs at one end alone are of no use … */
    links.nics[0] = 1;
    from = simulate(scenario, 2, &links, 0);
    ck_assert_double_eq_tol(from.ms, one.ms, one.ms / 20);
    ck_assert_str_eq(from.busiest, "link a out");
    /* … unless the other's only one is as fast as both. */
    links.nic_gbytes_per_s[0] = 1;
    ck_assert_double_eq_tol(simulate(scenario, 2, &links, 0).ms, two.ms,
                            two.ms / 20);
    links.nic_gbytes_per_s[1] = 0.25;
    from = simulate(scenario, 2, &links, 0);
    ck_assert_double_eq_tol(from.ms, one.ms, one.ms / 20);
    ck_assert_str_eq(from.busiest, "link b in");
}

/* A piece that stays where it is costs nothing. */
TEST(test_simulate_in_place_moves_nothing)
{
    AUTO(rf_capacities) links;
    struct rf_simulated found;
    lab_links(&links, 2, 1, 1, 1);
    found =
        simulate("{'train': {'layout': 'spec', 'nodes': ['n0'], " WHOLE
                 "}, 'infer': {'layout': 'spec', 'nodes': ['n0'], " WHOLE "}}",
                 1, &links, 0);
    ck_assert_uint_eq(found.in_place, (uint64_t)BYTES);
    ck_assert_double_eq(found.ms, 0);
    ck_assert_int_eq(found.path, RF_PATH_IN_PLACE);
}

#define INSIDE(infer, more)                                                    \
    "{'colocated_processes': 'separate', " more                                \
    " 'train': {'layout': 'spec', 'nodes': ['n0'], " WHOLE                     \
    "}, 'infer': {'layout': 'spec', 'nodes': ['n0'], " infer "}}"

/* From one rank to two others, where a rank alone copies 1 GB/s and the node's
 * memory 100. */
LOOP_TEST(test_simulate_copies_with_the_ranks_that_copy, 4)
{
    static const struct {
        enum rf_copier copier;
        double rate;
        const char *busiest;
        enum rf_path path;
    } cases[] = {
        {RF_COPIER_ANY, 3, "memory of a", RF_PATH_INSIDE},
        {RF_COPIER_SRC, 1, "copying by rank 0", RF_PATH_RANK},
        {RF_COPIER_DST, 2, "copying by rank 1", RF_PATH_RANK},
        {RF_COPIER_BOTH, 1, "copying by rank 0", RF_PATH_INSIDE},
    };
    const double ms = BYTES / 1e6 / cases[_i].rate;
    AUTO(rf_capacities) links;
    struct rf_simulated found;
    lab_links(&links, 2, 100, 1, 0);
    found = simulate_with(INSIDE(HALVES, ""), 2, &links, 0,
                          (struct rf_intra_node){.copier = cases[_i].copier});
    ck_assert_double_eq_tol(found.ms, ms, ms / 20);
    ck_assert_str_eq(found.busiest, cases[_i].busiest);
    ck_assert_int_eq(found.path, cases[_i].path);
}

/* Columns of two ranks put together, on one. */
#define JOINED                                                                 \
    "{'colocated_processes': 'separate', 'train': {'layout': 'spec', "         \
    "'nodes': ['n0'], 'mesh': [1, 2], 'spec': 'RS1'}, 'infer': {'layout': "    \
    "'spec', 'nodes': ['n0'], " WHOLE "}}"
/* Where the memory is slower than what its ranks can do, it decides, unless the
 * only rank that needs something copies it. */
LOOP_TEST(test_simulate_copies_no_faster_than_the_memory, 5)
{
    static const struct {
        enum rf_copier copier;
        const char *scenario;
        double rate;
        const char *busiest;
        enum rf_path path;
    } cases[] = {
        {RF_COPIER_ANY, INSIDE(HALVES, ""), 0.5, "memory of a", RF_PATH_INSIDE},
        {RF_COPIER_SRC, INSIDE(HALVES, ""), 0.5, "memory of a", RF_PATH_INSIDE},
        {RF_COPIER_DST, INSIDE(HALVES, ""), 0.5, "memory of a", RF_PATH_INSIDE},
        {RF_COPIER_BOTH, INSIDE(HALVES, ""), 0.5, "memory of a",
         RF_PATH_INSIDE},
        {RF_COPIER_DST, JOINED, 1, "copying by rank 2", RF_PATH_RANK},
    };
    const double ms = BYTES / 1e6 / cases[_i].rate;
    AUTO(rf_capacities) links;
    struct rf_simulated found;
    lab_links(&links, 2, 0.5, 1, 0);
    found = simulate_with(cases[_i].scenario, 2, &links, 0,
                          (struct rf_intra_node){.copier = cases[_i].copier});
    ck_assert_double_eq_tol(found.ms, ms, ms / 20);
    ck_assert_str_eq(found.busiest, cases[_i].busiest);
    ck_assert_int_eq(found.path, cases[_i].path);
}

/* Rows of another rank's memory can be used there, parts of rows cannot, nor
 * what is brought by way of staging memory. */
LOOP_TEST(test_simulate_leaves_what_covers_a_piece, 6)
{
    static const struct {
        const char *scenario;
        enum rf_left left;
        double in_place;
    } cases[] = {
        {INSIDE(HALVES, ""), RF_LEFT_COVERED, BYTES},
        {INSIDE("'mesh': [1, 2], 'spec': 'RS1'", ""), RF_LEFT_COVERED, 0},
        {INSIDE(HALVES, "'strategy': 'gather_broadcast', "), RF_LEFT_COVERED,
         0},
        {INSIDE(HALVES, ""), RF_LEFT_SLOT, 0},
        {INSIDE(WHOLE, ""), RF_LEFT_SLOT, BYTES},
        {INSIDE(WHOLE, ""), RF_LEFT_NOTHING, 0},
    };
    AUTO(rf_capacities) links;
    struct rf_simulated found;
    lab_links(&links, 2, 1, 1, 0);
    found = simulate_with(cases[_i].scenario, 2, &links, 0,
                          (struct rf_intra_node){.left = cases[_i].left});
    ck_assert_double_eq((double)found.in_place, cases[_i].in_place);
    ck_assert_int_eq(found.ms > 0, cases[_i].in_place <= 0);
}

/* What is kept once for all ranks takes as long as it would op by op: the root
 * has to send everything to the other node, and gets half of it from there. */
TEST(test_simulate_counts_broadcasts)
{
    AUTO(rf_capacities) links;
    struct rf_simulated found;
    lab_links(&links, 2, 0, 0, 0.5);
    found = simulate("{'strategy': 'gather_broadcast', 'train': {'layout': "
                     "'spec', 'mesh': [2, 1], 'spec': 'S0R'}, 'infer': "
                     "{'layout': 'spec', 'mesh': [2, 1], 'spec': 'RR'}}",
                     1, &links, 0);
    ck_assert_double_ge(found.ms, BYTES / 0.5e6);
    ck_assert_double_le(found.ms, 1.6 * BYTES / 0.5e6);
    ck_assert_str_eq(found.busiest, "link a out");
}

/* A tensor of `rows` x 1024 floats from `from` nodes, cut over all their ranks,
 * to `to` others, whole on every rank. */
struct replicas {
    const char *strategy;
    bool serialize;
    uint32_t rows, from, to, slots;
};

static void make_replicas(struct planned *lab, const struct replicas *of)
{
    uint32_t slots[512];
    char model[128], scenario[512];
    snprintf(model, sizeof(model),
             "{'tensor': {'name': 'w', 'shape': [%u, 1024], 'dtype': "
             "'float32'}}",
             of->rows);
    snprintf(scenario, sizeof(scenario),
             "{'mode': 'disaggregated', 'strategy': '%s', 'serialize': %s, "
             "'bucket_bytes': 1048576, 'train': {'layout': 'spec', 'mesh': "
             "[%u, %u], 'spec': 'S01R'}, 'infer': {'layout': 'spec', 'mesh': "
             "[%u, %u], 'spec': 'RR'}}",
             of->strategy, of->serialize ? "true" : "false", of->from,
             of->slots, of->to, of->slots);
    for (uint32_t n = 0; n < of->from + of->to; n++) {
        slots[n] = of->slots;
    }
    ck_assert_msg(lab_make(lab, model, scenario, slots, of->from + of->to) ==
                      RF_OK,
                  "%s", lab->err.text);
}

/* The last one goes through all ranks, not all nodes. */
#define LONG_CHAINS 3
static const char *const relayed[] = {"broadcast", "hierarchical", "allgather",
                                      "allgather_global"};

/* Over 16 nodes, beside a simulation of every op on its own. */
LOOP_TEST(test_simulate_fills_chains_like_single_ops, RF_ARRAY_SIZE(relayed))
{
    for (unsigned i = 0; i < 4; i++) {
        const struct replicas of = {.strategy = relayed[_i],
                                    .rows = 8192,
                                    .from = i & 1 ? 4 : 1,
                                    .to = 16,
                                    .slots = i & 2 ? 2 : 1};
        AUTO(planned) lab;
        double exact, found;
        make_replicas(&lab, &of);
        exact = lab_time(&lab, 1e6);
        found = lab_ms(&lab, lab.schedule, 0);
        ck_assert_msg(found >= 0.92 * exact && found <= 1.03 * exact,
                      "%s from %u x %u: %.4f ms instead of %.4f", of.strategy,
                      of.from, of.slots, found, exact);
    }
}

/* Four training stages to four replicas, each of these on a node of its own: all
 * links are busy if each group has a layer of every stage; if stages follow one
 * another, only one link out at a time. */
LOOP_TEST(test_simulate_moves_groups_like_single_ops, 4)
{
    const uint32_t slots[] = {1, 1, 1, 1, 1, 1, 1, 1};
    const char *strategy = _i % 2 == 0 ? "send_recv" : "broadcast";
    double ms[2];
    for (unsigned serial = 0; serial < 2; serial++) {
        AUTO_FREE char *scenario = rf_xasprintf(
            "{'mode': 'disaggregated', 'train': {'pp': 4}, 'infer': {'dp': 4}, "
            "'strategy': '%s', 'group': {'by': 'layer', 'in_flight': %d, "
            "'serial_pp': %s}}",
            strategy, 1 + _i / 2, serial ? "true" : "false");
        AUTO(planned) lab;
        double exact;
        assert_ok(
            lab_make(&lab,
                     "{'megatron': {'num_layers': 32, 'hidden_size': 512, "
                     "'num_attention_heads': 8, 'vocab_size': 512, "
                     "'untie_embeddings_and_output_weights': true}}",
                     scenario, slots, 8),
            lab.err);
        exact = lab_time(&lab, 1e6);
        ms[serial] = lab_ms(&lab, lab.schedule, 0);
        ck_assert_msg(ms[serial] >= 0.95 * exact && ms[serial] <= 1.15 * exact,
                      "%s: %.4f ms instead of %.4f", scenario, ms[serial],
                      exact);
    }
    if (_i % 2 == 0) {
        ck_assert_double_ge(ms[1] / ms[0], 3.5);
        ck_assert_double_le(ms[1] / ms[0], 4.5);
    }
}

/* A chain of two nodes whose chunks are whole tensors: the first node takes in
 * one group while it passes on another, if two may be under way. */
TEST(test_simulate_overlaps_the_groups_in_flight)
{
    const uint32_t slots[] = {1, 1, 1};
    double ms[2];
    for (unsigned i = 0; i < 2; i++) {
        AUTO_FREE char *scenario = rf_xasprintf(
            "{'mode': 'disaggregated', 'train': {'nodes': ['n0']}, 'infer': "
            "{'dp': 2, 'nodes': ['n1', 'n2']}, 'strategy': 'broadcast', "
            "'chunk_bytes': 1000000000, 'group': {'by': 'layer', 'in_flight': "
            "%u}}",
            1 + i);
        AUTO(planned) lab;
        double exact;
        assert_ok(lab_make(&lab,
                           "{'megatron': {'num_layers': 32, 'hidden_size': "
                           "512, 'num_attention_heads': 8, 'vocab_size': 512}}",
                           scenario, slots, 3),
                  lab.err);
        exact = lab_time(&lab, 1e6);
        ms[i] = lab_ms(&lab, lab.schedule, 0);
        ck_assert_msg(ms[i] >= 0.85 * exact && ms[i] <= 1.15 * exact,
                      "%s: %.4f ms instead of %.4f", scenario, ms[i], exact);
    }
    ck_assert_double_ge(ms[0] / ms[1], 1.2);
}

/* Gathering and spreading by turns, beside the same op by op. */
TEST(test_simulate_takes_turns_with_broadcasts)
{
    for (unsigned i = 0; i < 4; i++) {
        const struct replicas of = {.strategy = "gather_broadcast",
                                    .serialize = true,
                                    .rows = 8192,
                                    .from = i & 1 ? 4 : 1,
                                    .to = 4,
                                    .slots = i & 2 ? 2 : 1};
        AUTO(planned) lab;
        double exact, found;
        make_replicas(&lab, &of);
        exact = lab_time(&lab, 1e6);
        rf_schedule_destroy(lab.schedule);
        assert_ok(rf_schedule_build(lab.plan, RF_NONE, &lab.schedule, &lab.err),
                  lab.err);
        ck_assert_ptr_nonnull(lab.schedule->deliveries);
        found = lab_ms(&lab, lab.schedule, 0);
        ck_assert_msg(found >= 0.98 * exact && found <= 1.05 * exact,
                      "from %u x %u: %.4f ms instead of %.4f", of.from,
                      of.slots, found, exact);
    }
}

/* A chain takes what its link carries and a chunk for every node; without one
 * the sender's link carries it all. Up to 2048 ranks. */
LOOP_TEST(test_simulate_fills_the_longest_chains, LONG_CHAINS)
{
    static const uint32_t nodes[] = {15, 63, 255};
    const double whole = 2048 * 4096 / 1e6;
    for (unsigned i = 0; i < RF_ARRAY_SIZE(nodes); i++) {
        const struct replicas of = {.strategy = relayed[_i],
                                    .rows = 2048,
                                    .from = 1,
                                    .to = nodes[i],
                                    .slots = 8};
        AUTO(planned) lab;
        double expected, found;
        make_replicas(&lab, &of);
        expected = lab.spec->strategy == RF_ALLGATHER
                       ? nodes[i] * whole
                       : whole + nodes[i] * 1e-6 *
                                     (double)rf_op_bytes(lab.schedule->ops);
        found = lab_ms(&lab, lab.schedule, 0);
        ck_assert_msg(found >= 0.99 * expected && found <= 1.4 * expected,
                      "%s to %u nodes: %.4f ms instead of %.4f", of.strategy,
                      of.to, found, expected);
    }
}

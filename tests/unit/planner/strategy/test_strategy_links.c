/*
 * Times of the cross-mesh resharding suite of Alpa (benchmark/alpa/resharding
 * in its repository; Zhuang et al., MLSys 2023) on simulated links, in units of
 * tensor bytes / link bandwidth. "Serial" is one task at a time per rank, which
 * is what its runtime does; "free" is everything at once.
 */
#include <math.h>
#include <stdio.h>

#include "common/compiler.h"
#include "planner/predict/choose_strategy.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

enum config {
    SEND_RECV,
    ALLGATHER,
    ALLGATHER_GLOBAL,
    HIERARCHICAL,
    BROADCAST_NONE,
    BROADCAST_SIZE,
    BROADCAST_ORDER,
    N_CONFIGS
};

static const char *const config_text[N_CONFIGS] = {
    "'strategy': 'send_recv', 'balance': 'size'",
    "'strategy': 'allgather', 'balance': 'size'",
    "'strategy': 'allgather_global', 'balance': 'size'",
    "'strategy': 'hierarchical', 'balance': 'size'",
    "'strategy': 'broadcast', 'balance': 'none'",
    "'strategy': 'broadcast', 'balance': 'size'",
    "'strategy': 'broadcast', 'balance': 'order'",
};

/* By configuration; 0: not looked at. */
#define TIMES(...)                                                             \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static const struct suite_case {
    const char *name, *shape;
    double bytes;
    uint32_t src_nodes, src_slots;
    const char *src_spec;
    uint32_t dst_nodes, dst_slots;
    const char *dst_spec;
    double bound;
    double free[N_CONFIGS], serial[N_CONFIGS]; /* expected */
} cases[] = {
    {"[1, 1]", "[268435456]", 1073741824., 1, 1, "R", 1, 1, "R", 1,
     TIMES(1, 1, 1, 1, 1, 1, 1), TIMES(1, 1, 1, 1, 1, 1, 1)},
    {"[1, 2]", "[268435456]", 1073741824., 1, 1, "R", 1, 2, "R", 1,
     TIMES(2, 1, 1, 1, 1, 1, 1), TIMES(2, 1, 1, 1, 1, 1, 1)},
    {"[1, 3]", "[268435456]", 1073741824., 1, 1, "R", 1, 3, "R", 1,
     TIMES(3, 1, 1, 1, 1, 1, 1), TIMES(3, 1, 1, 1, 1, 1, 1)},
    {"[1, 4]", "[268435456]", 1073741824., 1, 1, "R", 1, 4, "R", 1,
     TIMES(4, 1, 1, 1, 1, 1, 1), TIMES(4, 1, 1, 1, 1, 1, 1)},
    {"[2, 2]", "[268435456]", 1073741824., 1, 1, "R", 2, 2, "R", 1,
     TIMES(4, 2, 1.25, 1, 1, 1, 1), TIMES(4, 2, 1.25, 1, 1, 1, 1)},
    {"[3, 2]", "[268435456]", 1073741824., 1, 1, "R", 3, 2, "R", 1,
     TIMES(6, 3, 1.1667, 1, 1, 1, 1), TIMES(6, 3, 1.1667, 1, 1, 1, 1)},
    {"[4, 2]", "[268435456]", 1073741824., 1, 1, "R", 4, 2, "R", 1,
     TIMES(8, 4, 1.125, 1, 1, 1, 1), TIMES(8, 4, 1.125, 1, 1, 1, 1)},
    {"1", "[1024, 1024, 512]", 2147483648., 2, 4, "S0RR", 2, 4, "S0RR", .5,
     TIMES(2, .5, .5, .5, .5, .5, .5), TIMES(2, .5, .5, 0, .5, .5, .5)},
    {"2", "[1024, 1024, 512]", 2147483648., 2, 4, "RRR", 2, 4, "S0RR", .5,
     TIMES(2, .5, .5, .5, 1, .5, .5), TIMES(2, .5, 0, 0, 1, .5, .5)},
    {"3", "[1024, 1024, 512]", 2147483648., 2, 4, "RS0R", 2, 4, "S0RR", .5,
     TIMES(2, .5, .5, .5, .5, .5, .5), TIMES(3, .625, 0, 0, .75, .75, .5)},
    {"4", "[1024, 1024, 512]", 2147483648., 2, 4, "RS01R", 2, 4, "S01RR", .5,
     TIMES(.5, .5, .5, .5, .5, .5, .5), TIMES(.75, .75, 0, 0, .75, .75, .5)},
    {"5", "[1024, 1024, 512]", 2147483648., 2, 4, "S1RR", 2, 4, "S0RR", .5,
     TIMES(2, .5, .5, .5, 1, .5, .5), TIMES(2, .5, 0, 0, 1, 1, .5)},
    {"6", "[3072, 1024, 170]", 2139095040., 2, 4, "S0RR", 3, 4, "S0RR", .5,
     TIMES(2, .5, .5, .5, .5, .5, .5), TIMES(0, .5, .5, 0, 1, 1, .5)},
    {"7", "[1024, 1024, 512]", 2147483648., 1, 4, "S1RR", 2, 4, "RRR", 1,
     TIMES(8, 2, 1.375, 1, 1, 1, 1), TIMES(8, 2, 1.375, 0, 1, 1, 1)},
    {"9", "[1024, 1024, 512]", 2147483648., 2, 4, "RS0R", 2, 4, "RRS0", .5,
     TIMES(2, .5, .5, .5, .5, .5, .5), TIMES(3, .625, 0, 0, .75, .75, .5)},
};

static void node_list(uint32_t first, uint32_t end, char *out, size_t size)
{
    size_t used = 0;
    for (uint32_t i = first; i < end; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s\"n%u\"",
                                 i > first ? ", " : "", i);
    }
}

static void make(struct planned *lab, const struct suite_case *of,
                 enum config config, bool serial)
{
    const uint32_t n_nodes = of->src_nodes + of->dst_nodes;
    char model[256], scenario[1024], train[64], infer[64];
    uint32_t slots[5];
    enum rf_status status;
    for (uint32_t i = 0; i < n_nodes; i++) {
        slots[i] = i < of->src_nodes ? of->src_slots : of->dst_slots;
    }
    node_list(0, of->src_nodes, train, sizeof(train));
    node_list(of->src_nodes, n_nodes, infer, sizeof(infer));
    snprintf(model, sizeof(model),
             "{'tensor': {'name': 'w', 'shape': %s, 'dtype': 'int32'}}",
             of->shape);
    snprintf(scenario, sizeof(scenario),
             "{'mode': 'disaggregated', %s, 'serialize': %s, "
             "'train': {'layout': 'spec', 'mesh': [%u, %u], 'spec': '%s', "
             "'nodes': [%s]}, "
             "'infer': {'layout': 'spec', 'mesh': [%u, %u], 'spec': '%s', "
             "'nodes': [%s]}}",
             config_text[config], serial ? "true" : "false", of->src_nodes,
             of->src_slots, of->src_spec, train, of->dst_nodes, of->dst_slots,
             of->dst_spec, infer);
    status = lab_make(lab, model, scenario, slots, n_nodes);
    ck_assert_msg(status == RF_OK, "case %s: %s", of->name, lab->err.text);
}

/* Filling a chain costs up to 2 %; nothing else may be lost. */
static void expect(const struct suite_case *of, enum config config, bool serial,
                   double expected)
{
    AUTO(planned) lab;
    make(&lab, of, config, serial);
    double time = lab_time(&lab, of->bytes);
    ck_assert_msg(time >= expected * 0.999 && time <= expected * 1.02,
                  "case %s, %s, %s: %.4f instead of %.4f", of->name,
                  config_text[config], serial ? "serial" : "free", time,
                  expected);
}

LIMIT(30)

LOOP_TEST(test_strategy_links_times_of_the_resharding_suite,
          RF_ARRAY_SIZE(cases))
{
    const struct suite_case *of = &cases[_i];
    for (unsigned config = 0; config < N_CONFIGS; config++) {
        if (of->free[config] > 0) {
            expect(of, config, false, of->free[config]);
        }
        if (of->serial[config] > 0) {
            expect(of, config, true, of->serial[config]);
        }
    }
}

LOOP_TEST(test_strategy_links_order_reaches_the_bound, RF_ARRAY_SIZE(cases))
{
    const struct suite_case *of = &cases[_i];
    expect(of, BROADCAST_ORDER, true, of->bound);
    expect(of, BROADCAST_ORDER, false, of->bound);
}

/* The physical bound of planner/predict/bounds.h is the same number. */
LOOP_TEST(test_strategy_links_bound_agrees, RF_ARRAY_SIZE(cases))
{
    const struct suite_case *of = &cases[_i];
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    AUTO(planned) lab;
    AUTO(rf_capacities) links;
    struct rf_bound bound;
    make(&lab, of, BROADCAST_ORDER, false);
    lab_links(&links, lab.world->n_nodes, 0, 0, 2);
    ck_assert_int_eq(
        rf_bounds_any(lab.plan, RF_ENCODING_DENSE, &links, names, &bound, NULL),
        RF_OK);
    ck_assert_double_eq_tol(bound.ms, of->bound * of->bytes / 2e6, 1e-6);
}

/* What predictions are made of agrees with links on which every op is a flow of
 * its own. */
LOOP_TEST(test_strategy_links_simulation_agrees, RF_ARRAY_SIZE(cases))
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const struct suite_case *of = &cases[_i];
    for (unsigned i = 0; i < 2 * N_CONFIGS; i++) {
        AUTO(planned) lab;
        AUTO(rf_capacities) links;
        struct rf_simulated found;
        double time;
        make(&lab, of, (enum config)(i / 2), i % 2 == 1);
        time = lab_time(&lab, of->bytes);
        lab_links(&links, lab.world->n_nodes, 0, 0, of->bytes / 1e9);
        ck_assert_int_eq(
            rf_simulate(&(struct rf_simulate_env){.plan = lab.plan,
                                                  .schedule = lab.schedule,
                                                  .links = &links,
                                                  .node_names = names},
                        &found, NULL),
            RF_OK);
        /* Turns of ranks, which stop whole flows, are the less exact part. */
        ck_assert_msg(found.ms / 1e3 >= time * 0.98 &&
                          found.ms / 1e3 <= time * (i % 2 == 1 ? 1.35 : 1.04),
                      "case %s, %s, %s: %.4f instead of %.4f", of->name,
                      config_text[i / 2], i % 2 == 1 ? "serial" : "free",
                      found.ms / 1e3, time);
    }
}

/* Seconds of a case with a strategy, every op a flow of its own. */
static double seconds(const struct suite_case *of, enum rf_strategy strategy)
{
    AUTO(planned) lab;
    make(&lab, of, SEND_RECV, false);
    rf_schedule_destroy(lab.schedule);
    lab.spec->strategy = strategy;
    assert_ok(rf_schedule_build(lab.plan, RF_NONE, &lab.schedule, &lab.err),
              lab.err);
    lab_list_ops(lab.schedule);
    return lab_time(&lab, of->bytes);
}

/* By the same independent simulation of ops, no strategy is more than 5 %
 * faster than the one that auto takes. */
LOOP_TEST(test_strategy_links_auto_takes_the_fastest, RF_ARRAY_SIZE(cases))
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const struct suite_case *of = &cases[_i];
    AUTO(planned) lab;
    AUTO(rf_capacities) links;
    struct rf_choice choice;
    double best = INFINITY;
    make(&lab, of, SEND_RECV, false);
    lab_links(&links, lab.world->n_nodes, 0, 0, of->bytes / 1e9);
    ck_assert(rf_capacities_assume(&links, NULL));
    ck_assert_int_eq(rf_choose_strategy(
                         &(struct rf_choose_env){.plan = lab.plan,
                                                 .links = &links,
                                                 .node_names = names,
                                                 .crosses_nodes = true,
                                                 .max_ops = RF_CHOOSE_MAX_OPS},
                         &choice, NULL),
                     RF_OK);
    for (unsigned s = 0; s < RF_STRATEGIES; s++) {
        best = RF_MIN(best, seconds(of, (enum rf_strategy)s));
    }
    ck_assert_msg(seconds(of, choice.taken) <= best * 1.05,
                  "case %s: %s takes %.4f, the best %.4f", of->name,
                  rf_strategy_name(choice.taken), seconds(of, choice.taken),
                  best);
}

/* Strategy auto on simulated links whose order is known. */
#include "common/compiler.h"
#include "planner/predict/choose_strategy.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define TENSOR                                                                 \
    "{'tensor': {'name': 'w', 'shape': [4096, 1024], 'dtype': 'float32'}}"
/* One sender on n0, two receivers on each of two other nodes. */
#define TO_FOUR_REST                                                           \
    "'mode': 'disaggregated', "                                                \
    "'train': {'layout': 'spec', 'nodes': ['n0'], 'mesh': [1, 1], 'spec': "    \
    "'RR'}, 'infer': {'layout': 'spec', 'nodes': ['n1', 'n2'], 'mesh': [2, "   \
    "2], 'spec': 'RR'}}"
#define TO_FOUR(strategy) "{'strategy': '" strategy "', " TO_FOUR_REST
#define TO_ONE                                                                 \
    "{'mode': 'disaggregated', 'train': {'layout': 'spec', 'nodes': ['n0'], "  \
    "'mesh': [1, 1], 'spec': 'RR'}, 'infer': {'layout': 'spec', 'nodes': "     \
    "['n1', 'n2'], 'mesh': [1, 1], 'spec': 'RR'}}"
#define SHARED                                                                 \
    "{'train': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R', 'nodes': "    \
    "['n0']}, 'infer': {'layout': 'spec', 'mesh': [1, 2], "                    \
    "'spec': 'RR', 'nodes': ['n0']}}"

static const char *const names[] = {"a", "b", "c"};
static const uint32_t slots[] = {2, 2, 2};

static struct rf_choice choose(const char *scenario,
                               const struct rf_capacities *links,
                               uint64_t max_ops, bool crosses)
{
    struct rf_err err = {0};
    struct rf_choice choice;
    AUTO(planned) lab;
    assert_ok(lab_make(&lab, TENSOR, scenario, slots, 3), lab.err);
    assert_ok(
        rf_choose_strategy(&(struct rf_choose_env){.plan = lab.plan,
                                                   .links = links,
                                                   .node_names = names,
                                                   .crosses_nodes = crosses,
                                                   .max_ops = max_ops},
                           &choice, &err),
        err);
    return choice;
}

/* Slow links: only the first of four copies goes over the sender's. */
TEST(test_choose_takes_a_chain_where_links_are_slow)
{
    static const char *const given[] = {TO_FOUR("send_recv"),
                                        TO_FOUR("allgather")};
    AUTO(rf_capacities) links;
    lab_links(&links, 3, 100, 100, 1);
    for (unsigned i = 0; i < RF_ARRAY_SIZE(given); i++) {
        struct rf_choice choice =
            choose(given[i], &links, RF_CHOOSE_MAX_OPS, true);
        const struct rf_strategy_candidate *of = choice.candidates;
        const double whole = 4096 * 1024 * 4 / 1e6;
        ck_assert_int_eq(choice.taken, RF_BROADCAST);
        ck_assert_double_eq_tol(of[RF_SEND_RECV].ms, 4 * whole, whole / 10);
        ck_assert_double_eq_tol(of[RF_ALLGATHER].ms, 2 * whole, whole / 10);
        ck_assert_double_eq_tol(of[RF_BROADCAST].ms, whole, whole / 10);
        ck_assert_str_eq(of[RF_SEND_RECV].busiest, "link a out");
    }
}

TEST(test_choose_prefers_send_recv_where_nothing_is_gained)
{
    AUTO(rf_capacities) links;
    struct rf_choice choice;
    lab_links(&links, 3, 100, 100, 1);
    choice = choose(TO_ONE, &links, RF_CHOOSE_MAX_OPS, true);
    ck_assert_int_eq(choice.taken, RF_SEND_RECV);
}

TEST(test_choose_compares_no_schedule_that_is_too_large)
{
    AUTO(rf_capacities) links;
    struct rf_choice choice;
    lab_links(&links, 3, 100, 100, 1);
    choice = choose(TO_FOUR("send_recv"), &links, 4, true);
    ck_assert_int_eq(choice.taken, RF_SEND_RECV);
    ck_assert_str_eq(choice.candidates[RF_SEND_RECV].why_not, "");
    assert_says(choice.candidates[RF_BROADCAST].why_not, "more than 4");
    choice = choose(TO_FOUR("send_recv"), &links, 1, true);
    ck_assert_int_eq(choice.taken, RF_SEND_RECV);
    ck_assert_str_ne(choice.candidates[RF_SEND_RECV].why_not, "");
}

/* A method inside nodes, and strategies that leave them. */
TEST(test_choose_leaves_out_what_a_method_cannot_do)
{
    AUTO(rf_capacities) links;
    struct rf_choice choice;
    lab_links(&links, 3, 100, 100, 1);
    choice = choose(TO_FOUR("send_recv"), &links, RF_CHOOSE_MAX_OPS, false);
    for (unsigned s = 0; s < RF_STRATEGIES; s++) {
        assert_says(choice.candidates[s].why_not, "between nodes");
    }
    choice = choose(SHARED, &links, RF_CHOOSE_MAX_OPS, false);
    ck_assert_str_eq(choice.candidates[RF_SEND_RECV].why_not, "");
}

TEST(test_choose_assumes_what_has_no_figure)
{
    struct rf_capacities links;
    rf_capacities_init(&links, 3);
    ck_assert(rf_capacities_assume(&links, NULL));
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 10);
    ck_assert_double_eq(links.pair_latency_us[1], 50);
    ck_assert_double_eq(links.copy_gbytes_per_s[2], 100);
    ck_assert(!rf_capacities_assume(&links, NULL));
    rf_capacities_free(&links);

    lab_links(&links, 3, 40, 0, 0);
    ck_assert(rf_capacities_assume(&links, NULL));
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 4);
    ck_assert_double_eq(links.copy_gbytes_per_s[2], 40);
    rf_capacities_free(&links);

    lab_links(&links, 1, 0, 0, 0); /* sockets are as fast as memory */
    links.own_gbytes_per_s[0] = 7;
    ck_assert(!rf_capacities_assume(&links, NULL));
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 7);
    rf_capacities_free(&links);

    rf_capacities_init(&links, 3);
    for (uint32_t n = 0; n < 3; n++) {
        links.nic_gbytes_per_s[n] = 2;
        links.nics[n] = 4;
    }
    ck_assert(rf_capacities_assume(&links, NULL));
    ck_assert_double_eq(links.copy_gbytes_per_s[2], 80);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 0);
    rf_capacities_free(&links);
}

TEST(test_choose_must_come_before_a_schedule)
{
    AUTO(planned) lab;
    ck_assert_int_eq(lab_make(&lab, TENSOR, TO_FOUR("auto"), slots, 3),
                     RF_ERR_CONFIG);
    assert_says(lab.err.text, "no strategy has been chosen");
}

/* Turns make no difference to what is compared. */
TEST(test_choose_compares_all_strategies_by_turns)
{
    AUTO(rf_capacities) links;
    struct rf_choice choice;
    lab_links(&links, 3, 100, 100, 1);
    choice = choose("{'serialize': true, " TO_FOUR_REST, &links,
                    RF_CHOOSE_MAX_OPS, true);
    for (unsigned s = 0; s < RF_STRATEGIES; s++) {
        ck_assert_str_eq(choice.candidates[s].why_not, "");
        ck_assert_double_gt(choice.candidates[s].ms, 0);
    }
}

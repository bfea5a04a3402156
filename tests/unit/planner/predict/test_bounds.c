/* Bounds and predictions with known answers. */
#include <stdio.h>

#include "common/mem.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define TENSOR                                                                 \
    "{'tensor': {'name': 'w', 'shape': [1024, 1000], 'dtype': 'float32'}}"
#define BYTES 4096000.

static const char *const names[] = {"a", "b", "c", "d"};

/* The figures of a test. */
static struct rf_capacities links;

static void forget_links(void)
{
    rf_capacities_free(&links);
}

static struct rf_bound bound_of(const char *scenario, const uint32_t *slots,
                                uint32_t n)
{
    AUTO(planned) lab;
    struct rf_bound bound;
    enum rf_status status = lab_make(&lab, TENSOR, scenario, slots, n);
    assert_ok(status, lab.err);
    ck_assert_int_eq(rf_bounds_any(lab.plan, lab.plan->spec->encoding, &links,
                                   names, &bound, NULL),
                     RF_OK);
    return bound;
}

FIXTURE(NULL, forget_links)

TEST(test_cost_bound_of_a_node_is_its_memory)
{
    const uint32_t slots[] = {4};
    lab_links(&links, 1, 8, 4, 0);
    struct rf_bound bound =
        bound_of("{'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
                 "'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'RS1'}}",
                 slots, 1);
    ck_assert_double_eq_tol(bound.ms, BYTES / 8e6, 1e-9);
    ck_assert_str_eq(bound.resource, "memory of a");
}

/* One rank keeps what it has: its GPU cannot copy as fast as all together,
 * while in host memory other ranks may copy for it. */
LOOP_TEST(test_cost_bound_of_one_rank_is_its_own_gpu, 2)
{
    const uint32_t slots[] = {1};
    lab_links(&links, 1, 8, 4, 0);
    links.devices = _i == 1;
    struct rf_bound bound =
        bound_of("{'train': {'layout': 'spec', 'mesh': [1, 1], 'spec': 'RR'}, "
                 "'infer': {'layout': 'spec', 'mesh': [1, 1], 'spec': 'RR'}}",
                 slots, 1);
    ck_assert_double_eq_tol(bound.ms, BYTES / (_i == 1 ? 4e6 : 8e6), 1e-9);
    ck_assert_str_eq(bound.resource,
                     _i == 1 ? "GPU copying by rank 0 on a" : "memory of a");
}

/* Four ranks want all of what four ranks hold a quarter of: each byte is read
 * once and written four times, two and a half copies. */
TEST(test_cost_bound_of_replicas_reads_once)
{
    const uint32_t slots[] = {4};
    lab_links(&links, 1, 8, 100, 0);
    struct rf_bound bound =
        bound_of("{'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
                 "'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'RR'}}",
                 slots, 1);
    ck_assert_double_eq_tol(bound.ms, 2.5 * BYTES / 8e6, 1e-9);
    ck_assert_str_eq(bound.resource, "memory of a");
}

#define ACROSS(train_mesh, train_spec, train_nodes, infer_mesh, infer_spec,    \
               infer_nodes)                                                    \
    "{'mode': 'disaggregated', 'train': {'layout': 'spec', "                   \
    "'mesh': " train_mesh ", 'spec': '" train_spec "', 'nodes': [" train_nodes \
    "]}, 'infer': {'layout': 'spec', 'mesh': " infer_mesh                      \
    ", 'spec': '" infer_spec "', 'nodes': [" infer_nodes "]}}"

TEST(test_cost_bound_counts_unique_bytes_into_a_node_once)
{
    const uint32_t slots[] = {2, 2, 4};
    lab_links(&links, 3, 100, 100, 0.5);
    struct rf_bound bound = bound_of(
        ACROSS("[2, 2]", "S0R", "\"n0\", \"n1\"", "[1, 4]", "RR", "\"n2\""),
        slots, 3);
    ck_assert_double_eq_tol(bound.ms, BYTES / 0.5e6, 1e-9);
    ck_assert_str_eq(bound.resource, "link c in");
}

TEST(test_cost_bound_of_an_only_holder_is_its_link_out)
{
    const uint32_t slots[] = {2, 2, 2};
    lab_links(&links, 3, 100, 100, 0.5);
    /* node a holds everything, b and c each need half */
    struct rf_bound bound = bound_of(
        ACROSS("[1, 2]", "S1R", "\"n0\"", "[2, 2]", "S0R", "\"n1\", \"n2\""),
        slots, 3);
    ck_assert_double_eq_tol(bound.ms, BYTES / 0.5e6, 1e-9);
    ck_assert_str_eq(bound.resource, "link a out");
}

/* Two holders of everything may share the sending, whatever the plan chose. */
TEST(test_cost_bound_shares_sending_among_replicas)
{
    const uint32_t slots[] = {1, 1, 2, 2};
    lab_links(&links, 4, 100, 100, 0.5);
    struct rf_bound bound = bound_of(ACROSS("[2, 1]", "RR", "\"n0\", \"n1\"",
                                            "[2, 2]", "S0R", "\"n2\", \"n3\""),
                                     slots, 4);
    ck_assert_double_eq_tol(bound.ms, BYTES / 2 / 0.5e6, 1e-9);
}

/* Nodes a and b both hold everything: neither link binds, both together do. */
TEST(test_cost_bound_looks_at_sets_of_nodes)
{
    const uint32_t slots[] = {1, 1, 1, 1};
    lab_links(&links, 4, 100, 100, 0.5);
    links.pair_gbytes_per_s[3 * 4 + 2] = 100; /* c can take more */
    struct rf_bound bound = bound_of(
        ACROSS("[2, 1]", "RR", "\"n0\", \"n1\"", "[1, 1]", "RR", "\"n2\""),
        slots, 4);
    ck_assert_double_eq_tol(bound.ms, BYTES / 1e6, 1e-9);
    ck_assert_str_eq(bound.resource, "links of a and 1 more out");
}

/* Three nodes hold a third each, and a's link is the slowest. */
TEST(test_cost_bound_finds_the_slowest_holder)
{
    const uint32_t slots[] = {1, 1, 1, 1};
    lab_links(&links, 4, 100, 100, 0);
    links.pair_gbytes_per_s[0 * 4 + 3] = 0.1;
    links.pair_gbytes_per_s[1 * 4 + 3] = 0.3;
    links.pair_gbytes_per_s[2 * 4 + 3] = 100;
    struct rf_bound bound =
        bound_of(ACROSS("[3, 1]", "S0R", "\"n0\", \"n1\", \"n2\"", "[1, 1]",
                        "RR", "\"n3\""),
                 slots, 4);
    ck_assert_str_eq(bound.resource, "link a out");
    ck_assert_double_eq_tol(bound.ms, 342 * 4000 / 0.1e6, 1e-9);
}

TEST(test_cost_bound_ignores_what_was_not_measured)
{
    const uint32_t slots[] = {1, 1};
    lab_links(&links, 2, 0, 0, 0);
    struct rf_bound bound = bound_of(
        ACROSS("[1, 1]", "RR", "\"n0\"", "[1, 1]", "RR", "\"n1\""), slots, 2);
    ck_assert_double_eq(bound.ms, 0);
    ck_assert_str_eq(bound.resource, "nothing");
}

TEST(test_cost_bound_refuses_figures_of_another_cluster)
{
    const uint32_t slots[] = {1, 1};
    struct rf_bound bound;
    AUTO(planned) lab;
    lab_links(&links, 3, 1, 1, 1);
    ck_assert_int_eq(
        lab_make(&lab, TENSOR,
                 ACROSS("[1, 1]", "RR", "\"n0\"", "[1, 1]", "RR", "\"n1\""),
                 slots, 2),
        RF_OK);
    ck_assert_int_eq(
        rf_bounds_any(lab.plan, RF_ENCODING_DENSE, &links, names, &bound, NULL),
        RF_ERR_INTERNAL);
}

TEST(test_cost_bound_of_many_holder_sets)
{
    uint32_t slots[12];
    struct rf_bound bound;
    AUTO(planned) lab;
    static const char *const many[] = {"0", "1", "2", "3", "4",  "5",
                                       "6", "7", "8", "9", "10", "11"};
    for (unsigned i = 0; i < 12; i++) {
        slots[i] = 1;
    }
    lab_links(&links, 12, 100, 100, 2);
    ck_assert_int_eq(
        lab_make(
            &lab, TENSOR,
            "{'train': {'layout': 'spec', 'mesh': [12, 1], 'spec': 'S0R'}, "
            "'infer': {'layout': 'spec', 'mesh': [12, 1], 'spec': 'RR'}}",
            slots, 12),
        RF_OK);
    ck_assert_int_eq(
        rf_bounds_any(lab.plan, RF_ENCODING_DENSE, &links, many, &bound, NULL),
        RF_OK);
    /* the last chunk is the smallest: 1024 rows in chunks of 86 */
    ck_assert_double_eq_tol(bound.ms, (1024 - 78) * 4000 / 2e6, 1e-9);
}

/* The coordinator works the bound out between two steps of a run: it must not
 * take longer than a lease. The case's time limit is the check. */
TEST(test_cost_bound_of_a_large_cluster_takes_little_time)
{
    enum { SENDERS = 512, NODES };
    uint32_t slots[NODES];
    const char *many[NODES];
    struct rf_bound bound;
    AUTO(planned) lab;
    for (unsigned i = 0; i < NODES; i++) {
        slots[i] = 1;
        many[i] = i == SENDERS - 1 ? "slowest" : "node";
    }
    lab_links(&links, NODES, 100, 100, 2);
    /* each link is slower than the one before: every node is a part by itself
     * */
    for (unsigned i = 0; i < SENDERS; i++) {
        for (unsigned k = 0; k < NODES; k++) {
            links.pair_gbytes_per_s[i * NODES + k] = 2. / (1 + 2 * i);
        }
    }
    ck_assert_int_eq(
        lab_make(&lab, TENSOR,
                 "{'mode': 'disaggregated', 'train': {'layout': 'spec', "
                 "'mesh': [512, 1], 'spec': 'S0R'}, 'infer': {'layout': "
                 "'spec', 'mesh': [1, 1], 'spec': 'RR'}}",
                 slots, NODES),
        RF_OK);
    ck_assert_int_eq(
        rf_bounds_any(lab.plan, RF_ENCODING_DENSE, &links, many, &bound, NULL),
        RF_OK);
    ck_assert_double_eq_tol(bound.ms, BYTES / 512 * (1 + 2 * 511) / 2e6, 1e-9);
    ck_assert_str_eq(bound.resource, "link slowest out");
}

/* The bound of the strategy's own bytes, and of any strategy's. */
static void both_bounds(const char *scenario, const uint32_t *slots, uint32_t n,
                        struct rf_bound *own, struct rf_bound *any)
{
    AUTO(planned) lab;
    enum rf_status status = lab_make(&lab, TENSOR, scenario, slots, n);
    assert_ok(status, lab.err);
    ck_assert_int_eq(
        rf_bounds_schedule(lab.plan, lab.schedule, &links, names, own, NULL),
        RF_OK);
    ck_assert_int_eq(
        rf_bounds_any(lab.plan, RF_ENCODING_DENSE, &links, names, any, NULL),
        RF_OK);
}

#define TWO_REPLICAS                                                           \
    "{'mode': 'disaggregated', 'train': {'layout': 'spec', 'mesh': [1, 1], "   \
    "'spec': 'RR', 'nodes': ['n0']}, 'infer': {'layout': 'spec', 'mesh': "     \
    "[1, 2], 'spec': 'RR', 'nodes': ['n1']}, 'strategy': '%s'}"

/* Two replicas over one link: send_recv has to send twice what any strategy
 * has to. */
LOOP_TEST(test_cost_bound_of_a_strategy_counts_what_it_sends, 2)
{
    static const char *const strategies[] = {"send_recv", "broadcast"};
    const uint32_t slots[] = {1, 2};
    struct rf_bound own, any;
    char scenario[400];
    snprintf(scenario, sizeof(scenario), TWO_REPLICAS, strategies[_i]);
    lab_links(&links, 2, 100, 100, 0.5);
    both_bounds(scenario, slots, 2, &own, &any);
    ck_assert_double_eq_tol(any.ms, BYTES / 0.5e6, 1e-9);
    ck_assert_double_eq_tol(own.ms, (_i == 0 ? 2 : 1) * any.ms, 1e-9);
    ck_assert_str_eq(own.resource, _i == 0 ? "link a out" : any.resource);
}

/* gather_broadcast copies what it gathers once more: that is written, too. */
TEST(test_cost_bound_of_a_strategy_counts_what_it_writes)
{
    const uint32_t slots[] = {4};
    struct rf_bound own, any;
    lab_links(&links, 1, 8, 100, 0);
    both_bounds("{'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'RR'}}",
                slots, 1, &own, &any);
    ck_assert_double_eq_tol(own.ms, any.ms, 1e-9);
    rf_capacities_free(&links);
    lab_links(&links, 1, 8, 100, 0);
    both_bounds("{'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'RS1'}, "
                "'strategy': 'gather_broadcast'}",
                slots, 1, &own, &any);
    ck_assert_double_gt(own.ms, 1.2 * any.ms);
    ck_assert_str_eq(own.resource, "memory of a");
}

/* What a node sends to all others at once may be more than one pair reaches. */
TEST(test_cost_bound_takes_the_best_that_a_link_has_done)
{
    const uint32_t slots[] = {1, 2};
    struct rf_bound own, any;
    char scenario[400];
    snprintf(scenario, sizeof(scenario), TWO_REPLICAS, "send_recv");
    lab_links(&links, 2, 100, 100, 0.5);
    links.out_gbytes_per_s[0] = 2;
    links.in_gbytes_per_s[1] = 1;
    both_bounds(scenario, slots, 2, &own, &any);
    ck_assert_double_eq_tol(any.ms, BYTES / 1e6, 1e-9);
    ck_assert_str_eq(any.resource, "link b in");
    ck_assert_double_eq_tol(own.ms, 2 * BYTES / 1e6, 1e-9);
}

/* Each GPU gets three quarters of its part from the others. */
TEST(test_cost_bound_of_gpus_is_what_comes_into_them)
{
    const uint32_t slots[] = {4};
    lab_links(&links, 1, 1000, 1000, 0);
    links.devices = true;
    links.peer_gbytes_per_s = rf_xcalloc(4, sizeof(double));
    for (uint32_t r = 0; r < 4; r++) {
        links.peer_gbytes_per_s[r] = r == 2 ? 0.25 : 0.5;
    }
    struct rf_bound bound =
        bound_of("{'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
                 "'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'RS1'}}",
                 slots, 1);
    ck_assert_double_eq_tol(bound.ms, BYTES / 4 * 3 / 4 / 0.25e6, 1e-9);
    ck_assert_str_eq(bound.resource, "GPU links into rank 2 on a");
}

/* All comes by a root on one of the nodes, so the other need not read what it
 * holds, though any other strategy would. */
TEST(test_cost_bound_of_a_root_reads_nothing_at_others)
{
    const uint32_t slots[] = {1, 1};
    struct rf_bound own, any;
    lab_links(&links, 2, 8, 100, 1e6);
    both_bounds("{'train': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'RR'}, "
                "'strategy': 'gather_broadcast'}",
                slots, 2, &own, &any);
    ck_assert_double_eq_tol(any.ms, BYTES / 2 / 8e6, 1e-9);
    /* the root's half into its stage, and everything out of it */
    ck_assert_double_eq_tol(own.ms, 1.5 * BYTES / 2 / 8e6, 1e-9);
}

/* What stays in place is neither read nor written: half of what the two ranks
 * need, with copies of all by both bounds. */
TEST(test_cost_bound_leaves_out_what_stays_in_place)
{
    const uint32_t slots[] = {2};
    struct rf_bound own, any;
    lab_links(&links, 1, 8, 100, 0);
    links.left_bytes = rf_xcalloc(2, sizeof(*links.left_bytes));
    links.left_bytes[0] = (uint64_t)BYTES / 2;
    both_bounds("{'train': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}}",
                slots, 1, &own, &any);
    ck_assert_double_eq_tol(any.ms, BYTES / 2 / 8e6, 1e-9);
    ck_assert_double_eq_tol(own.ms, any.ms, 1e-9);
    links.left_bytes[1] = (uint64_t)BYTES / 2;
    both_bounds("{'train': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}}",
                slots, 1, &own, &any);
    ck_assert_double_eq_tol(any.ms, 0, 1e-9);
    ck_assert_double_eq_tol(own.ms, 0, 1e-9);
}

/* Columns of one node, of which a share changed, become rows. */
static struct rf_bound bound_inside(const char *density, const char *encoding)
{
    const uint32_t slots[] = {4};
    AUTO_FREE char *scenario = rf_xasprintf(
        "{'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
        "'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'RS1'}, "
        "'update': {'density': %s}, 'encoding': '%s'}",
        density, encoding);
    return bound_of(scenario, slots, 1);
}

/* However few of them changed. */
TEST(test_cost_bound_of_changes_inside_a_node_is_to_find_them)
{
    struct rf_bound bound;
    lab_links(&links, 1, 1, 1, 0);
    ck_assert(bound_inside("0.001", "auto+raw").ms == 0);
    links.scan_gbytes_per_s[0] = 8;
    bound = bound_inside("0.001", "auto+raw");
    ck_assert_double_eq_tol(bound.ms, BYTES / 8e6, 1e-9);
    ck_assert_str_eq(bound.resource, "scan of a");
    ck_assert(bound_inside("1", "auto+raw").ms == 0); /* nothing to find */
    ck_assert(bound_inside("0.001", "auto").ms == 0); /* nor does it look */
    links.sends_inside = true; /* but at the rows that go to other ranks */
    bound = bound_inside("0.001", "auto");
    ck_assert_double_eq_tol(bound.ms, 0.75 * BYTES / 8e6, 1e-9);
}

/* Sockets may take longer than the bound, not what ranks copy to themselves. */
TEST(test_cost_bound_of_memory_is_no_slower_for_sockets)
{
    const uint32_t slots[] = {2};
    struct rf_bound own, any;
    lab_links(&links, 1, 0.5, 0, 0);
    links.own_gbytes_per_s[0] = 8;
    both_bounds("{'train': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}}",
                slots, 1, &own, &any);
    ck_assert_double_eq_tol(any.ms, BYTES / 8e6, 1e-9);
    ck_assert_double_eq_tol(own.ms, any.ms, 1e-9);
}

/* A method says of a rank that the bytes stay where they are. */
TEST(test_cost_bound_has_no_scan_where_bytes_stay_in_place)
{
    lab_links(&links, 1, 1, 1, 0);
    links.scan_gbytes_per_s[0] = 8;
    links.left_bytes = rf_xcalloc(4, sizeof(*links.left_bytes));
    links.left_bytes[3] = 1;
    ck_assert(bound_inside("0.001", "auto+raw").ms == 0);
}

/* From `replicas` nodes to another one. */
static struct rf_bound bound_between(unsigned replicas, const char *density)
{
    const uint32_t slots[] = {1, 1, 1};
    AUTO_FREE char *scenario = rf_xasprintf(
        "{'mode': 'disaggregated', 'train': {'layout': 'spec', 'mesh': [%u, "
        "1], 'spec': 'RR'}, 'infer': {'layout': 'spec', 'mesh': [1, 1], "
        "'spec': 'RR'}, 'update': {'density': %s, 'pattern': 'uniform'}, "
        "'encoding': 'auto+raw'}",
        replicas, density);
    return bound_of(scenario, slots, replicas + 1);
}

/* At 0.1 % an element takes 0.032 bits and its position 0.0114; at 30 % 9.6 and
 * 0.8813, 32.75 % of all bytes. */
TEST(test_cost_bound_of_changes_between_nodes_is_the_slower_resource)
{
    struct rf_bound bound;
    lab_links(&links, 2, 1, 1, 0.5);
    links.scan_gbytes_per_s[0] = 8;
    links.scan_gbytes_per_s[1] = 1; /* has nothing to compare */
    bound = bound_between(1, "0.001");
    ck_assert_double_eq_tol(bound.ms, BYTES / 8e6, 1e-9);
    ck_assert_str_eq(bound.resource, "scan of a");
    bound = bound_between(1, "0.3");
    ck_assert_double_eq_tol(bound.ms, 0.327541 * BYTES / 0.5e6, 1e-4);
    ck_assert_str_eq(bound.resource, "link b in");
}

/* Either of two replicas may be compared, or a part of each. */
TEST(test_cost_bound_divides_the_scan_among_replicas)
{
    struct rf_bound bound;
    lab_links(&links, 3, 1, 1, 100);
    links.scan_gbytes_per_s[0] = 8;
    links.scan_gbytes_per_s[1] = 4;
    bound = bound_between(2, "0.001");
    ck_assert_double_eq_tol(bound.ms, BYTES / 12e6, 1e-6);
    ck_assert_str_eq(bound.resource, "scans of a and 1 more");
}

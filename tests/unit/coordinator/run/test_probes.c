/* Which links are probed, with how many bytes, and what becomes of it. */
#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/run/probes.h"
#include "tests/lib/configured.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_run_probes *probes;
static struct rf_msg step;

static void create(const char *more)
{
    lab = attempt_lab_create(more);
    probes = rf_run_probes_create(2);
    rf_run_probes_plan(probes, lab.scenario);
    rf_run_probes_begin(probes, &lab.attempt->before, RF_PROBE_UNKNOWN_LINKS);
    rf_msg_init(&step, RF_MSG_STEP);
}

static void setup(void)
{
    create("");
}

static void teardown(void)
{
    rf_msg_free(&step);
    rf_run_probes_destroy(probes);
    attempt_lab_free(&lab);
}

static const struct rf_msg_step *ask(void)
{
    rf_msg_free(&step);
    rf_run_probes_ask(probes, &step.step);
    return &step.step;
}

static enum rf_status say(uint32_t rank, struct rf_msg_probed figures,
                          struct rf_err *err)
{
    const struct rf_msg_answer answer = {.rank = rank, .probed = &figures};
    return rf_run_probes_take(probes, &answer, err);
}

static enum rf_verdict answered(void)
{
    AUTO(rf_fault) fault = {.text = NULL};
    return rf_run_probes_answered(probes, &fault);
}

/* All ranks answer with a rate. */
static enum rf_verdict answer_ranks(uint32_t n, double gbytes_per_s)
{
    const struct rf_msg_probed figures = {.gbytes_per_s = gbytes_per_s,
                                          .single_gbytes_per_s =
                                              2 * gbytes_per_s,
                                          .latency_us = 20};
    for (uint32_t r = 0; r < n; r++) {
        ck_assert_int_eq(say(r, figures, NULL), RF_OK);
    }
    return answered();
}

static enum rf_verdict answer_all(double gbytes_per_s)
{
    return answer_ranks(LAB_RANKS, gbytes_per_s);
}

FIXTURE(setup, teardown)

TEST(test_probes_begin_with_copies_on_each_node)
{
    ck_assert_str_eq(ask()->kind, "copy");
    ck_assert_uint_eq(ask()->bytes, 1 << 20);
    ck_assert_uint_eq(ask()->n_links, 0);
    ck_assert_int_eq(answer_all(3), RF_VERDICT_GO_ON);
    ck_assert_double_eq(lab.attempt->before.copy_gbytes_per_s[0], 6);
    ck_assert_double_eq(lab.attempt->before.copy_gbytes_per_s[1], 6);
    ck_assert_double_eq(lab.attempt->before.copy1_gbytes_per_s[1], 6);
    ck_assert_str_eq(ask()->kind, "link");
}

/* Goes through all links; returns in how many steps, and what most of them
 * moved and how many were measured at once. */
struct seen {
    unsigned steps;
    uint64_t most_bytes;
    size_t most_links;
};

static void see_step(uint32_t n_ranks, struct seen *seen)
{
    AUTO_FREE bool *busy = rf_xcalloc(n_ranks, sizeof(*busy));
    const struct rf_msg_step *asked = ask();
    ck_assert_str_eq(asked->kind, "link");
    ck_assert_uint_ge(asked->n_links, 1);
    for (size_t i = 0; i < asked->n_links; i++) {
        const struct rf_msg_link *link = &asked->links[i];
        ck_assert(!busy[link->from] && !busy[link->to]);
        busy[link->from] = busy[link->to] = true;
        seen->most_bytes = RF_MAX(seen->most_bytes, link->bytes);
    }
    seen->most_links = RF_MAX(seen->most_links, asked->n_links);
    seen->steps++;
}

static struct seen measure_links(uint32_t n_ranks, double gbytes_per_s)
{
    struct seen seen = {0};
    enum rf_verdict verdict = answer_ranks(n_ranks, 3);
    while (verdict == RF_VERDICT_GO_ON) {
        see_step(n_ranks, &seen);
        verdict = answer_ranks(n_ranks, gbytes_per_s);
        ck_assert_uint_le(seen.steps, 1000);
    }
    ck_assert_int_eq(verdict, RF_VERDICT_NEXT);
    return seen;
}

TEST(test_probes_are_short_where_little_is_moved)
{
    const struct seen seen = measure_links(LAB_RANKS, 1);
    ck_assert_uint_ge(seen.steps, 1);
    ck_assert_uint_eq(seen.most_bytes, 1 << 20);
    ck_assert_double_eq(RF_MAX(lab.attempt->before.pair_gbytes_per_s[1],
                               lab.attempt->before.pair_gbytes_per_s[2]),
                        1);
}

/* Many nodes of one slot each. */
struct large {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario *scenario;
    struct rf_capacities links;
    uint32_t n;
};

/* "'n2', 'n3'", or those nodes with what a configuration says of each. */
static char *node_list(uint32_t first, uint32_t n, bool described)
{
    char *text = rf_xstrdup("");
    for (uint32_t i = first; i < first + n; i++) {
        char *more = rf_xasprintf("%s%s%s'n%u'%s", text, i > first ? ", " : "",
                                  described ? "{'host': " : "", i,
                                  described ? ", 'slots': 1}" : "");
        free(text);
        text = more;
    }
    return text;
}

static struct large large_create(uint32_t n_train, uint32_t n_infer,
                                 const char *hidden_size, const char *more)
{
    struct large large = {.n = n_train + n_infer};
    struct rf_err err = {0};
    AUTO_FREE char *nodes = node_list(0, large.n, true);
    AUTO_FREE char *train = node_list(0, n_train, false);
    AUTO_FREE char *infer = node_list(n_train, n_infer, false);
    AUTO_FREE char *text = rf_xasprintf(
        "{'launch': {'method': 'local'}, 'nodes': [%s], 'model': {'megatron': "
        "{'num_layers': 1, 'hidden_size': %s, 'num_attention_heads': 64, "
        "'vocab_size': 4096}}, 'scenarios': [{'name': 's', 'mode': "
        "'disaggregated', 'train': {'nodes': [%s], 'tp': %u}, 'infer': "
        "{'nodes': [%s], 'tp': %u}%s}]}",
        nodes, hidden_size, train, n_train, infer, n_infer, more);
    configured(text, &large.config, &large.model);
    assert_ok(
        rf_scenario_build(large.config, large.model, 0, &large.scenario, &err),
        err);
    rf_capacities_init(&large.links, large.n);
    return large;
}

static void large_free(struct large *large)
{
    rf_capacities_free(&large->links);
    rf_scenario_destroy(large->scenario);
    rf_model_destroy(large->model);
    rf_config_destroy(large->config);
}
AUTO_STRUCT(large, large_free)

static struct seen measure_large(struct large *large, double gbytes_per_s)
{
    rf_run_probes_plan(probes, large->scenario);
    rf_run_probes_begin(probes, &large->links, RF_PROBE_UNKNOWN_LINKS);
    return measure_links(large->n, gbytes_per_s);
}

/* For each large cluster its own, beside those of the fixture. */
static void use_probes(uint32_t n_nodes)
{
    rf_run_probes_destroy(probes);
    probes = rf_run_probes_create(n_nodes);
}

TEST(test_probes_measure_disjoint_links_at_once)
{
    AUTO(large) large = large_create(16, 16, "512", "");
    struct seen seen;
    use_probes(32);
    seen = measure_large(&large, 1);
    ck_assert_uint_le(seen.steps, 2);
    ck_assert_uint_ge(seen.most_links, 12);
    for (uint32_t i = 0; i < 32; i++) {
        ck_assert_double_eq(rf_capacities_capacity(&large.links, i, i < 16), 1);
    }
}

/* All links of one receiver: as many rounds, but only to a limit. */
TEST(test_probes_have_rounds_that_grow_with_the_logarithm)
{
    AUTO(large) large = large_create(64, 1, "512", "");
    struct seen seen;
    use_probes(65);
    seen = measure_large(&large, 1);
    ck_assert_uint_ge(seen.steps, 8);
    ck_assert_uint_le(seen.steps, 44); /* two in 8 + 2⌈log2 65⌉ rounds */
    ck_assert_uint_eq(seen.most_links, 1);
    ck_assert_double_eq(rf_capacities_capacity(&large.links, 64, false), 1);
}

/* Roughly with 1 MiB first; 4096² elements are moved. */
TEST(test_probes_are_long_where_much_is_moved)
{
    static const struct {
        double gbytes_per_s;
        uint64_t bytes;
    } rates[] = {{0.001, 1 << 20}, {0.05, 8 << 20}, {1, 64 << 20}};
    AUTO(large) large = large_create(1, 1, "4096", "");
    for (size_t i = 0; i < RF_ARRAY_SIZE(rates); i++) {
        use_probes(2);
        ck_assert_uint_eq(
            measure_large(&large, rates[i].gbytes_per_s).most_bytes,
            rates[i].bytes);
    }
}

/* A later scenario measures only what would be too short for it. */
TEST(test_probes_keep_links_over_the_scenarios_of_a_run)
{
    AUTO(large) tiny = large_create(2, 2, "64", "");
    AUTO(large) large = large_create(2, 2, "4096", "");
    use_probes(4);
    ck_assert_uint_ge(measure_large(&tiny, 0.5).steps, 1);
    rf_capacities_free(&tiny.links);
    rf_capacities_init(&tiny.links, 4);
    ck_assert_uint_eq(measure_large(&tiny, 2).steps, 0);
    ck_assert_double_eq(rf_capacities_capacity(&tiny.links, 0, true), 0.5);
    ck_assert_uint_ge(measure_large(&large, 1).steps, 1);
    ck_assert_double_eq(rf_capacities_capacity(&large.links, 0, true), 1);
    ck_assert_uint_eq(measure_large(&large, 2).steps, 0);
    /* unless asked to */
    rf_run_probes_begin(probes, &large.links, RF_PROBE_ALL_LINKS);
    ck_assert_uint_ge(measure_links(4, 3).steps, 1);
    ck_assert_double_eq(rf_capacities_capacity(&large.links, 0, true), 3);
    /* and none as if it had measured them again */
    rf_capacities_free(&large.links);
    rf_capacities_init(&large.links, 4);
    rf_run_probes_begin(probes, &large.links, RF_PROBE_NO_LINKS);
    ck_assert_uint_eq(measure_links(4, 3).steps, 0);
    ck_assert_double_eq(rf_capacities_capacity(&large.links, 0, true), 0);
}

TEST(test_probes_leave_out_links_that_the_method_does_not_use)
{
    AUTO(large) large = large_create(
        2, 2, "64", ", 'method': 'disk', 'disk': {'folder': '/nowhere'}");
    use_probes(4);
    ck_assert_uint_eq(measure_large(&large, 1).steps, 0);
}

TEST(test_probes_fail_on_a_link_without_a_figure)
{
    AUTO(rf_fault) fault;
    (void)answer_all(3);
    ck_assert_int_eq(rf_run_probes_answered(probes, &fault), RF_VERDICT_ABORT);
    ck_assert_uint_eq(fault.rank, ask()->links[0].to);
    assert_says(fault.text, "gave no figure");
}

/* Only with an encoding; a node's is the sum of its ranks'. */
TEST(test_probes_have_scans_where_changes_travel)
{
    struct rf_msg_probed figures = {.gbytes_per_s = 3,
                                    .single_gbytes_per_s = 3,
                                    .scan_gbytes_per_s = RF_ABSENT_REAL};
    struct rf_err err = {0};
    ck_assert_int_eq(say(0, figures, NULL), RF_OK);
    ck_assert(lab.attempt->before.scan_gbytes_per_s[0] == 0);
    teardown();
    create(", \"update\": {\"density\": 0.1}, \"encoding\": \"auto\"");
    assert_fails(say(0, figures, &err), RF_ERR_PROTOCOL, err,
                 "scan_gbytes_per_s");
    figures.scan_gbytes_per_s = 2.5;
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        ck_assert_int_eq(say(r, figures, NULL), RF_OK);
    }
    ck_assert(lab.attempt->before.scan_gbytes_per_s[1] == 5);
}

/* Ranks that convert nothing say so. */
TEST(test_probes_have_conversions_where_ranks_convert)
{
    struct rf_msg_probed figures = {.gbytes_per_s = 3,
                                    .single_gbytes_per_s = 3,
                                    .convert_gbytes_per_s = RF_ABSENT_REAL};
    struct rf_err err = {0};
    ck_assert_int_eq(say(0, figures, NULL), RF_OK);
    ck_assert(lab.attempt->before.convert_gbytes_per_s[0] == 0);
    teardown();
    create(", \"quantize\": \"fp8_tensor\"");
    assert_fails(say(0, figures, &err), RF_ERR_PROTOCOL, err,
                 "convert_gbytes_per_s");
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        figures.convert_gbytes_per_s = r % 2 == 0 ? 2.5 : 0;
        ck_assert_int_eq(say(r, figures, NULL), RF_OK);
    }
    ck_assert(lab.attempt->before.convert_gbytes_per_s[1] == 2.5);
}

TEST(test_probes_need_every_figure)
{
    static const struct rf_msg_probed none = {RF_ABSENT_REAL, RF_ABSENT_REAL,
                                              RF_ABSENT_REAL, RF_ABSENT_REAL,
                                              RF_ABSENT_REAL};
    struct rf_msg_probed figures = none;
    const struct rf_msg_answer nothing = {.rank = 0};
    struct rf_err err = {0};
    assert_fails(rf_run_probes_take(probes, &nothing, &err), RF_ERR_PROTOCOL,
                 err, "probed");
    assert_fails(say(0, figures, &err), RF_ERR_PROTOCOL, err, "gbytes_per_s");
    figures.gbytes_per_s = 1;
    assert_fails(say(0, figures, &err), RF_ERR_PROTOCOL, err,
                 "single_gbytes_per_s");
    (void)answer_all(3);
    assert_fails(say(ask()->links[0].to, figures, &err), RF_ERR_PROTOCOL, err,
                 "latency_us");
    assert_ok(say(ask()->links[0].from, none, &err), err);
}

/* Balance time on simulated links: what it gains where it can, and that it
 * never loses against size. */
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"
#include "planner/predict/choose_balance.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/plan_proof.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define TENSOR                                                                 \
    "{'tensor': {'name': 'w', 'shape': [4096, 1024], 'dtype': 'float32'}}"
#define BYTES (4096 * 1024 * 4.)
/* Each of a and b has all of it; c and d need all of it, one part a rank. */
#define FROM_TWO(more)                                                         \
    "{'mode': 'disaggregated', " more                                          \
    "'train': {'layout': 'spec', 'nodes': ['n0', 'n1'], 'mesh': [2, 4], "      \
    "'spec': 'S1R'}, 'infer': {'layout': 'spec', 'nodes': ['n2', 'n3'], "      \
    "'mesh': [1, 8], 'spec': 'S1R'}}"

static const char *const names[] = {"a", "b", "c", "d"};

struct case_of {
    struct planned lab; /* by size */
    struct rf_capacities links;
    struct rf_choose_env env;
    struct rf_link_weight weights[4];
    bool weighed;
    struct rf_balance_choice choice;
    struct rf_spec spec; /* of `by_time` */
    struct rf_plan *by_time;
};

/* Nothing is known of links until a test says so. */
static void open_case(struct case_of *c, const char *model,
                      const char *scenario, const uint32_t *slots)
{
    memset(c, 0, sizeof(*c));
    ck_assert_msg(lab_make(&c->lab, model, scenario, slots, 4) == RF_OK,
                  "%s: %s", scenario, c->lab.err.text);
    rf_capacities_init(&c->links, 4);
}

static void choose(struct case_of *c)
{
    struct rf_err err = {0};
    c->weighed = rf_capacities_weigh(&c->links, c->weights);
    c->env = (struct rf_choose_env){.plan = c->lab.plan,
                                    .links = &c->links,
                                    .node_names = names,
                                    .crosses_nodes = true,
                                    .max_ops = RF_CHOOSE_MAX_OPS};
    (void)rf_capacities_assume(&c->links, NULL);
    assert_ok(rf_choose_balance(&c->env, c->weighed ? c->weights : NULL,
                                &c->choice, &c->by_time, &err),
              err);
    ck_assert_int_eq(c->by_time != NULL, c->choice.taken == RF_BALANCE_TIME);
    if (c->by_time != NULL) {
        c->spec = *c->lab.spec;
        c->spec.balance = RF_BALANCE_TIME;
        c->spec.balance_links = c->weights;
        c->spec.n_balance_links = 4;
        c->by_time->spec = &c->spec;
    }
}

static void close_case(struct case_of *c)
{
    rf_plan_destroy(c->by_time);
    rf_capacities_free(&c->links);
    planned_free(&c->lab);
}

static void set_nics(struct case_of *c, const double *rates,
                     const uint32_t *nics)
{
    for (uint32_t n = 0; n < 4; n++) {
        c->links.nic_gbytes_per_s[n] = rates[n];
        c->links.nics[n] = nics[n];
    }
}

/* What the chosen plan takes, without any help of the module under test. */
static double time_of(const struct case_of *c, const struct rf_plan *plan)
{
    AUTO(rf_schedule) *schedule = NULL;
    struct rf_simulated found;
    struct rf_err err = {0};
    assert_ok(plan_prove(plan, &err), err);
    assert_ok(rf_schedule_build(plan, RF_NONE, &schedule, &err), err);
    assert_ok(rf_schedule_prove(plan, schedule, &err), err);
    assert_ok(rf_simulate(&(struct rf_simulate_env){.plan = plan,
                                                    .schedule = schedule,
                                                    .links = &c->links,
                                                    .node_names = names},
                          &found, &err),
              err);
    return found.ms;
}

static const uint32_t fours[] = {4, 4, 4, 4};

LIMIT(60)

/* One NIC and three: of the bytes, a quarter and three quarters. */
TEST(test_choose_balance_divides_by_nics)
{
    static const double rates[] = {1, 1, 100, 100};
    static const uint32_t nics[] = {1, 3, 1, 1};
    struct case_of c;
    open_case(&c, TENSOR, FROM_TWO(""), fours);
    set_nics(&c, rates, nics);
    choose(&c);
    ck_assert_int_eq(c.choice.taken, RF_BALANCE_TIME);
    ck_assert_uint_eq(c.weights[0].weight, c.weights[1].weight);
    ck_assert_uint_eq(c.weights[1].nics, 3);
    ck_assert_double_eq_tol((double)c.by_time->totals.max_node_send_bytes,
                            0.75 * BYTES, 0.01 * BYTES);
    ck_assert_double_eq_tol(c.choice.size.ms, BYTES / 2e6, BYTES / 2e7);
    ck_assert_double_eq_tol(c.choice.time.ms, BYTES / 4e6, BYTES / 4e7);
    ck_assert_double_eq_tol(time_of(&c, c.by_time), c.choice.time.ms, 1e-6);
    close_case(&c);
}

/* A node a tenth as fast as the other, by its NIC or by its links. */
LOOP_TEST(test_choose_balance_spares_a_slow_node, 2)
{
    struct case_of c;
    open_case(&c, TENSOR, FROM_TWO(""), fours);
    for (uint32_t n = 0; n < 4; n++) {
        c.links.nic_gbytes_per_s[n] = _i == 0 ? (n == 1 ? 0.1 : 1) : 0;
        for (uint32_t k = 0; _i == 1 && k < 4; k++) {
            c.links.pair_gbytes_per_s[n * 4 + k] = n == 1 || k == 1 ? 0.1 : 1;
        }
    }
    choose(&c);
    ck_assert_int_eq(c.choice.taken, RF_BALANCE_TIME);
    ck_assert_uint_eq(c.weights[0].weight, 10);
    ck_assert_uint_eq(c.weights[1].weight, 1);
    ck_assert_double_lt(c.choice.time.ms, c.choice.size.ms / 4);
    assert_says(c.choice.why, "by size");
    close_case(&c);
}

TEST(test_choose_balance_keeps_size_where_nothing_is_gained)
{
    static const double rates[] = {1, 1, 1, 1};
    static const uint32_t nics[] = {1, 1, 1, 1};
    struct case_of c;
    open_case(&c, TENSOR, FROM_TWO(""), fours);
    set_nics(&c, rates, nics);
    choose(&c);
    ck_assert(c.choice.compared);
    ck_assert_int_eq(c.choice.taken, RF_BALANCE_SIZE);
    assert_says(c.choice.why, " ms, by time ");
    assert_says(c.choice.why, " ms, no less");
    close_case(&c);
}

TEST(test_choose_balance_needs_figures_and_a_simulation)
{
    static const double rates[] = {1, 2, 1, 1};
    static const uint32_t nics[] = {1, 1, 1, 1};
    struct case_of c;
    open_case(&c, TENSOR, FROM_TWO(""), fours);
    choose(&c);
    ck_assert(!c.weighed);
    ck_assert_int_eq(c.choice.taken, RF_BALANCE_SIZE);
    ck_assert(!c.choice.compared);
    assert_says(c.choice.why, "no figures");
    set_nics(&c, rates, nics);
    c.env.max_ops = 1;
    ck_assert_int_eq(
        rf_choose_balance(&c.env, c.weights, &c.choice, &c.by_time, NULL),
        RF_OK);
    ck_assert_ptr_null(c.by_time);
    ck_assert(!c.choice.compared);
    assert_says(c.choice.why, "more than 1 operations");
    close_case(&c);
}

static uint32_t pick(uint64_t *state, uint32_t limit)
{
    *state += 0x9E3779B97F4A7C15u;
    return (uint32_t)(rf_mix64(*state) >> 32) % limit;
}

/* A layout of one tensor over the slots of two nodes, one of the first `most`,
 * of which four have replicas on most meshes. */
static void random_side(uint64_t *state, uint32_t devices, uint32_t most,
                        const char *nodes, char *out, size_t size)
{
    static const char *const words[] = {"S0R", "S1R",  "RS1",
                                        "RR",  "S01R", "S0S1"};
    uint32_t rows = 1 + pick(state, devices);
    while (devices % rows != 0) {
        rows--;
    }
    snprintf(out, size,
             "{'layout': 'spec', 'mesh': [%u, %u], 'spec': '%s', 'nodes': "
             "[%s]}",
             rows, devices / rows, words[pick(state, most)], nodes);
}

/* One random case; whether time was taken. */
static bool never_worse(uint64_t *state)
{
    char train[256], infer[256], text[1024];
    const char *strategy =
        rf_strategy_name((enum rf_strategy)pick(state, RF_STRATEGIES));
    uint32_t slots[4], nics[4];
    double rates[4];
    struct case_of c;
    for (uint32_t n = 0; n < 4; n++) {
        slots[n] = 1 + pick(state, 4);
        nics[n] = 1 + pick(state, 4);
        rates[n] = 0.25 * (1 + pick(state, 8));
    }
    random_side(state, slots[0] + slots[1], 4, "'n0', 'n1'", train,
                sizeof(train));
    random_side(state, slots[2] + slots[3], 6, "'n2', 'n3'", infer,
                sizeof(infer));
    snprintf(text, sizeof(text),
             "{'mode': 'disaggregated', 'strategy': '%s', 'bucket_bytes': "
             "1048576, 'train': %s, 'infer': %s}",
             strategy, train, infer);
    open_case(&c,
              "{'tensor': {'name': 'w', 'shape': [720, 840], 'dtype': "
              "'float32'}}",
              text, slots);
    set_nics(&c, rates, nics);
    choose(&c);
    ck_assert_msg(c.choice.compared, "%s: %s", text, c.choice.why);
    const bool taken = c.by_time != NULL;
    if (taken) {
        double size = time_of(&c, c.lab.plan), time = time_of(&c, c.by_time);
        ck_assert_msg(time < size, "%s: %g ms by time, %g by size", text, time,
                      size);
    } else {
        ck_assert_msg(c.choice.size.ms <= c.choice.time.ms, "%s", text);
    }
    close_case(&c);
    return taken;
}

TEST(test_choose_balance_is_never_worse_than_size)
{
    uint64_t state = 4242;
    unsigned taken = 0;
    for (unsigned i = 0; i < 150; i++) {
        taken += never_worse(&state);
    }
    ck_assert_uint_ge(taken, 30);
}

LOOP_TEST(test_choose_balance_weighs_in_small_numbers, 5)
{
    static const struct {
        double rates[4];
        uint32_t weights[4];
    } cases[] = {
        {{50, 50, 50, 50}, {1, 1, 1, 1}},
        {{50, 0, 25, 100}, {2, 4, 1, 4}}, /* no figure: as the fastest */
        {{12.5, 12.4, 12.6, 37.5}, {1, 1, 1, 3}},
        {{0.001, 10000, 1, 1}, {1, 1000, 1, 1}},
        {{2, 3, 5, 7}, {2, 3, 5, 7}},
    };
    struct rf_link_weight weights[4];
    AUTO(rf_capacities) links;
    rf_capacities_init(&links, 4);
    ck_assert(!rf_capacities_weigh(&links, weights));
    for (uint32_t n = 0; n < 4; n++) {
        links.nic_gbytes_per_s[n] = cases[_i].rates[n];
    }
    ck_assert(rf_capacities_weigh(&links, weights));
    for (uint32_t n = 0; n < 4; n++) {
        ck_assert_uint_eq(weights[n].weight, cases[_i].weights[n]);
        ck_assert_uint_eq(weights[n].nics, 1);
    }
}

/* Bounds and predicted times of refits with conversions, worked out by hand. */
#include "planner/predict/conversion.h"

#include "common/mem.h"
#include "planner/predict/simulate.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define BYTES 2097152.              /* of 1024 x 1024 bfloat16, */
#define SMALL (BYTES / 2 * 33 / 32) /* and in mxfp8 */
#define LINK 0.5e6                  /* bytes a ms */

static const char *const names[] = {"a", "b", "c"};

static struct rf_capacities links;
static struct planned lab;

/* From `replicas` nodes to another one. */
static void make(const char *quantize, uint32_t replicas)
{
    static const uint32_t slots[] = {1, 1, 1};
    AUTO_FREE char *scenario = rf_xasprintf(
        "{'mode': 'disaggregated', 'train': {'layout': 'spec', 'mesh': [%u, "
        "1], 'spec': 'RR'}, 'infer': {'layout': 'spec', 'mesh': [1, 1], "
        "'spec': 'RR'}, 'quantize': {'format': 'mxfp8', %s}}",
        replicas, quantize);
    assert_ok(lab_make(&lab,
                       "{'tensor': {'name': 'w', 'shape': [1024, 1024], "
                       "'dtype': 'bfloat16'}}",
                       scenario, slots, replicas + 1),
              lab.err);
    lab_links(&links, replicas + 1, 100, 100, 0.5);
}

static void forget(void)
{
    rf_capacities_free(&links);
    planned_free(&lab);
}

static void set_rates(double gbytes_per_s)
{
    for (uint32_t n = 0; n < links.n_nodes; n++) {
        links.convert_gbytes_per_s[n] = gbytes_per_s;
    }
}

static struct rf_bound bound(void)
{
    struct rf_bound out;
    ck_assert_int_eq(
        rf_bounds_any(lab.plan, RF_ENCODING_DENSE, &links, names, &out, NULL),
        RF_OK);
    return out;
}

static struct rf_simulated simulate(void)
{
    const struct rf_simulate_env env = {.plan = lab.plan,
                                        .schedule = lab.schedule,
                                        .links = &links,
                                        .node_names = names};
    struct rf_simulated out;
    ck_assert_int_eq(rf_simulate(&env, &out, NULL), RF_OK);
    return out;
}

FIXTURE(NULL, forget)

/* Weights travel whole to a receiver, in the small format from a sender. */
LOOP_TEST(test_conversion_comes_before_or_after_what_travels, 2)
{
    const double wire_ms = (_i == 0 ? BYTES : SMALL) / LINK;
    make(_i == 0 ? "'at': 'receiver'" : "'at': 'sender'", 1);
    ck_assert_double_eq_tol(bound().ms, wire_ms, 1e-9);
    set_rates(2);
    ck_assert_double_eq_tol(bound().ms, wire_ms + BYTES / 2e6, 1e-9);
    assert_says(bound().resource, " and conversion");
    ck_assert_double_eq_tol(simulate().ms, wire_ms + BYTES / 2e6, 0.02);
    ck_assert_int_eq(simulate().path, RF_PATH_BETWEEN);
    set_rates(0.1);
    ck_assert_double_eq_tol(simulate().ms, wire_ms + BYTES / 0.1e6, 0.02);
    ck_assert_int_eq(simulate().path, RF_PATH_CONVERSION);
    ck_assert_str_eq(simulate().busiest,
                     _i == 0 ? "conversion on b" : "conversion on a");
}

/* One group, of the tensor and its scales: there is nothing to overlap with,
 * but a bound does not know that. */
TEST(test_conversion_that_overlaps_is_bounded_by_the_slower_of_both)
{
    make("'at': 'receiver', 'overlap': true}, 'group': {'by': 'layer'", 1);
    set_rates(2);
    ck_assert_double_eq_tol(bound().ms, BYTES / LINK, 1e-9);
    ck_assert_str_eq(bound().resource, "link b in");
    ck_assert_double_eq_tol(simulate().ms, BYTES / LINK + BYTES / 2e6, 0.02);
    set_rates(0.1);
    ck_assert_double_eq_tol(bound().ms, BYTES / 0.1e6, 1e-9);
    ck_assert_str_eq(bound().resource, "conversion on b");
}

/* Each may convert a part, and one may begin to send before the other. */
TEST(test_conversion_is_divided_among_senders_that_hold_the_same)
{
    make("'at': 'sender'", 2);
    set_rates(0.1);
    ck_assert_double_eq_tol(bound().ms, BYTES / 0.2e6, 1e-3);
    ck_assert_str_eq(bound().resource, "conversion on a and 1 more");
    ck_assert_double_eq_tol(simulate().busy_ms, BYTES / 0.2e6, 1e-3);
}

/* All but one of the groups overlap, whichever is the longer. */
TEST(test_conversion_of_groups_takes_turns_with_the_link)
{
    static const uint32_t slots[] = {1, 1};
    double wire_ms, convert_ms, bytes = 0;
    uint32_t groups = 0;
    assert_ok(
        lab_make(&lab,
                 "{'megatron': {'num_layers': 6, 'hidden_size': 256, "
                 "'num_attention_heads': 4, 'vocab_size': 256}}",
                 "{'mode': 'disaggregated', 'train': {}, 'infer': {}, 'group': "
                 "{'by': 'layer'}, 'quantize': {'format': 'mxfp8', 'overlap': "
                 "true}}",
                 slots, 2),
        lab.err);
    lab_links(&links, 2, 100, 100, 0.5);
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        groups = RF_MAX(groups, lab.schedule->ops[i].group + 1);
    }
    ck_assert_uint_gt(groups, 6);
    for (uint32_t f = 0; f < lab.model->n_families; f++) {
        const struct rf_family *family = &lab.model->families[f];
        bytes += 2 * (double)rf_family_elements(family) *
                 rf_family_converted(family);
    }
    wire_ms = simulate().ms;
    set_rates(1);
    convert_ms = bytes / 1e6;
    ck_assert_double_gt(wire_ms, convert_ms);
    ck_assert_double_eq_tol(simulate().ms, wire_ms + convert_ms / groups, 1e-6);
    set_rates(0.1);
    convert_ms = bytes / 0.1e6;
    ck_assert_double_eq_tol(simulate().ms, convert_ms + wire_ms / groups, 1e-6);
}

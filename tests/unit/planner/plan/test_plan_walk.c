/* Walks over the transfers of a plan. */
#include <string.h>

#include "planner/plan/plan_walk.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "{\"megatron\": {\"num_layers\": 3, \"hidden_size\": 32, "                 \
    "\"num_attention_heads\": 8, \"vocab_size\": 128}}"

static const char *const balances[] = {
    "\"none\"", "\"size\"", "\"order\"",
    "\"time\", \"balance_links\": [{\"weight\": 2}, {\"weight\": 3, "
    "\"nics\": 2}, {\"weight\": 1}]"};
static const uint32_t slots[] = {3, 5, 4};

/* Six trainers that hold everything for six receivers: shares are cut. */
static struct planned make(int balance)
{
    struct planned planned;
    char scenario[512];
    snprintf(scenario, sizeof(scenario),
             "{\"mode\": \"disaggregated\", \"balance\": %s, "
             "\"train\": {\"tp\": 1, \"dp\": 6}, "
             "\"infer\": {\"tp\": 2, \"dp\": 3}}",
             balances[balance]);
    assert_ok(planned_make(&planned, MODEL, scenario, slots, 3), planned.err);
    return planned;
}

static bool same(const struct rf_transfer *a, const struct rf_transfer *b)
{
    return a->family == b->family && a->src == b->src && a->dst == b->dst &&
           a->src_piece == b->src_piece && a->dst_piece == b->dst_piece &&
           a->src_offset == b->src_offset && a->dst_offset == b->dst_offset &&
           rf_box_compare(&a->box, &b->box) == 0 &&
           memcmp(a->src_stride, b->src_stride, sizeof(a->src_stride)) == 0 &&
           memcmp(a->dst_stride, b->dst_stride, sizeof(a->dst_stride)) == 0;
}

LOOP_TEST(test_walk_is_the_same_each_time, RF_ARRAY_SIZE(balances))
{
    AUTO(planned) planned = make(_i);
    size_t n = planned.plan->n_transfers;
    AUTO_FREE struct rf_transfer *first = planned_transfers(planned.plan);
    AUTO_FREE struct rf_transfer *second = planned_transfers(planned.plan);
    for (size_t i = 0; i < n; i++) {
        ck_assert(same(&first[i], &second[i]));
    }
}

LOOP_TEST(test_walk_starts_anew_after_one_that_stopped_midway,
          RF_ARRAY_SIZE(balances))
{
    AUTO(planned) planned = make(_i);
    AUTO_FREE struct rf_transfer *all = planned_transfers(planned.plan);
    size_t n = planned.plan->n_transfers;
    AUTO(rf_plan_walk) walk;
    for (size_t stop = 0; stop <= n; stop += 1 + n / 7) {
        rf_plan_walk_start(&walk, planned.plan);
        for (size_t i = 0; i < stop; i++) {
            ck_assert(rf_plan_walk_step(&walk));
        }
        rf_plan_walk_end(&walk);
        rf_plan_walk_start(&walk, planned.plan);
        for (size_t i = 0; i < n; i++) {
            ck_assert(rf_plan_walk_step(&walk));
            ck_assert(same(&all[i], rf_plan_walk_transfer(&walk)));
        }
        rf_plan_walk_end(&walk);
    }
}

/* Two walks over one plan, the second `lag` transfers behind the first. */
LOOP_TEST(test_walk_does_not_disturb_another_over_the_same_plan,
          RF_ARRAY_SIZE(balances))
{
    AUTO(planned) planned = make(_i);
    const struct rf_plan *plan = planned.plan;
    AUTO_FREE struct rf_transfer *all = planned_transfers(plan);
    size_t n = plan->n_transfers;
    for (size_t lag = 0; lag <= n; lag += 1 + n / 5) {
        AUTO(rf_plan_walk) ahead, behind;
        rf_plan_walk_start(&ahead, plan);
        rf_plan_walk_start(&behind, plan);
        for (size_t i = 0; i < n + lag; i++) {
            if (i < n) {
                ck_assert(rf_plan_walk_step(&ahead));
                ck_assert(same(&all[i], rf_plan_walk_transfer(&ahead)));
            }
            if (i >= lag) {
                ck_assert(rf_plan_walk_step(&behind));
                ck_assert(same(&all[i - lag], rf_plan_walk_transfer(&behind)));
            }
        }
        ck_assert(!rf_plan_walk_step(&ahead));
        ck_assert(!rf_plan_walk_step(&behind));
    }
}

LOOP_TEST(test_walk_goes_by_destination_and_ends, RF_ARRAY_SIZE(balances))
{
    AUTO(planned) planned = make(_i);
    uint32_t last = 0, family = 0;
    size_t n = 0;
    AUTO(rf_plan_walk) walk;
    rf_plan_walk_start(&walk, planned.plan);
    while (rf_plan_walk_step(&walk)) {
        const struct rf_transfer *transfer = rf_plan_walk_transfer(&walk);
        ck_assert_uint_ge(transfer->dst, last);
        ck_assert(transfer->dst > last || transfer->family >= family);
        last = transfer->dst;
        family = transfer->family;
        n++;
    }
    ck_assert_uint_eq(n, planned.plan->n_transfers);
    ck_assert(!rf_plan_walk_step(&walk));
}

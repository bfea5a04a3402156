/* Fair shares against all subsets, tried one by one. */

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/assign/fair_shares.h"
#include "tests/unit/unit.h"

#define MOST 10

struct problem {
    uint32_t n_demands, n_suppliers;
    uint64_t demand[MOST];
    uint32_t first[MOST + 1], to[MOST * MOST];
    uint32_t weight[MOST]; /* 0: all alike */
    uint64_t amount[MOST * MOST], load[MOST];
};

static uint64_t solve(struct problem *p)
{
    struct rf_fair_shares shares = {
        .n_demands = p->n_demands,
        .n_suppliers = p->n_suppliers,
        .demand = p->demand,
        .first = p->first,
        .to = p->to,
        .weight = p->weight[0] > 0 ? p->weight : NULL,
        .amount = p->amount,
        .load = p->load,
    };
    rf_fair_shares_solve(&shares);
    return rf_div_up(shares.max_load, shares.max_weight);
}

static uint32_t weight_of(const struct problem *p, uint32_t supplier)
{
    return p->weight[0] > 0 ? p->weight[supplier] : 1;
}

/* The largest over all sets of demands of what they need divided by the weight
 * of the suppliers that they have: no division can be better, and one is as
 * good. */
static uint64_t least_possible(const struct problem *p)
{
    uint64_t most = 0;
    for (uint32_t set = 1; set < 1u << p->n_demands; set++) {
        uint64_t sum = 0;
        uint32_t suppliers = 0, n = 0;
        for (uint32_t d = 0; d < p->n_demands; d++) {
            if (!(set >> d & 1) || p->demand[d] == 0) {
                continue;
            }
            sum += p->demand[d];
            for (uint32_t e = p->first[d]; e < p->first[d + 1]; e++) {
                suppliers |= 1u << p->to[e];
            }
        }
        for (uint32_t r = 0; r < p->n_suppliers; r++) {
            n += suppliers >> r & 1 ? weight_of(p, r) : 0;
        }
        most = RF_MAX(most, n == 0 ? 0 : rf_div_up(sum, n));
    }
    return most;
}

static void assert_met(const struct problem *p, uint64_t max_load)
{
    uint64_t load[MOST] = {0}, most = 0;
    for (uint32_t d = 0; d < p->n_demands; d++) {
        uint64_t got = 0;
        for (uint32_t e = p->first[d]; e < p->first[d + 1]; e++) {
            got += p->amount[e];
            load[p->to[e]] += p->amount[e];
        }
        ck_assert_uint_eq(got, p->demand[d]);
    }
    for (uint32_t r = 0; r < p->n_suppliers; r++) {
        ck_assert_uint_eq(load[r], p->load[r]);
        most = RF_MAX(most, rf_div_up(load[r], weight_of(p, r)));
    }
    ck_assert_uint_eq(most, max_load);
}

/* Suppliers that are all alike, then of different weights. */
LOOP_TEST(test_shares_reach_the_least_possible_maximum, 2)
{
    uint64_t seed = 4711;
    for (int pass = 0; pass < 300; pass++) {
        struct problem p = {.n_demands = 0};
        uint32_t edges = 0;
        p.n_demands = 1 + (uint32_t)(rf_mix64(++seed) % 8);
        p.n_suppliers = 1 + (uint32_t)(rf_mix64(++seed) % 8);
        for (uint32_t d = 0; d < p.n_demands; d++) {
            uint64_t who = rf_mix64(++seed);
            p.demand[d] = rf_mix64(++seed) % 1000;
            for (uint32_t r = 0; r < p.n_suppliers; r++) {
                if (who >> r & 1 || (r == 0 && (who & 0xFF) == 0)) {
                    p.to[edges++] = r;
                }
            }
            if (edges == p.first[d]) {
                p.to[edges++] = (uint32_t)(who % p.n_suppliers);
            }
            p.first[d + 1] = edges;
        }
        for (uint32_t r = 0; _i > 0 && r < p.n_suppliers; r++) {
            p.weight[r] = 1 + (uint32_t)(rf_mix64(++seed) % 5);
        }
        assert_met(&p, solve(&p));
        ck_assert_uint_ge(solve(&p), least_possible(&p));
        ck_assert_uint_le(solve(&p), least_possible(&p) + (_i > 0));
    }
}

TEST(test_shares_even_out_below_the_maximum_too)
{
    /* Supplier 0 alone serves 100; 1 and 2 share 10. */
    struct problem p = {
        .n_demands = 2,
        .n_suppliers = 3,
        .demand = {100, 10},
        .first = {0, 1, 4},
        .to = {0, 0, 1, 2},
    };
    ck_assert_uint_eq(solve(&p), 100);
    ck_assert_uint_eq(p.load[1], 5);
    ck_assert_uint_eq(p.load[2], 5);
}

TEST(test_shares_follow_weights)
{
    /* 0 and 1 share 100 as 1 to 3, and 2, which is alone, has its 80. */
    struct problem p = {
        .n_demands = 2,
        .n_suppliers = 3,
        .demand = {100, 80},
        .first = {0, 2, 3},
        .to = {0, 1, 2},
        .weight = {1, 3, RF_FAIR_SHARES_WEIGHT_MAX},
    };
    ck_assert_uint_eq(solve(&p), 25);
    ck_assert_uint_eq(p.load[0], 25);
    ck_assert_uint_eq(p.load[1], 75);
    ck_assert_uint_eq(p.load[2], 80);
    /* The most that fits. */
    p.demand[0] = INT64_MAX - 80;
    p.weight[1] = RF_FAIR_SHARES_WEIGHT_MAX;
    assert_met(&p, solve(&p));
}

TEST(test_shares_of_no_demand_are_zero)
{
    struct problem p = {
        .n_demands = 1, .n_suppliers = 2, .first = {0, 2}, .to = {0, 1}};
    ck_assert_uint_eq(solve(&p), 0);
    p.n_demands = 0;
    ck_assert_uint_eq(solve(&p), 0);
}

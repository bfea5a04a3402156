/* Choice of sources and order, against exhaustive search where that is
 * possible.
 */
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/strategy/order.h"
#include "planner/strategy/order_field.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_works, rf_works_free)

#define NODES 6
#define RANKS_A_NODE 2
#define RANKS (NODES * RANKS_A_NODE)
#define NO_LOADS ((uint64_t[NODES + RANKS]){0})

static struct rf_rank ranks[RANKS];
static const struct rf_world world = {
    .n_ranks = RANKS, .ranks = ranks, .n_nodes = NODES};

static const struct rf_link_weights alike = {.rank = NULL};

static void make_world(void)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r].node = r / RANKS_A_NODE;
    }
}

/* A work from any of the ranks in `sources` to all in `receivers` (bit sets).
 */
static void add_work(struct rf_works *works, uint32_t sources,
                     uint32_t receivers, uint64_t bytes)
{
    struct rf_work work = {.bytes = bytes};
    work.sources = works->n_pool;
    for (uint32_t r = 0; r < RANKS; r++) {
        if ((sources >> r & 1) != 0) {
            RF_PUSH(works->pool, works->n_pool, works->pool_capacity,
                    ((struct rf_holder){.rank = r}));
            work.n_sources++;
        }
    }
    work.receivers = works->n_pool;
    for (uint32_t r = 0; r < RANKS; r++) {
        if ((receivers >> r & 1) != 0) {
            RF_PUSH(works->pool, works->n_pool, works->pool_capacity,
                    ((struct rf_holder){.rank = r}));
            work.n_receivers++;
        }
    }
    RF_PUSH(works->works, works->n, works->capacity, work);
}

static uint32_t source_rank(const struct rf_works *works, uint32_t i)
{
    const struct rf_work *work = &works->works[i];
    return works->pool[work->sources + work->source].rank;
}

LIMIT(30)

TEST(test_order_none_takes_the_first_holder)
{
    AUTO(rf_works) works = {.works = NULL};
    uint32_t order[2];
    make_world();
    add_work(&works, 0xf, 0x100, 10);
    add_work(&works, 0xf, 0x400, 10);
    rf_order_choose(&world, RF_BALANCE_NONE, &alike, false, &works, NO_LOADS,
                    order);
    ck_assert_uint_eq(source_rank(&works, 0), 0);
    ck_assert_uint_eq(source_rank(&works, 1), 0);
    ck_assert_uint_eq(order[0], 0);
}

TEST(test_order_size_balances_links_then_ranks)
{
    AUTO(rf_works) works = {.works = NULL};
    uint32_t order[5];
    make_world();
    add_work(&works, 0xf, 0x100, 10);
    add_work(&works, 0xf, 0x100, 4);
    add_work(&works, 0xf, 0x400, 4);
    add_work(&works, 0xf, 0x400, 4);
    add_work(&works, 0x7, 0x400, 4);
    rf_order_choose(&world, RF_BALANCE_SIZE, &alike, false, &works, NO_LOADS,
                    order);
    ck_assert_uint_eq(source_rank(&works, 0), 0); /* 10 on node 0 */
    ck_assert_uint_eq(source_rank(&works, 1), 2); /* 4 on node 1 */
    ck_assert_uint_eq(source_rank(&works, 2), 3); /* 8 on node 1 */
    ck_assert_uint_eq(source_rank(&works, 3), 2); /* 12 on node 1 */
    ck_assert_uint_eq(source_rank(&works, 4), 1); /* 14 on node 0 */
}

/* Of eight equal works, the node with three times the link sends six. */
TEST(test_order_time_balances_links_by_weight)
{
    uint32_t node[NODES] = {1, 3, 1, 1, 1, 1}, rank[RANKS];
    const struct rf_link_weights weights = {.rank = rank, .node = node};
    AUTO(rf_works) works = {.works = NULL};
    uint32_t order[8], sent[RANKS] = {0};
    make_world();
    for (uint32_t r = 0; r < RANKS; r++) {
        rank[r] = node[r / RANKS_A_NODE];
    }
    rank[2] = 6; /* twice what rank 3 can */
    for (uint32_t i = 0; i < 8; i++) {
        add_work(&works, 0xd, 0x100, 10);
    }
    rf_order_choose(&world, RF_BALANCE_TIME, &weights, false, &works, NO_LOADS,
                    order);
    for (uint32_t i = 0; i < 8; i++) {
        sent[source_rank(&works, i)]++;
    }
    ck_assert_uint_eq(sent[0], 2);
    ck_assert_uint_eq(sent[2], 4);
    ck_assert_uint_eq(sent[3], 2);
}

TEST(test_order_puts_links_before_copies)
{
    static const enum rf_balance all[] = {RF_BALANCE_NONE, RF_BALANCE_SIZE,
                                          RF_BALANCE_ORDER, RF_BALANCE_TIME};
    make_world();
    for (size_t i = 0; i < RF_ARRAY_SIZE(all); i++) {
        AUTO(rf_works) works = {.works = NULL};
        uint32_t order[3];
        add_work(&works, 0x1, 0x1, 10);   /* inside a rank */
        add_work(&works, 0x1, 0x2, 10);   /* inside a node */
        add_work(&works, 0x1, 0x100, 10); /* between nodes */
        rf_order_choose(&world, all[i], &alike, true, &works, NO_LOADS, order);
        ck_assert_uint_eq(order[0], 2);
        ck_assert_uint_eq(order[1], 1);
        ck_assert_uint_eq(order[2], 0);
    }
}

static uint64_t pick(uint64_t *state, uint64_t limit)
{
    *state += 0x9E3779B97F4A7C15u;
    return rf_mix64(*state) % limit;
}

/* When all works, which cross nodes, are done, started in the order given. */
static double makespan_of(const struct rf_works *works, bool serialize,
                          const uint32_t *order)
{
    double free_at[2 * NODES + RANKS] = {0}, makespan = 0;
    for (uint32_t i = 0; i < works->n; i++) {
        const struct rf_work *work = &works->works[order[i]];
        uint32_t source = work->source, nodes[RANKS], uses[4 * RANKS + 1];
        struct rf_order_job job = {.work = order[i], .n_candidates = 1};
        struct rf_order_field field = {.world = &world,
                                       .works = works,
                                       .serialize = serialize,
                                       .jobs = &job,
                                       .candidates = &source,
                                       .nodes = nodes,
                                       .free_at = free_at,
                                       .uses = uses};
        for (uint32_t k = 0; k < work->n_receivers; k++) {
            uint32_t node = ranks[works->pool[work->receivers + k].rank].node;
            if (k == 0 || nodes[job.n_nodes - 1] != node) {
                nodes[job.n_nodes++] = node;
            }
        }
        double finish = rf_order_start(&field, 0, 0) + (double)work->bytes;
        rf_order_occupy(&field, 0, 0, finish);
        makespan = RF_MAX(makespan, finish);
    }
    return makespan;
}

/* The least makespan over all orders and sources, by trying them all. */
static double exhaustive(struct rf_works *works, bool serialize,
                         uint32_t *order, uint32_t depth)
{
    uint32_t n = (uint32_t)works->n;
    double best = 1e300;
    if (depth == n) {
        return makespan_of(works, serialize, order);
    }
    for (uint32_t i = depth; i < n; i++) {
        uint32_t first = order[depth];
        order[depth] = order[i];
        order[i] = first;
        struct rf_work *work = &works->works[order[depth]];
        for (uint32_t s = 0; s < work->n_sources; s++) {
            work->source = s;
            double time = exhaustive(works, serialize, order, depth + 1);
            best = RF_MIN(best, time);
        }
        order[i] = order[depth];
        order[depth] = first;
    }
    return best;
}

/* Few works from nodes 0 and 1 to the others. Which rank of a node sends is not
 * searched for, so a node has one source here. */
LOOP_TEST(test_order_of_few_works_is_the_best_there_is, 6)
{
    uint64_t state = (uint64_t)_i;
    make_world();
    for (unsigned pass = 0; pass < 8; pass++) {
        AUTO(rf_works) works = {.works = NULL};
        uint32_t order[5], again[5];
        bool serialize = pick(&state, 2) == 1;
        for (unsigned i = 0; i < 5; i++) {
            uint32_t sources = 1 + (uint32_t)pick(&state, 3);
            uint32_t to = 4 + (uint32_t)pick(&state, 8);
            sources = (sources & 1) | (sources & 2) << 1;
            add_work(&works, sources, 1u << to | 1u << (4 + pick(&state, 8)),
                     1 + pick(&state, 5));
        }
        rf_order_choose(&world, RF_BALANCE_ORDER, &alike, serialize, &works,
                        NO_LOADS, order);
        double found = makespan_of(&works, serialize, order);
        memcpy(again, order, sizeof(again));
        double best = exhaustive(&works, serialize, again, 0);
        ck_assert_double_eq_tol(found, best, 1e-9);
    }
}

/* Many works, each sender once to each receiver: rounds without collisions. */
TEST(test_order_of_many_works_keeps_all_links_busy)
{
    AUTO(rf_works) works = {.works = NULL};
    uint32_t order[36];
    make_world();
    for (uint32_t src = 0; src < RANKS / 2; src++) {
        for (uint32_t dst = RANKS / 2; dst < RANKS; dst++) {
            add_work(&works, 1u << src, 1u << dst, 100);
        }
    }
    ck_assert_uint_eq(works.n, 36);
    rf_order_choose(&world, RF_BALANCE_ORDER, &alike, true, &works, NO_LOADS,
                    order);
    /* three links out, three in: 12 works each */
    ck_assert_double_eq_tol(makespan_of(&works, true, order), 1200, 1e-9);
}

TEST(test_order_is_deterministic)
{
    uint32_t first[40], second[40];
    for (unsigned pass = 0; pass < 2; pass++) {
        AUTO(rf_works) works = {.works = NULL};
        uint64_t state = 7;
        make_world();
        for (unsigned i = 0; i < 40; i++) {
            add_work(&works, 1 + (uint32_t)pick(&state, 15),
                     1u << (4 + pick(&state, 8)), 1 + pick(&state, 100));
        }
        rf_order_choose(&world, RF_BALANCE_ORDER, &alike, false, &works,
                        NO_LOADS, pass == 0 ? first : second);
    }
    ck_assert_mem_eq(first, second, sizeof(first));
}

TEST(test_order_shift_never_meets)
{
    uint32_t src[RANKS * RANKS], dst[RANKS * RANKS], order[RANKS * RANKS];
    make_world();
    for (uint32_t i = 0; i < RANKS * RANKS; i++) {
        src[i] = i / RANKS;
        dst[i] = i % RANKS;
    }
    rf_order_shift(&world, src, dst, RANKS * RANKS, order);
    for (uint32_t phase = 0; phase < RANKS; phase++) {
        uint32_t sends = 0, receives = 0;
        for (uint32_t i = 0; i < RANKS; i++) {
            uint32_t at = order[phase * RANKS + i];
            sends |= 1u << src[at];
            receives |= 1u << dst[at];
            ck_assert_int_eq(src[at] == dst[at], phase == RANKS - 1);
        }
        ck_assert_uint_eq(sends, (1u << RANKS) - 1);
        ck_assert_uint_eq(receives, (1u << RANKS) - 1);
    }
}

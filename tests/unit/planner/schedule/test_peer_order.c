/* The order in which ranks serve their peers: no two serve one at a time, and
 * refits come near their bounds if links are fluids (schedule_links.c). */
#include "planner/schedule/peer_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/gpu_example.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define LINK 1e6 /* bytes a second, into and out of a rank */

LIMIT(60)

/* Seven ranks, colocated; the schedule has no totals. */
TEST(test_colocated_ranks_begin_behind_themselves_and_end_at_home)
{
    enum { N = 7 };
    struct rf_op ops[N * N] = {{0}};
    const struct rf_schedule schedule = {
        .ops = ops, .n_ops = RF_ARRAY_SIZE(ops), .n_ranks = N};
    for (uint32_t i = 0; i < N * N; i++) {
        ops[i].src = i / N;
        ops[i].dst = i % N;
    }
    for (uint32_t from = 0; from < N; from++) {
        AUTO_FREE uint32_t *turn = rf_peer_order_make(&schedule, from);
        for (uint32_t k = 0; k + 1 < N; k++) {
            ck_assert_uint_eq(turn[(from + 1 + k) % N], k);
        }
        ck_assert_uint_eq(turn[from], N);
    }
}

/* Ranks 2 and 5 send, 3 needs nothing: of ranks 0, 4 and 6, which both serve,
 * 2 begins with the first and 5 with the second. */
TEST(test_sources_count_those_that_send)
{
    uint64_t send[] = {0, 0, 1, 0, 0, 1, 0};
    const struct rf_schedule schedule = {.rank_send = send,
                                         .n_ranks = RF_ARRAY_SIZE(send)};
    uint32_t turn[] = {0, RF_NONE, RF_NONE, RF_NONE, 0, RF_NONE, 0};
    const uint32_t second[] = {2, RF_NONE, RF_NONE, RF_NONE, 0, RF_NONE, 1};
    ck_assert_uint_eq(rf_peer_order_source(&schedule, 2), 0);
    ck_assert_uint_eq(rf_peer_order_source(&schedule, 5), 1);
    ck_assert_uint_eq(rf_peer_order_number(turn, RF_ARRAY_SIZE(turn), 1), 3);
    ck_assert_mem_eq(turn, second, sizeof(turn));
    ck_assert_uint_eq(rf_peer_order_number(turn, RF_ARRAY_SIZE(turn), 0), 3);
    ck_assert_uint_eq(turn[0], 0);
    ck_assert_uint_eq(turn[4], 1);
    ck_assert_uint_eq(turn[6], 2);
}

/* Ranks that every source sends to. */
struct side {
    uint32_t first, n;
};

/* Every source has an op for every destination, itself included. */
static void all_to_all(const struct side *sources,
                       const struct side *destinations, struct rf_schedule *out)
{
    size_t capacity = 0;
    memset(out, 0, sizeof(*out));
    out->n_ranks = RF_MAX(sources->first + sources->n,
                          destinations->first + destinations->n);
    out->rank_send = rf_xcalloc(out->n_ranks, sizeof(*out->rank_send));
    out->rank_recv = rf_xcalloc(out->n_ranks, sizeof(*out->rank_recv));
    for (uint32_t s = 0; s < sources->n; s++) {
        for (uint32_t d = 0; d < destinations->n; d++) {
            const struct rf_op op = {.id = (uint32_t)out->n_ops,
                                     .src = sources->first + s,
                                     .dst = destinations->first + d};
            RF_PUSH(out->ops, out->n_ops, capacity, op);
            out->rank_send[op.src] += op.src != op.dst;
            out->rank_recv[op.dst] += op.src != op.dst;
        }
    }
}

static void free_schedule(struct rf_schedule *schedule)
{
    free(schedule->ops);
    free(schedule->rank_send);
    free(schedule->rank_recv);
}

/* In how many sources' k-th turn each rank is served, by k and rank. */
static uint32_t *count_turns(const struct rf_schedule *schedule,
                             const struct side *sources)
{
    const uint32_t n_ranks = schedule->n_ranks;
    uint32_t *served = rf_xcalloc((size_t)n_ranks * n_ranks, sizeof(*served));
    for (uint32_t s = 0; s < sources->n; s++) {
        size_t n;
        const struct rf_op **ops =
            rf_peer_order_of(schedule, sources->first + s, &n);
        for (size_t k = 0; k < n; k++) {
            if (ops[k]->dst == ops[k]->src) {
                ck_assert_uint_eq(k + 1, n);
            } else {
                served[k * n_ranks + ops[k]->dst]++;
            }
        }
        free(ops);
    }
    return served;
}

static void check_turns(const struct side *sources,
                        const struct side *destinations)
{
    struct rf_schedule schedule;
    AUTO_FREE uint32_t *served;
    all_to_all(sources, destinations, &schedule);
    served = count_turns(&schedule, sources);
    for (uint32_t k = 0; k < destinations->n; k++) {
        uint32_t most = 0, least = UINT32_MAX;
        for (uint32_t d = 0; d < destinations->n; d++) {
            const uint32_t n =
                served[k * schedule.n_ranks + destinations->first + d];
            most = RF_MAX(most, n);
            least = RF_MIN(least, n);
        }
        ck_assert_msg(most <= 1 || least >= 1,
                      "ranks from %u on, %u of them, to ranks from %u on, %u "
                      "of them, turn %u: %u serve one rank while another idles",
                      sources->first, sources->n, destinations->first,
                      destinations->n, k, most);
    }
    free_schedule(&schedule);
}

#define MOST_RANKS 9u

TEST(test_no_rank_is_served_twice_while_another_idles)
{
    for (uint32_t s = 1; s <= MOST_RANKS; s++) {
        for (uint32_t d = 1; d <= MOST_RANKS; d++) {
            const struct side colocated = {0, d}, behind = {s, d};
            const struct side sources = {0, s}, before = {d, s};
            check_turns(&sources, &colocated);
            check_turns(&sources, &behind);
            check_turns(&before, &colocated);
        }
    }
}

/* Seconds of the rank whose links have most to carry. */
static double bound_of(const struct rf_schedule *schedule)
{
    uint64_t most = 0;
    for (uint32_t r = 0; r < schedule->n_ranks; r++) {
        most = RF_MAX(most,
                      RF_MAX(schedule->rank_send[r], schedule->rank_recv[r]));
    }
    return (double)most / LINK;
}

static int by_destination(const void *a, const void *b)
{
    const struct rf_op *const *x = a, *const *y = b;
    return RF_COMPARE((*x)->dst, (*y)->dst);
}

/* Seconds if every rank has links of its own and sends its ops one after the
 * other, by turns or in ascending order of destinations. What it copies to
 * itself runs beside that. */
static double time_of(const struct rf_schedule *schedule, bool ascending)
{
    const uint32_t n_ranks = schedule->n_ranks;
    AUTO_FREE struct rf_rank *ranks = rf_xcalloc(n_ranks, sizeof(*ranks));
    AUTO_FREE struct rf_op *ops = rf_xcalloc(schedule->n_ops, sizeof(*ops));
    struct rf_spec spec = {.name = NULL};
    struct rf_world world = {
        .n_ranks = n_ranks, .ranks = ranks, .n_nodes = n_ranks};
    struct rf_schedule chains = {.ops = ops};
    double time;
    for (uint32_t r = 0; r < n_ranks; r++) {
        size_t n;
        const struct rf_op **turns = rf_peer_order_of(schedule, r, &n);
        uint32_t before = RF_NO_OP;
        ranks[r].node = r;
        if (ascending) {
            qsort(turns, n, sizeof(*turns), by_destination);
        }
        for (size_t i = 0; i < n; i++) {
            if (turns[i]->dst != r) {
                struct rf_op *op = &ops[chains.n_ops];
                *op = *turns[i];
                op->id = (uint32_t)chains.n_ops++;
                op->dep = before;
                op->group = RF_NO_GROUP;
                before = op->id;
            }
        }
        free(turns);
    }
    time = lab_time(
        &(struct planned){.spec = &spec, .world = &world, .schedule = &chains},
        LINK);
    ck_assert_double_gt(time, 0);
    return time;
}

/* Turns come as near to the bound as `limit` times it, ascending order takes
 * `gain` times as long at least. */
static void check_times(struct planned *planned, double limit, double gain)
{
    struct rf_schedule *schedule;
    struct rf_err err;
    double bound, turns, ascending;
    assert_ok(rf_schedule_build(planned->plan, RF_NONE, &schedule, &err), err);
    bound = bound_of(schedule);
    turns = time_of(schedule, false);
    ascending = time_of(schedule, true);
    ck_assert_msg(turns <= limit * bound, "%.2f times the bound",
                  turns / bound);
    ck_assert_msg(ascending >= gain * turns,
                  "destinations in ascending order: %.2f times as long",
                  ascending / turns);
    rf_schedule_destroy(schedule);
    planned_free(planned);
}

TEST(test_gpu_8_colocated_comes_near_its_bound)
{
    struct planned planned;
    gpu_example_make(&planned, "gpu-8", "colocated", "send_recv");
    check_times(&planned, 1.15, 2);
}

static const char *const disaggregated[][2] = {
    {"\"tp\": 8, \"dp\": 1", "\"tp\": 1, \"dp\": 8"},
    {"\"tp\": 8, \"dp\": 1", "\"tp\": 2, \"pp\": 2, \"dp\": 2"},
    {"\"tp\": 4, \"dp\": 1", "\"tp\": 1, \"dp\": 8"},
    {"\"layout\": \"fsdp\", \"dp\": 4", "\"tp\": 1, \"dp\": 8"},
    {"\"layout\": \"fsdp\", \"dp\": 8", "\"tp\": 8, \"dp\": 1"},
};

LOOP_TEST(test_disaggregated_pairs_come_near_their_bounds,
          RF_ARRAY_SIZE(disaggregated))
{
    static const char model[] =
        "{\"megatron\": {\"num_layers\": 8, \"hidden_size\": 1024, "
        "\"num_attention_heads\": 16, \"ffn_hidden_size\": 4096, "
        "\"vocab_size\": 50304, \"swiglu\": true, \"untie\": true}}";
    const uint32_t slots[] = {8, 8};
    struct planned planned;
    char scenario[256];
    snprintf(scenario, sizeof(scenario),
             "{\"name\": \"pair\", \"mode\": \"disaggregated\", "
             "\"train\": {%s}, \"infer\": {%s}}",
             disaggregated[_i][0], disaggregated[_i][1]);
    assert_ok(
        planned_make(&planned, model, scenario, slots, RF_ARRAY_SIZE(slots)),
        planned.err);
    check_times(&planned, 1.15, 1.4);
}

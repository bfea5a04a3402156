/* The order in which ranks serve their peers: no two serve one at a time, and
 * gpu-8's colocated refit comes near its bound, by a fluid model of the links
 * that has tests of its own. */
#include "cuda/turns.h"

#include <check.h>
#include <stdlib.h>

#include "common/mem.h"
#include "tests/lib/fluid.h"
#include "tests/lib/gpu_example.h"

#define LINK 400e9 /* bytes a second, into and out of a GPU */

static double run(const struct fluid_source *sources, uint32_t n, double out,
                  double in)
{
    return fluid_run(sources, n, &(struct fluid_rates){out, in, out});
}

START_TEST(test_fluid_one_source_alone_sends_at_its_rate)
{
    const struct fluid_item items[] = {{1, 100}, {1, 50}};
    const struct fluid_source sources[] = {{items, 2}, {NULL, 0}};
    ck_assert_double_eq_tol(run(sources, 2, 10, 20), 15, 1e-9);
    ck_assert_double_eq_tol(run(sources, 2, 20, 10), 15, 1e-9);
}
END_TEST

/* Sources 0 and 1 share the link into 2 until source 1 has sent its 50. */
START_TEST(test_fluid_flows_into_one_rank_share_its_link)
{
    const struct fluid_item long_item = {2, 100}, short_item = {2, 50};
    const struct fluid_source sources[] = {
        {&long_item, 1}, {&short_item, 1}, {NULL, 0}};
    ck_assert_double_eq_tol(run(sources, 3, 10, 10), 15, 1e-9);
}
END_TEST

/* Both have half of the link into 2 until source 1 is done; then source 0 is
 * held by its own. */
START_TEST(test_fluid_is_max_min_fair)
{
    const struct fluid_item a = {2, 80}, b = {2, 20};
    const struct fluid_source sources[] = {{&a, 1}, {&b, 1}, {NULL, 0}};
    ck_assert_double_eq_tol(run(sources, 3, 8, 10), 4 + 60.0 / 8, 1e-9);
}
END_TEST

START_TEST(test_fluid_copies_inside_a_rank_use_no_link)
{
    const struct fluid_item local = {0, 200}, from = {0, 100};
    const struct fluid_source sources[] = {{&local, 1}, {&from, 1}};
    const struct fluid_rates rates = {10, 10, 25};
    ck_assert_double_eq_tol(fluid_run(sources, 2, &rates), 10, 1e-9);
}
END_TEST

START_TEST(test_turns_are_a_latin_square_that_ends_at_home)
{
    const uint32_t n = 7;
    for (uint32_t from = 0; from < n; from++) {
        for (uint32_t to = 0; to < n; to++) {
            ck_assert_uint_lt(rf_turn(from, to, n), n);
            for (uint32_t other = 0; other < n; other++) {
                if (other != to) {
                    ck_assert_uint_ne(rf_turn(from, to, n),
                                      rf_turn(from, other, n));
                }
                if (other != from) {
                    ck_assert_uint_ne(rf_turn(from, to, n),
                                      rf_turn(other, to, n));
                }
            }
        }
        ck_assert_uint_eq(rf_turn(from, from, n), n - 1);
    }
}
END_TEST

/* By destination in the order in which `rank` serves them. What it copies to
 * itself runs beside that. */
static struct fluid_source served(const struct rf_schedule *schedule,
                                  uint32_t rank)
{
    size_t n, used = 0;
    const struct rf_op **ops = rf_turns_of(schedule, rank, &n);
    struct fluid_item *items = rf_xcalloc(n + 1, sizeof(*items));
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->dst == rank) {
            continue;
        }
        if (used == 0 || items[used - 1].to != ops[i]->dst) {
            items[used++].to = ops[i]->dst;
        }
        items[used - 1].bytes += (double)rf_op_bytes(ops[i]);
    }
    free(ops);
    return (struct fluid_source){items, used};
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

static void free_sources(struct fluid_source *sources, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        free((void *)(uintptr_t)sources[r].items);
    }
    free(sources);
}

static int by_destination(const void *a, const void *b)
{
    const struct fluid_item *x = a, *y = b;
    return (x->to > y->to) - (x->to < y->to);
}

START_TEST(test_gpu_8_colocated_comes_near_its_bound)
{
    struct planned planned;
    struct rf_schedule *schedule;
    struct fluid_source *sources;
    struct rf_err err;
    double bound, turns, ascending;
    uint32_t n;
    gpu_example_make(&planned, "gpu-8", "colocated", "send_recv");
    ck_assert_int_eq(rf_schedule_build(planned.plan, RF_NONE, &schedule, &err),
                     RF_OK);
    n = schedule->n_ranks;
    sources = rf_xcalloc(n, sizeof(*sources));
    for (uint32_t r = 0; r < n; r++) {
        sources[r] = served(schedule, r);
    }
    bound = bound_of(schedule);
    turns = run(sources, n, LINK, LINK);
    for (uint32_t r = 0; r < n; r++) {
        qsort((void *)(uintptr_t)sources[r].items, sources[r].n,
              sizeof(struct fluid_item), by_destination);
    }
    ascending = run(sources, n, LINK, LINK);
    ck_assert_msg(turns <= 1.15 * bound, "%.1f ms, the bound is %.1f ms",
                  turns * 1e3, bound * 1e3);
    ck_assert_msg(ascending >= 2 * turns,
                  "destinations in ascending order: %.1f ms, turns %.1f ms",
                  ascending * 1e3, turns * 1e3);
    free_sources(sources, n);
    rf_schedule_destroy(schedule);
    planned_free(&planned);
}
END_TEST

Suite *test_turns_suite(void);
Suite *test_turns_suite(void)
{
    Suite *suite = suite_create("turns");
    TCase *tests = tcase_create("turns");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_fluid_one_source_alone_sends_at_its_rate);
    tcase_add_test(tests, test_fluid_flows_into_one_rank_share_its_link);
    tcase_add_test(tests, test_fluid_is_max_min_fair);
    tcase_add_test(tests, test_fluid_copies_inside_a_rank_use_no_link);
    tcase_add_test(tests, test_turns_are_a_latin_square_that_ends_at_home);
    tcase_add_test(tests, test_gpu_8_colocated_comes_near_its_bound);
    suite_add_tcase(suite, tests);
    return suite;
}

/* What load and refit do to each other, by hand. */
#include "coordinator/scenario/attempt.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

/* Rank 0 has no load. Rank 1 reads 100 MB in 10 ms alone, and 80 MB in the
 * 16 ms until all have ended the refit; rank 2 half as much. */
static struct rf_msg_ran plain[3] = {
    {.ns = 10 * MS}, {.ns = 8 * MS}, {.ns = 9 * MS}};
static struct rf_msg_ran loaded[3] = {
    {.ns = 15 * MS, .load_alone_ns = RF_ABSENT_I64},
    {.ns = 12 * MS,
     .load_alone_ns = 10 * MS,
     .load_alone_bytes = 100000000,
     .load_ns = 16 * MS,
     .load_bytes = 80000000},
    {.ns = 12 * MS,
     .load_alone_ns = 10 * MS,
     .load_alone_bytes = 50000000,
     .load_ns = 16 * MS,
     .load_bytes = 40000000}};
static const struct rf_iteration iteration = {.ranks = plain, .loaded = loaded};

TEST(test_attempt_relates_a_refit_under_load_to_the_one_without)
{
    struct rf_load_effect effect;
    ck_assert(rf_load_effect_of(&iteration, 3, &effect));
    ck_assert_int_eq(effect.refit_ns, 15 * MS);
    ck_assert_double_eq_tol(effect.refit_slowdown, 1.5, 1e-12);
    ck_assert_double_eq_tol(effect.alone_gbytes_per_s, 10 + 5, 1e-12);
    ck_assert_double_eq_tol(effect.gbytes_per_s, 5 + 2.5, 1e-12);
    ck_assert_double_eq_tol(effect.load_slowdown, 2, 1e-12);
}

/* A block of 65536 bytes in 16 ms. */
TEST(test_attempt_counts_a_starved_load_as_a_block)
{
    struct rf_load_effect effect;
    loaded[1].load_bytes = loaded[2].load_bytes = 0;
    ck_assert(rf_load_effect_of(&iteration, 3, &effect));
    ck_assert_double_eq_tol(effect.gbytes_per_s, 2 * 65536 / 16e6, 1e-12);
    ck_assert_double_eq_tol(effect.load_slowdown, 15 / (2 * 65536 / 16e6),
                            1e-6);
}

TEST(test_attempt_without_a_load_has_no_effect_of_it)
{
    const struct rf_iteration alone = {.ranks = plain};
    struct rf_load_effect effect;
    ck_assert(!rf_load_effect_of(&alone, 3, &effect));
}

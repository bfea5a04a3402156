/* Lines: who serves what, and where transfers are cut. */

#include "planner/assign/turn_line.h"

#include "tests/unit/unit.h"

struct fixture {
    uint32_t owner[4];
    uint64_t amount[4];
    struct rf_pool pool;
    struct rf_turn_line line;
};

static void set_up(struct fixture *f)
{
    *f = (struct fixture){.pool = {f->owner, f->amount}};
    f->pool = (struct rf_pool){f->owner, f->amount};
    rf_turn_line_join(&f->line, &f->pool, 0, 10, 100);
    rf_turn_line_join(&f->line, &f->pool, 1, 11, 0); /* has no share */
    rf_turn_line_join(&f->line, &f->pool, 2, 12, 50);
    rf_turn_line_join(&f->line, &f->pool, 3, 13, 50);
}

static uint64_t take(struct fixture *f, uint64_t bytes, uint64_t slack)
{
    uint64_t part = rf_turn_line_turn(&f->line, &f->pool, bytes, NULL, slack);
    f->line.pos += part;
    return part;
}

TEST(test_line_serves_shares_in_order)
{
    struct fixture f;
    set_up(&f);
    ck_assert_uint_eq(f.line.count, 3);
    ck_assert_uint_eq(take(&f, 60, 0), 60);
    ck_assert_uint_eq(rf_turn_line_owner(&f.line, &f.pool), 10);
    ck_assert_uint_eq(take(&f, 60, 0), 40); /* cut at the end of the share */
    ck_assert_uint_eq(take(&f, 20, 0), 20);
    ck_assert_uint_eq(rf_turn_line_owner(&f.line, &f.pool), 12);
    ck_assert_uint_eq(take(&f, 30, 0), 30);
    ck_assert_uint_eq(take(&f, 30, 0), 30);
    ck_assert_uint_eq(rf_turn_line_owner(&f.line, &f.pool), 13);
}

TEST(test_line_does_not_cut_slivers)
{
    struct fixture f;
    set_up(&f);
    /* Five bytes too many are less than the slack: no cut. */
    ck_assert_uint_eq(take(&f, 105, 5), 105);
    /* Five bytes left of the next share are left to its successor. */
    ck_assert_uint_eq(take(&f, 40, 5), 40);
    ck_assert_uint_eq(rf_turn_line_owner(&f.line, &f.pool), 12);
    ck_assert_uint_eq(take(&f, 40, 5), 40);
    ck_assert_uint_eq(rf_turn_line_owner(&f.line, &f.pool), 13);
}

TEST(test_line_last_member_takes_what_remains)
{
    struct fixture f;
    set_up(&f);
    ck_assert_uint_eq(take(&f, 100, 0), 100);
    ck_assert_uint_eq(take(&f, 50, 0), 50);
    ck_assert_uint_eq(take(&f, 500, 0), 500);
    ck_assert_uint_eq(rf_turn_line_owner(&f.line, &f.pool), 13);
}

TEST(test_line_rounds_to_the_coarsest_slices_that_are_fine)
{
    struct rf_box box = {.extent = {4, 1, 10, 8, 1, 1, 1}};
    /* Two bytes per element: a layer has 160, a row 16. */
    ck_assert_uint_eq(rf_turn_line_round(&box, 70, 2, 1000), 0);
    ck_assert_uint_eq(rf_turn_line_round(&box, 250, 2, 160), 320);
    ck_assert_uint_eq(rf_turn_line_round(&box, 250, 2, 159), 256);
    ck_assert_uint_eq(rf_turn_line_round(&box, 251, 2, 1), 252);
}

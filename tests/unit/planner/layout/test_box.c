/* Boxes: ranges, overlaps, disjointness, cutting. */
#include <stdlib.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/layout/box.h"
#include "tests/lib/places.h"
#include "tests/unit/unit.h"

static struct rf_box box_of(const uint64_t *start, const uint64_t *extent,
                            uint32_t n)
{
    struct rf_box box;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        box.start[d] = d < n ? start[d] : 0;
        box.extent[d] = d < n ? extent[d] : 1;
    }
    return box;
}

TEST(test_box_range_covers_exactly_its_elements_in_order)
{
    const uint64_t start[] = {2, 0, 5}, extent[] = {2, 3, 4};
    struct rf_box whole = box_of(start, extent, 3);
    for (uint64_t from = 0; from < 24; from++) {
        for (uint64_t to = from; to <= 24; to++) {
            struct rf_box parts[RF_BOX_RANGE_MAX];
            size_t n = rf_box_range(&whole, from, to, parts);
            uint64_t sum = 0;
            ck_assert_uint_le(n, 5);
            for (size_t i = 0; i < n; i++) {
                sum += rf_box_elements(&parts[i]);
            }
            ck_assert_uint_eq(sum, to - from);
            for (uint64_t k = from; k < to; k++) {
                const uint64_t at[RF_BOX_DIMS] = {2 + k / 12, k / 4 % 3,
                                                  5 + k % 4};
                int found = 0;
                for (size_t i = 0; i < n; i++) {
                    found += place_inside(&parts[i], at);
                }
                ck_assert_int_eq(found, 1);
            }
        }
    }
}

TEST(test_box_range_of_everything_is_one_box)
{
    const uint64_t start[RF_BOX_DIMS] = {1, 2, 3, 4, 5, 6, 7};
    const uint64_t extent[RF_BOX_DIMS] = {3, 1, 4, 1, 5, 9, 2};
    struct rf_box whole = box_of(start, extent, RF_BOX_DIMS), part[14];
    ck_assert_uint_eq(rf_box_range(&whole, 0, rf_box_elements(&whole), part),
                      1);
    ck_assert_int_eq(rf_box_compare(&whole, &part[0]), 0);
}

TEST(test_box_intersection_of_neighbours_is_empty)
{
    const uint64_t a0[] = {0, 0}, b0[] = {4, 0}, c0[] = {3, 1}, e[] = {4, 4};
    struct rf_box a = box_of(a0, e, 2), b = box_of(b0, e, 2);
    struct rf_box c = box_of(c0, e, 2), both = a;
    ck_assert(!rf_box_intersect(&a, &b, &both));
    ck_assert_int_eq(rf_box_compare(&both, &a), 0);
    ck_assert(rf_box_intersect(&a, &c, &both));
    ck_assert_uint_eq(rf_box_elements(&both), 3);
    ck_assert(rf_box_contains(&a, &both) && rf_box_contains(&c, &both));
    ck_assert(!rf_box_contains(&a, &c) && !rf_box_contains(&c, &a));
}

TEST(test_boxes_disjoint_agrees_with_comparing_pairs)
{
    uint64_t seed = 99;
    int overlapping = 0;
    for (int pass = 0; pass < 2000; pass++) {
        struct rf_box boxes[12], both;
        size_t n = 1 + rf_mix64(++seed) % 12;
        bool apart = true;
        for (size_t i = 0; i < n; i++) {
            uint64_t start[3], extent[3];
            for (int d = 0; d < 3; d++) {
                start[d] = rf_mix64(++seed) % 12;
                extent[d] = 1 + rf_mix64(++seed) % 3;
            }
            boxes[i] = box_of(start, extent, 3);
            for (size_t k = 0; k < i; k++) {
                apart &= !rf_box_intersect(&boxes[i], &boxes[k], &both);
            }
        }
        overlapping += !apart;
        ck_assert(rf_boxes_disjoint(boxes, n) == apart);
    }
    ck_assert_int_gt(overlapping, 100);
    ck_assert_int_lt(overlapping, 1900);
}

TEST(test_boxes_that_no_straight_cut_parts_are_disjoint)
{
    /* A pinwheel: four bars around a centre. */
    const uint64_t start[][2] = {{0, 0}, {0, 2}, {2, 1}, {1, 0}, {1, 1}};
    const uint64_t extent[][2] = {{1, 2}, {2, 1}, {1, 2}, {2, 1}, {1, 1}};
    struct rf_box boxes[6];
    for (int i = 0; i < 5; i++) {
        boxes[i] = box_of(start[i], extent[i], 2);
    }
    ck_assert(rf_boxes_disjoint(boxes, 5));
    boxes[5] = boxes[4];
    ck_assert(!rf_boxes_disjoint(boxes, 6));
}

static struct rf_box random_box(uint64_t *state)
{
    struct rf_box box;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        box.start[d] = rf_mix64(++*state) % 5;
        box.extent[d] =
            rf_mix64(++*state) % 2 == 0 ? 1 : 1 + rf_mix64(++*state) % 7;
    }
    return box;
}

LOOP_TEST(test_box_parts_and_chunks_make_up_the_box, 4)
{
    uint64_t state = (uint64_t)_i << 32;
    for (unsigned i = 0; i < 50; i++) {
        struct rf_box box = random_box(&state);
        uint64_t most = 1 + rf_mix64(++state) % 40, sum = 0;
        struct rf_chunking chunking = rf_box_chunking(&box, most);
        struct rf_box *boxes = rf_xcalloc(chunking.count, sizeof(*boxes));
        for (uint64_t k = 0; k < chunking.count; k++) {
            boxes[k] = rf_box_chunk(&box, &chunking, k);
            ck_assert(rf_box_contains(&box, &boxes[k]));
            ck_assert_uint_le(rf_box_elements(&boxes[k]), most);
            sum += rf_box_elements(&boxes[k]);
        }
        ck_assert_uint_eq(sum, rf_box_elements(&box));
        ck_assert(rf_boxes_disjoint(boxes, chunking.count));
        free(boxes);
        struct rf_split split = rf_box_split(&box, 1 + (uint32_t)most % 9);
        struct rf_box parts[9];
        ck_assert_uint_le(split.parts, 1 + most % 9);
        sum = 0;
        for (uint32_t k = 0; k < split.parts; k++) {
            parts[k] = rf_box_part(&box, &split, k);
            ck_assert(rf_box_contains(&box, &parts[k]));
            sum += rf_box_elements(&parts[k]);
        }
        ck_assert_uint_eq(sum, rf_box_elements(&box));
        ck_assert(rf_boxes_disjoint(parts, split.parts));
    }
}

TEST(test_box_split_prefers_even_outer_dimensions)
{
    struct rf_box box = {.extent = {28, 1, 1024, 3072, 1, 1, 1}};
    struct rf_split split = rf_box_split(&box, 4);
    ck_assert_uint_eq(split.dim, 0);
    ck_assert_uint_eq(split.parts, 4);
    split = rf_box_split(&box, 3); /* 10 + 9 + 9 layers are too uneven */
    ck_assert_uint_eq(split.dim, 2);
    ck_assert_uint_eq(split.parts, 3);
    box = (struct rf_box){.extent = {1, 1, 1, 1, 1, 1, 1}};
    ck_assert_uint_eq(rf_box_split(&box, 5).parts, 1);
}

/* How many steps a rank has, so that packing and unpacking overlap the wire, and
 * how local copies are divided among them. */
#include "common/mem.h"
#include "cuda/lockstep/pair.h"
#include "cuda/lockstep/steps_build.h"
#include "tests/lib/auto.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_steps, rf_steps_free)

#define SLOTS 2u
#define MIB (UINT64_C(1) << 20)
#define LARGE_BUCKET (512 * MIB)

/* Two ranks; rank 0 sends `mib` MiB in each of `rounds` rounds, in columns of
 * 1 KiB or, if `whole`, in one run; by REFIT_DIRECT_BYTES' default that run is
 * not packed. */
static const struct {
    uint64_t mib;
    uint32_t rounds;
    bool whole, staged;
    size_t sender, receiver; /* waves of the first round */
} overlaps[] = {
    {400, 1, false, false, 4, 4}, /* fits a step */
    {64, 1, false, false, 4, 4},
    {40, 1, false, false, 3, 3}, /* steps of 16 MiB at least */
    {16, 1, false, false, 1, 1},
    {1600, 1, false, false, 4, 4}, /* the bucket asks for as many */
    {2400, 1, false, false, 6, 6}, /* and here for more */
    {64, 2, false, false, 2, 2},
    {64, 4, false, false, 1, 1}, /* rounds overlap as well */
    {64, 9, false, false, 1, 1},
    {400, 1, true, false, 1, 1}, /* nothing is packed */
    {400, 1, true, true, 1, 4},  /* but unpacked */
};

static void make_columns(struct rf_op *op, uint64_t mib, bool whole)
{
    const uint64_t width = whole ? mib * MIB : 1024;
    const uint64_t rows = whole ? 1 : mib * MIB / width;
    op->from = op->wire = op->to = (struct rf_form){RF_U8};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        op->box.extent[d] = 1;
        op->src_stride[d] = op->dst_stride[d] = 2 * width * rows;
    }
    op->box.extent[RF_BOX_DIMS - 2] = rows;
    op->box.extent[RF_BOX_DIMS - 1] = width;
    op->src_stride[RF_BOX_DIMS - 2] = 2 * width;
    op->dst_stride[RF_BOX_DIMS - 2] = 2 * width;
    op->src_stride[RF_BOX_DIMS - 1] = op->dst_stride[RF_BOX_DIMS - 1] = 1;
}

LOOP_TEST(test_a_rank_has_four_steps_if_it_packs_enough,
          RF_ARRAY_SIZE(overlaps))
{
    struct rf_op ops[9] = {{0}};
    const uint32_t rounds = overlaps[_i].rounds;
    const struct rf_schedule schedule = {
        .in_flight = RF_IN_FLIGHT, .ops = ops, .n_ops = rounds, .n_ranks = 2};
    struct rf_waves waves[2];
    struct rf_steps_of of = {.schedule = &schedule,
                             .bucket_bytes = LARGE_BUCKET,
                             .staged = overlaps[_i].staged,
                             .waves = waves};
    size_t counted[2];
    struct rf_err err;
    assert_ok(rf_direct_bytes(NULL, &of.direct_bytes, &err), err);
    for (uint32_t i = 0; i < rounds; i++) {
        ops[i] = (struct rf_op){.id = i, .round = i, .dst = 1};
        make_columns(&ops[i], overlaps[_i].mib, overlaps[_i].whole);
    }
    for (of.rank = 0; of.rank < 2; of.rank++) {
        rf_waves_count(&of, &waves[of.rank]);
        counted[of.rank] =
            waves[of.rank].n == 0 ? 1 : waves[of.rank].list[0].waves;
    }
    ck_assert_uint_eq(counted[0], overlaps[_i].sender);
    ck_assert_uint_eq(counted[1], overlaps[_i].receiver);
    for (of.rank = 0; of.rank < 2; of.rank++) {
        AUTO(rf_steps) steps;
        assert_ok(rf_steps_build(&of, &steps, &err), err);
        ck_assert_uint_eq(steps.n, rounds * RF_MAX(counted[0], counted[1]));
        ck_assert(!rf_steps_copy_both_ways(&steps));
    }
    rf_waves_free(&waves[0]);
    rf_waves_free(&waves[1]);
}

/* The wire's share of a rank's time by a model: an H100's memory for packing
 * and unpacking and NVLink for the wire, at nominal rates, and two slots. */
static double share_of_wire(const struct rf_steps *of)
{
    const double copies = 2 / 2.8e12, link = 1 / 450e9; /* s per byte */
    double wire = 0, packed = 0, moved = 0, unpacked = 0;
    double slot_moved[SLOTS] = {0}, slot_unpacked[SLOTS] = {0};
    for (size_t s = 0; s < of->n; s++) {
        const struct rf_step *step = &of->at[s];
        uint64_t bytes = 0;
        for (size_t m = 0; m < step->n_sends; m++) {
            bytes += step->sends[m].bytes;
        }
        packed = RF_MAX(packed, slot_moved[s % SLOTS]) +
                 copies * (double)step->pack.plain.bytes;
        moved = RF_MAX(RF_MAX(moved, packed), slot_unpacked[s % SLOTS]) +
                link * (double)bytes;
        unpacked =
            RF_MAX(unpacked, moved) + copies * (double)step->unpack.plain.bytes;
        wire += link * (double)bytes;
        slot_moved[s % SLOTS] = moved;
        slot_unpacked[s % SLOTS] = unpacked;
    }
    return wire / unpacked;
}

/* Two ranks that exchange 400 MiB, in as few steps as the bucket allows and in
 * as many as are counted. */
TEST(test_four_steps_hide_packing_behind_the_wire)
{
    struct rf_op ops[2] = {{.id = 0, .dst = 1}, {.id = 1, .src = 1}};
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .n_ranks = 2};
    struct rf_waves waves[2] = {{NULL, 0, 0}};
    const struct rf_steps_of of = {
        .schedule = &schedule, .bucket_bytes = LARGE_BUCKET, .waves = waves};
    AUTO(rf_steps) one, four;
    struct rf_err err;
    make_columns(&ops[0], 400, false);
    make_columns(&ops[1], 400, false);
    assert_ok(rf_steps_build(&of, &one, &err), err);
    rf_waves_count(&of, &waves[0]);
    assert_ok(rf_steps_build(&of, &four, &err), err);
    ck_assert_double_lt(share_of_wire(&one), 0.65);
    ck_assert_double_gt(share_of_wire(&four), 0.85);
    ck_assert(rf_steps_copy_both_ways(&four));
    rf_waves_free(&waves[0]);
}

/* Rank 0 sends 400 MiB in four steps and copies 8 · 50 MiB by itself. */
TEST(test_local_copies_are_spread_over_the_steps_of_their_round)
{
    struct rf_op ops[9] = {{.id = 0, .dst = 1}};
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .n_ranks = 2};
    struct rf_waves waves[2] = {{NULL, 0, 0}};
    const struct rf_steps_of of = {
        .schedule = &schedule, .bucket_bytes = LARGE_BUCKET, .waves = waves};
    AUTO(rf_steps) steps;
    struct rf_err err;
    make_columns(&ops[0], 400, false);
    for (uint32_t i = 1; i < RF_ARRAY_SIZE(ops); i++) {
        ops[i] = (struct rf_op){.id = i, .dep = RF_NO_OP};
        make_columns(&ops[i], 50, false);
    }
    rf_waves_count(&of, &waves[0]);
    assert_ok(rf_steps_build(&of, &steps, &err), err);
    ck_assert_uint_eq(steps.n, 4);
    for (size_t s = 0; s < steps.n; s++) {
        ck_assert_uint_eq(steps.at[s].n_sends, 1);
        ck_assert_uint_eq(steps.at[s].pack.plain.bytes,
                          steps.at[s].sends[0].bytes + 100 * MIB);
    }
    rf_waves_free(&waves[0]);
}

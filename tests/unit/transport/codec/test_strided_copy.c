/* Strided copies against copying element by element. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/lib/places.h"
#include "tests/unit/unit.h"
#include "transport/codec/cast.h"
#include "transport/codec/strided_copy.h"

#define MEMORY_BYTES 65536

struct memories {
    uint8_t src[MEMORY_BYTES], dst[MEMORY_BYTES], wanted[MEMORY_BYTES];
};

static void set_dim(struct rf_op *op, uint32_t d, uint64_t extent,
                    uint64_t src_stride, uint64_t dst_stride)
{
    op->box.extent[d] = extent;
    op->src_stride[d] = src_stride;
    op->dst_stride[d] = dst_stride;
}

static struct rf_op new_op(enum rf_dtype from, enum rf_dtype to)
{
    struct rf_op op = {.from = {(uint8_t)from}, .to = {(uint8_t)to}};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        set_dim(&op, d, 1, 0, 0);
    }
    return op;
}

/* Rows of 3·5 elements, the source's twice as wide. */
static struct rf_op column_split(enum rf_dtype dtype)
{
    const uint64_t item = rf_dtype_bytes(dtype);
    struct rf_op op = new_op(dtype, dtype);
    set_dim(&op, 0, 2, 3000 * item, 2000 * item);
    set_dim(&op, 2, 7, 200 * item, 100 * item);
    set_dim(&op, 3, 100, item, item);
    return op;
}

static struct memories *make_memories(const struct rf_op *op)
{
    struct memories *memories = calloc(1, sizeof(*memories));
    uint64_t at[RF_BOX_DIMS];
    memcpy(at, op->box.start, sizeof(at));
    for (size_t k = 0; k < MEMORY_BYTES / 8; k++) {
        uint64_t word = rf_pattern_word(1, 2, k);
        memcpy(memories->src + 8 * k, &word, 8);
    }
    do {
        uint64_t src = place_address(&op->box, at, 0, op->src_stride);
        uint64_t dst = place_address(&op->box, at, 0, op->dst_stride);
        if (rf_op_cast(op) == RF_CAST_NONE) {
            memcpy(memories->wanted + dst, memories->src + src,
                   rf_form_item(op->from));
        } else {
            rf_cast_items(rf_op_cast(op), memories->wanted + dst,
                          memories->src + src, 1);
        }
    } while (place_next(&op->box, at));
    return memories;
}

static void assert_equal(const struct memories *memories)
{
    ck_assert_mem_eq(memories->dst, memories->wanted, MEMORY_BYTES);
}

TEST(test_shape_of_a_contiguous_box_is_one_run)
{
    struct rf_op op = new_op(RF_BF16, RF_BF16);
    struct rf_copy_shape shape;
    set_dim(&op, 0, 3, 4000, 4000);
    set_dim(&op, 2, 20, 200, 200);
    set_dim(&op, 3, 100, 2, 2);
    rf_copy_shape_of(&op, &shape);
    ck_assert_uint_eq(shape.n_dims, 0);
    ck_assert_uint_eq(shape.run_items, 12000);
    ck_assert_uint_eq(rf_copy_shape_runs(&shape), 1);
}

TEST(test_shape_joins_loops_that_walk_as_one)
{
    struct rf_op op = column_split(RF_BF16);
    struct rf_copy_shape shape;
    uint64_t src, dst;
    rf_copy_shape_of(&op, &shape);
    ck_assert_uint_eq(shape.n_dims, 2);
    ck_assert_uint_eq(shape.run_items, 200);
    ck_assert_uint_eq(rf_copy_shape_runs(&shape), 14);
    rf_copy_run_at(&shape, 8, &src, &dst);
    ck_assert_uint_eq(src, 6000 + 400);
    ck_assert_uint_eq(dst, 4000 + 200);
    set_dim(&op, 0, 2, 7 * 400, 7 * 200);
    rf_copy_shape_of(&op, &shape);
    ck_assert_uint_eq(shape.n_dims, 1);
    ck_assert_uint_eq(shape.count[0], 14);
}

/* Every way to cut the stream gives the same memory. */
LOOP_TEST(test_ranges_of_any_size_copy_everything, 16)
{
    const uint64_t steps[] = {1, 7, 64, 199, 200, 201, 1000, 100000};
    struct rf_op op = column_split(RF_BF16);
    AUTO_FREE struct memories *memories = make_memories(&op);
    struct rf_copy_shape shape;
    uint64_t step = steps[_i / 2];
    rf_copy_shape_of(&op, &shape);
    for (uint64_t at = 0; at < shape.total_items; at += step) {
        rf_copy_range(&shape, at, RF_MIN(step, shape.total_items - at),
                      memories->dst, memories->src, _i % 2 == 1);
    }
    rf_copy_fence();
    assert_equal(memories);
}

TEST(test_packed_streams_unpack_to_the_same)
{
    struct rf_op op = column_split(RF_F32);
    AUTO_FREE struct memories *memories = make_memories(&op);
    struct rf_copy_shape shape;
    uint8_t stage[96];
    rf_copy_shape_of(&op, &shape);
    for (uint64_t at = 0; at < shape.total_items; at += sizeof(stage)) {
        uint64_t n = RF_MIN(sizeof(stage), shape.total_items - at);
        rf_copy_pack(&shape, at, n, stage, memories->src, false);
        rf_copy_unpack(&shape, at, n, memories->dst, stage, false);
    }
    assert_equal(memories);
}

LOOP_TEST(test_casts_happen_at_either_end, 2)
{
    struct rf_op op = new_op(RF_F32, RF_BF16);
    AUTO_FREE struct memories *memories;
    struct rf_copy_shape shape;
    uint8_t stage[400];
    set_dim(&op, 2, 7, 800, 200);
    set_dim(&op, 3, 100, 4, 2);
    memories = make_memories(&op);
    rf_copy_shape_of(&op, &shape);
    ck_assert_uint_eq(shape.total_items, 700);
    for (uint64_t at = 0; at < shape.total_items; at += 70) {
        bool at_source = _i == 0;
        rf_copy_pack(&shape, at, 70, stage, memories->src, at_source);
        rf_copy_unpack(&shape, at, 70, memories->dst, stage, !at_source);
    }
    assert_equal(memories);
    memset(memories->dst, 0, MEMORY_BYTES);
    rf_copy_range(&shape, 0, 700, memories->dst, memories->src, true);
    assert_equal(memories);
}

TEST(test_io_vectors_name_every_byte_once)
{
    struct rf_op op = column_split(RF_BF16);
    AUTO_FREE struct memories *memories = make_memories(&op);
    struct rf_copy_shape shape;
    struct iovec from[3], to[3];
    uint64_t items, same;
    rf_copy_shape_of(&op, &shape);
    for (uint64_t at = 0; at < shape.total_items; at += items) {
        const struct rf_copy_span src = {RF_COPY_SRC, memories->src, at, 350};
        const struct rf_copy_span dst = {RF_COPY_DST, memories->dst, at, 350};
        size_t n = rf_copy_iov(&shape, &src, from, 3, &items);
        ck_assert_uint_eq(rf_copy_iov(&shape, &dst, to, 3, &same), n);
        ck_assert_uint_eq(items, same);
        ck_assert_uint_gt(items, 0);
        for (size_t i = 0; i < n; i++) {
            memcpy(to[i].iov_base, from[i].iov_base, from[i].iov_len);
        }
    }
    assert_equal(memories);
}

TEST(test_rows_of_members_are_written_together)
{
    struct rf_op op = column_split(RF_BF16), other = op;
    AUTO_FREE struct memories *memories = make_memories(&op);
    struct rf_copy_shape shape, other_shape;
    struct rf_copy_member members[2];
    static uint8_t second[MEMORY_BYTES];
    set_dim(&other, 2, 7, 400, 300);
    other.dst_stride[0] = 5000;
    rf_copy_shape_of(&op, &shape);
    rf_copy_shape_of(&other, &other_shape);
    members[0] = (struct rf_copy_member){&shape, memories->dst, memories->src};
    members[1] =
        (struct rf_copy_member){&other_shape, second, memories->src + 200};
    rf_copy_rows(members, 2, 0, 5);
    rf_copy_rows(members, 2, 5, 9);
    rf_copy_fence();
    assert_equal(memories);
    for (uint64_t run = 0; run < 14; run++) {
        uint64_t src, dst;
        rf_copy_run_at(&other_shape, run, &src, &dst);
        ck_assert_mem_eq(second + dst, memories->src + 200 + src, 200);
    }
}

TEST(test_streaming_copies_any_size_and_alignment)
{
    static uint8_t src[4096], dst[4096];
    for (size_t i = 0; i < sizeof(src); i++) {
        src[i] = (uint8_t)rf_mix64(i);
    }
    for (size_t bytes = 0; bytes < 400; bytes += 13) {
        for (size_t shift = 0; shift < 64; shift += 7) {
            memset(dst, 0xEE, sizeof(dst));
            rf_copy_streaming(dst + 64 + shift, src + 2 * shift, bytes);
            rf_copy_fence();
            ck_assert_mem_eq(dst + 64 + shift, src + 2 * shift, bytes);
            ck_assert_uint_eq(dst[63 + shift], 0xEE);
            ck_assert_uint_eq(dst[64 + shift + bytes], 0xEE);
        }
    }
    ck_assert_uint_gt(strlen(rf_copy_instructions()), 0);
}

static uint16_t narrow(enum rf_cast cast, uint32_t bits)
{
    uint16_t out;
    rf_cast_items(cast, &out, &bits, 1);
    return out;
}

static uint32_t widen(enum rf_cast cast, uint16_t bits)
{
    uint32_t out;
    rf_cast_items(cast, &out, &bits, 1);
    return out;
}

/* Parts of rows, shorter and longer than what is fetched ahead, in pieces that
 * end within them. */
LOOP_TEST(test_streaming_copies_parts_of_rows, 7)
{
    static const uint64_t runs[] = {128, 1000, 1024, 2047, 2048, 3000, 5000};
    const uint64_t run = runs[_i], rows = 7, stride = run + 500;
    const struct rf_copy_shape shape = {.n_dims = 1,
                                        .count = {rows},
                                        .src_stride = {stride},
                                        .dst_stride = {run + 3},
                                        .run_items = run,
                                        .total_items = rows * run,
                                        .src_item = 1,
                                        .dst_item = 1};
    AUTO_FREE uint8_t *src = rf_xmalloc(rows * stride);
    AUTO_FREE uint8_t *dst = rf_xcalloc(rows * (run + 3) + 1, 1);
    for (uint64_t i = 0; i < rows * stride; i++) {
        src[i] = (uint8_t)(i * 7 + i / 251);
    }
    for (uint64_t at = 0; at < rows * run;) {
        const uint64_t n = RF_MIN(rows * run - at, 1700);
        rf_copy_range(&shape, at, n, dst + 1, src, true);
        at += n;
    }
    rf_copy_fence();
    for (uint64_t r = 0; r < rows; r++) {
        const uint8_t *row = dst + 1 + r * (run + 3);
        ck_assert_mem_eq(row, src + r * stride, run);
        ck_assert(r + 1 == rows || (row[run] == 0 && row[run + 2] == 0));
    }
}

TEST(test_casts_round_to_nearest_even)
{
    ck_assert_uint_eq(narrow(RF_CAST_F32_BF16, 0x3F800000), 0x3F80);
    ck_assert_uint_eq(narrow(RF_CAST_F32_BF16, 0x3F808000), 0x3F80); /* tie */
    ck_assert_uint_eq(narrow(RF_CAST_F32_BF16, 0x3F818000), 0x3F82); /* tie */
    ck_assert_uint_eq(narrow(RF_CAST_F32_BF16, 0x3F808001), 0x3F81);
    ck_assert_uint_eq(narrow(RF_CAST_F32_BF16, 0x7F800001) & 0x7FFF, 0x7FC0);
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x3F800000), 0x3C00);
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0xBF801000), 0xBC00); /* tie */
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x3F803000), 0x3C02); /* tie */
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x477FE000), 0x7BFF); /* 65504 */
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x477FF000), 0x7C00); /* 65520 */
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x33800000), 0x0001); /* 2^-24 */
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x33000000), 0x0000); /* tie */
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x33000001), 0x0001);
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x387FC000), 0x03FF);
    ck_assert_uint_eq(narrow(RF_CAST_F32_F16, 0x387FF000), 0x0400);
}

TEST(test_widening_and_narrowing_give_back_every_half)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        if ((half & 0x7C00) != 0x7C00) {
            ck_assert_uint_eq(
                narrow(RF_CAST_F32_F16, widen(RF_CAST_F16_F32, half)), half);
        }
        if ((half & 0x7F80) != 0x7F80) {
            ck_assert_uint_eq(
                narrow(RF_CAST_F32_BF16, widen(RF_CAST_BF16_F32, half)), half);
        }
    }
}

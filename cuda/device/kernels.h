/*
 * The work of the device kernels, as code for one thread of one block. nvcc
 * compiles it into the kernels, and the C compiler into the fake runtime of the
 * tests: both share index arithmetic and content formulae.
 *
 * The host cuts all work into *tiles*, once per plan. A tile is a few rows of a
 * two-dimensional slice, at most RF_TILE_THREADS units wide. A unit is the
 * widest access (16, 8, 4, 2 or 1 bytes) that all addresses of the slice allow;
 * with a cast it is four elements or one. The block's threads form groups of
 * 2^group_log2 lanes. A group takes a row, and each thread moves RF_TILE_LOADS
 * rows with all loads before all stores, which keeps enough bytes in flight to
 * fill the memory system.
 */
#ifndef RF_CUDA_DEVICE_KERNELS_H
#define RF_CUDA_DEVICE_KERNELS_H

#include <stdint.h>

#include "common/fp8.h"
#include "common/pattern.h"

#define RF_TILE_LOG2 9
#define RF_TILE_THREADS (1 << RF_TILE_LOG2)
#define RF_TILE_BLOCKS 2 /* per multiprocessor, at 64 registers a thread */
/* Loads of units of so many bytes that a thread has in flight: as many as its
 * registers hold. */
#define RF_TILE_LOADS(bytes) ((bytes) < 8 ? 24u : 128u / (uint32_t)(bytes))
#define RF_MAX_BASES 64

/* Memories that slices refer to by index: arenas, staging, mapped peers. */
struct rf_bases {
    unsigned char *at[RF_MAX_BASES];
};

/* Content of a logical tensor in an arena: row r holds the tensor's bytes
 * logical_offset + r·logical_pitch … + width (before a cast). */
struct rf_content_slice {
    uint64_t seed;
    uint64_t logical_offset, logical_pitch;
    uint64_t arena_offset, arena_pitch;
    uint64_t width, rows; /* of the arena, bytes */
};

/* A copy's tile has its own addresses, so that nothing else has to be loaded
 * before its data; other tiles name their slice. */
struct __attribute__((aligned(16))) rf_tile {
    union {
        struct {
            uint64_t src, dst; /* of the first unit, from the bases */
            uint64_t src_pitch, dst_pitch;
        };
        struct {
            uint64_t row, column; /* first, column in bytes */
            uint32_t slice;
        };
    };
    uint32_t rows;  /* copies: ≤ RF_TILE_LOADS · (RF_TILE_THREADS >>
                       group_log2); content: any number */
    uint32_t units; /* in a row of the tile, ≤ 2^group_log2 */
    uint32_t group_log2;
    uint16_t src_base, dst_base; /* copies */
};

struct rf_copy_args {
    struct rf_bases bases;
    const struct rf_tile *tiles;
    uint32_t n_tiles;
};

struct rf_content_args {
    unsigned char *arena;
    const struct rf_content_slice *slices;
    const struct rf_tile *tiles;
    uint32_t n_tiles;
    uint32_t cast;
    uint64_t round;
    struct rf_verify_counts *counts;
};

/* Counters of a verification. `first` is the lowest wrong byte (slice << 40 |
 * byte in the slice); all ones: none. */
struct rf_verify_counts {
    unsigned long long mismatched_bytes;
    unsigned long long first;
};

#ifdef __CUDACC__
#define RF_ATOMIC_ADD(p, v) atomicAdd((p), (v))
#define RF_ATOMIC_MIN(p, v) atomicMin((p), (v))
struct __align__(16) rf_v16
{
    uint64_t low, high;
};
#else
#define RF_ATOMIC_ADD(p, v) (void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define RF_ATOMIC_MIN(p, v)                                                    \
    do {                                                                       \
        unsigned long long seen_ = *(p);                                       \
        while ((v) < seen_ &&                                                  \
               !__atomic_compare_exchange_n(                                   \
                   (p), &seen_, (v), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) { \
        }                                                                      \
    } while (0)
struct __attribute__((aligned(16))) rf_v16 {
    uint64_t low, high;
};
#endif
typedef struct rf_v16 rf_unit16;
typedef uint64_t rf_unit8;
typedef uint32_t rf_unit4;
typedef uint16_t rf_unit2;
typedef uint8_t rf_unit1;

/* Numbers of enum rf_cast (planner/schedule/schedule.h), which nvcc does not
 * see. */
#define RF_KERNEL_CAST_NONE 0
#define RF_KERNEL_CAST_F32_BF16 1
#define RF_KERNEL_CAST_BF16_F32 3

/* Conversion of a unit: none, or a cast of one or RF_CAST_ITEMS elements. */
#define RF_CAST_ITEMS 4
#define RF_SAME(unit) (unit)
RF_PATTERN_FN rf_unit4 rf_widen1(rf_unit2 in)
{
    return (rf_unit4)in << 16;
}
RF_PATTERN_FN rf_unit8 rf_narrow4(rf_unit16 in)
{
    return rf_f32_to_bf16((uint32_t)in.low) |
           (uint64_t)rf_f32_to_bf16((uint32_t)(in.low >> 32)) << 16 |
           (uint64_t)rf_f32_to_bf16((uint32_t)in.high) << 32 |
           (uint64_t)rf_f32_to_bf16((uint32_t)(in.high >> 32)) << 48;
}
RF_PATTERN_FN rf_unit16 rf_widen4(rf_unit8 in)
{
    rf_unit16 out;
    out.low = (in & 0xFFFF) << 16 | (in >> 16 & 0xFFFF) << 48;
    out.high = (in >> 32 & 0xFFFF) << 16 | in >> 48 << 48;
    return out;
}

#ifdef __CUDACC__
#define RF_UNROLL _Pragma("unroll")
#else
#define RF_UNROLL
#endif

/* Thread `thread`'s part of copying one tile, each unit through `become`. */
#define RF_DEFINE_COPY_TILE(name, in, out, become)                             \
    RF_PATTERN_FN void name(const struct rf_copy_args *args,                   \
                            const struct rf_tile *tile, uint32_t thread)       \
    {                                                                          \
        const uint32_t lane = thread & ((1u << tile->group_log2) - 1);         \
        const uint32_t step_log2 = RF_TILE_LOG2 - tile->group_log2;            \
        const uint32_t step = 1u << step_log2;                                 \
        const uint32_t row = thread >> tile->group_log2;                       \
        const unsigned char *from = args->bases.at[tile->src_base] +           \
                                    tile->src + row * tile->src_pitch +        \
                                    lane * sizeof(in);                         \
        unsigned char *to = args->bases.at[tile->dst_base] + tile->dst +       \
                            row * tile->dst_pitch + lane * sizeof(out);        \
        const uint64_t src_step = step * tile->src_pitch;                      \
        const uint64_t dst_step = step * tile->dst_pitch;                      \
        const uint32_t rows = lane < tile->units && row < tile->rows           \
                                  ? (tile->rows - row + step - 1) >> step_log2 \
                                  : 0;                                         \
        in held[RF_TILE_LOADS(sizeof(in))];                                    \
        RF_UNROLL for (uint32_t i = 0; i < RF_TILE_LOADS(sizeof(in)); i++)     \
        {                                                                      \
            if (i < rows) {                                                    \
                held[i] = *(const in *)(const void *)from;                     \
                from += src_step;                                              \
            }                                                                  \
        }                                                                      \
        RF_UNROLL for (uint32_t i = 0; i < RF_TILE_LOADS(sizeof(in)); i++)     \
        {                                                                      \
            if (i < rows) {                                                    \
                *(out *)(void *)to = become(held[i]);                          \
                to += dst_step;                                                \
            }                                                                  \
        }                                                                      \
    }
RF_DEFINE_COPY_TILE(rf_copy_tile16, rf_unit16, rf_unit16, RF_SAME)
RF_DEFINE_COPY_TILE(rf_copy_tile8, rf_unit8, rf_unit8, RF_SAME)
RF_DEFINE_COPY_TILE(rf_copy_tile4, rf_unit4, rf_unit4, RF_SAME)
RF_DEFINE_COPY_TILE(rf_copy_tile2, rf_unit2, rf_unit2, RF_SAME)
RF_DEFINE_COPY_TILE(rf_copy_tile1, rf_unit1, rf_unit1, RF_SAME)
RF_DEFINE_COPY_TILE(rf_narrow_tile4, rf_unit16, rf_unit8, rf_narrow4)
RF_DEFINE_COPY_TILE(rf_narrow_tile1, rf_unit4, rf_unit2, rf_f32_to_bf16)
RF_DEFINE_COPY_TILE(rf_widen_tile4, rf_unit8, rf_unit16, rf_widen4)
RF_DEFINE_COPY_TILE(rf_widen_tile1, rf_unit2, rf_unit4, rf_widen1)

/* Eight content bytes at any byte offset of a tensor. */
RF_PATTERN_FN uint64_t rf_content_at(uint64_t seed, uint64_t round,
                                     uint64_t offset)
{
    const uint32_t shift = (uint32_t)(offset & 7) * 8;
    uint64_t word = rf_pattern_word(seed, round, offset >> 3) >> shift;
    if (shift != 0) {
        word |= rf_pattern_word(seed, round, (offset >> 3) + 1) << (64 - shift);
    }
    return word;
}

/* The expected value of `bytes` (1, 2, 4 or 8) bytes of a row at `column`,
 * after the cast. With a cast the unit is one element of the arena. */
RF_PATTERN_FN uint64_t rf_content_unit(const struct rf_content_slice *s,
                                       uint64_t round, uint32_t cast,
                                       uint64_t row, uint64_t column)
{
    const uint64_t base = s->logical_offset + row * s->logical_pitch;
    if (cast == RF_KERNEL_CAST_F32_BF16) {
        return rf_f32_to_bf16(
            (uint32_t)rf_content_at(s->seed, round, base + column * 2));
    }
    if (cast == RF_KERNEL_CAST_BF16_F32) {
        return (rf_content_at(s->seed, round, base + column / 2) & 0xFFFF)
               << 16;
    }
    return rf_content_at(s->seed, round, base + column);
}

#define RF_DEFINE_CONTENT_TILE(N)                                              \
    RF_PATTERN_FN void rf_fill_tile##N(const struct rf_content_args *args,     \
                                       const struct rf_tile *tile,             \
                                       uint32_t thread)                        \
    {                                                                          \
        const struct rf_content_slice *s = &args->slices[tile->slice];         \
        const uint32_t lane = thread & ((1u << tile->group_log2) - 1);         \
        const uint32_t step = (uint32_t)RF_TILE_THREADS >> tile->group_log2;   \
        const uint64_t column = tile->column + (uint64_t)lane * (N);           \
        if (lane >= tile->units) {                                             \
            return;                                                            \
        }                                                                      \
        for (uint32_t r = thread >> tile->group_log2; r < tile->rows;          \
             r += step) {                                                      \
            const uint64_t row = tile->row + r;                                \
            *(rf_unit##N *)(void *)(args->arena + s->arena_offset +            \
                                    row * s->arena_pitch + column) =           \
                (rf_unit##N)rf_content_unit(s, args->round, args->cast, row,   \
                                            column);                           \
        }                                                                      \
    }                                                                          \
    RF_PATTERN_FN void rf_verify_tile##N(const struct rf_content_args *args,   \
                                         const struct rf_tile *tile,           \
                                         uint32_t thread)                      \
    {                                                                          \
        const struct rf_content_slice *s = &args->slices[tile->slice];         \
        const uint32_t lane = thread & ((1u << tile->group_log2) - 1);         \
        const uint32_t step = (uint32_t)RF_TILE_THREADS >> tile->group_log2;   \
        const uint64_t column = tile->column + (uint64_t)lane * (N);           \
        if (lane >= tile->units) {                                             \
            return;                                                            \
        }                                                                      \
        for (uint32_t r = thread >> tile->group_log2; r < tile->rows;          \
             r += step) {                                                      \
            const uint64_t row = tile->row + r;                                \
            const rf_unit##N found =                                           \
                *(const rf_unit##N *)(const void *)(args->arena +              \
                                                    s->arena_offset +          \
                                                    row * s->arena_pitch +     \
                                                    column);                   \
            const rf_unit##N wanted = (rf_unit##N)rf_content_unit(             \
                s, args->round, args->cast, row, column);                      \
            if (found != wanted) {                                             \
                rf_report_mismatch(args->counts, tile->slice,                  \
                                   row * s->width + column,                    \
                                   (uint64_t)found ^ (uint64_t)wanted, (N));   \
            }                                                                  \
        }                                                                      \
    }

/* Counts the differing bytes of a unit and keeps the first. */
RF_PATTERN_FN void rf_report_mismatch(struct rf_verify_counts *counts,
                                      uint32_t slice, uint64_t at,
                                      uint64_t difference, int bytes)
{
    unsigned long long wrong = 0, first = ~0ull;
    for (int i = 0; i < bytes; i++) {
        if (((difference >> (8 * i)) & 0xFF) != 0) {
            if (wrong == 0) {
                first = (unsigned long long)slice << 40 |
                        (at + (unsigned long long)i);
            }
            wrong++;
        }
    }
    RF_ATOMIC_ADD(&counts->mismatched_bytes, wrong);
    RF_ATOMIC_MIN(&counts->first, first);
}

RF_DEFINE_CONTENT_TILE(8)
RF_DEFINE_CONTENT_TILE(4)
RF_DEFINE_CONTENT_TILE(2)
RF_DEFINE_CONTENT_TILE(1)

#include "cuda/device/kernels_fp8.h"

/*
 * Every kernel by name, its argument struct and its tile function: one thread's
 * part of a tile, or the whole tile if its threads depend on one another. The
 * device build makes a __global__ of each, the fake runtime a table.
 */
#define RF_THREAD_KERNELS(X)                                                   \
    X(rf_kernel_copy16, rf_copy_args, rf_copy_tile16)                          \
    X(rf_kernel_copy8, rf_copy_args, rf_copy_tile8)                            \
    X(rf_kernel_copy4, rf_copy_args, rf_copy_tile4)                            \
    X(rf_kernel_copy2, rf_copy_args, rf_copy_tile2)                            \
    X(rf_kernel_copy1, rf_copy_args, rf_copy_tile1)                            \
    X(rf_kernel_narrow4, rf_copy_args, rf_narrow_tile4)                        \
    X(rf_kernel_narrow1, rf_copy_args, rf_narrow_tile1)                        \
    X(rf_kernel_widen4, rf_copy_args, rf_widen_tile4)                          \
    X(rf_kernel_widen1, rf_copy_args, rf_widen_tile1)                          \
    X(rf_kernel_fill8, rf_content_args, rf_fill_tile8)                         \
    X(rf_kernel_fill4, rf_content_args, rf_fill_tile4)                         \
    X(rf_kernel_fill2, rf_content_args, rf_fill_tile2)                         \
    X(rf_kernel_fill1, rf_content_args, rf_fill_tile1)                         \
    X(rf_kernel_verify8, rf_content_args, rf_verify_tile8)                     \
    X(rf_kernel_verify4, rf_content_args, rf_verify_tile4)                     \
    X(rf_kernel_verify2, rf_content_args, rf_verify_tile2)                     \
    X(rf_kernel_verify1, rf_content_args, rf_verify_tile1)
#define RF_BLOCK_KERNELS(X) X(rf_kernel_fp8, rf_fp8_args, rf_fp8_tile)
#define RF_KERNELS(X) RF_THREAD_KERNELS(X) RF_BLOCK_KERNELS(X)

#endif

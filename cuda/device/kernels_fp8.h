/*
 * bfloat16 matrices to fp8 e4m3 with a scale for each 128×128 block: format
 * fp8_block128 (worker/content/convert.h). Part of kernels.h.
 *
 * A tile is one 128×128 block, smaller at the edges: row and column are the
 * block's first, rows and units (columns) its size. A row has 16 lanes of eight
 * columns, so a thread has four rows. It loads them once, 16 bytes at a time if
 * the addresses allow, and keeps them. The block's threads agree on the largest
 * magnitude and scale what they hold. Magnitudes compare as bits, because they
 * order like integers, so the order of the threads does not matter.
 *
 * The threads of a block depend on one another, so the code is in phases
 * (RF_EACH_THREAD): a device runs a phase on all threads at once, a CPU on one
 * after the other. RF_KEPT and RF_AT are a thread's values between phases:
 * registers on a device, an array of all threads on a CPU.
 */
#ifndef RF_CUDA_DEVICE_KERNELS_FP8_H
#define RF_CUDA_DEVICE_KERNELS_FP8_H

struct rf_fp8_slice {
    const uint16_t *src; /* bfloat16 */
    uint8_t *dst;
    float *scale_inv;              /* [block row][block column] */
    uint64_t src_pitch, dst_pitch; /* elements a row */
    uint64_t block_columns;
    /* whether eight elements can be moved at a time */
    uint32_t src_wide, dst_wide;
};

struct rf_fp8_args {
    const struct rf_fp8_slice *slices;
    const struct rf_tile *tiles;
    uint32_t n_tiles;
};

#define RF_FP8_WIDE 8
#define RF_FP8_LANES (RF_FP8_BLOCK / RF_FP8_WIDE)
#define RF_FP8_STEP (RF_TILE_THREADS / RF_FP8_LANES)
#define RF_FP8_ROWS (RF_FP8_BLOCK / RF_FP8_STEP)
#define RF_WARP 32
#define RF_WARPS (RF_TILE_THREADS / RF_WARP)

#ifdef __CUDACC__
#define RF_BLOCK_FN static __device__ __forceinline__
#define RF_BLOCK_SHARED __shared__
#define RF_KEPT 1
#define RF_AT(thread) 0
#define RF_EACH_THREAD(thread)                                                 \
    if (const uint32_t thread = threadIdx.x; thread < RF_TILE_THREADS)
#define RF_BLOCK_SYNC() __syncthreads()
#define RF_SHUFFLE_XOR(kept, thread, mask)                                     \
    __shfl_xor_sync(0xFFFFFFFFu, (kept)[0], (mask))
/* nvcc cannot tell the memory space of an address that comes from a table. */
#define RF_IN_GLOBAL(p) __builtin_assume(__isGlobal(p))
#define RF_FLOAT_DIVIDE(a, b) __fdiv_rn((a), (b))
#define RF_FLOAT_MULTIPLY(a, b) __fmul_rn((a), (b))
#else
#define RF_BLOCK_FN static inline __attribute__((unused))
#define RF_BLOCK_SHARED
#define RF_KEPT RF_TILE_THREADS
#define RF_AT(thread) (thread)
#define RF_EACH_THREAD(thread)                                                 \
    for (uint32_t thread = 0; thread < RF_TILE_THREADS; thread++)
#define RF_BLOCK_SYNC()
#define RF_SHUFFLE_XOR(kept, thread, mask) ((kept)[(thread) ^ (mask)])
#define RF_IN_GLOBAL(p) (void)(p)
#define RF_FLOAT_DIVIDE(a, b) ((a) / (b))
#define RF_FLOAT_MULTIPLY(a, b) ((a) * (b))
#endif

/* The first of a thread's eight columns in the tile, and how many of the eight
 * the tile has. */
RF_PATTERN_FN uint32_t rf_fp8_column(uint32_t thread)
{
    return thread % RF_FP8_LANES * RF_FP8_WIDE;
}

RF_PATTERN_FN uint32_t rf_fp8_columns(const struct rf_tile *tile,
                                      uint32_t thread)
{
    const uint32_t column = rf_fp8_column(thread);
    const uint32_t left = tile->units > column ? tile->units - column : 0;
    return left < RF_FP8_WIDE ? left : RF_FP8_WIDE;
}

/* The bits of element `i` of eight. */
RF_PATTERN_FN uint32_t rf_fp8_element(const rf_unit16 *eight, uint32_t i)
{
    return (uint32_t)((i < 4 ? eight->low : eight->high) >> (16 * (i % 4))) &
           0xFFFFu;
}

RF_PATTERN_FN rf_unit16 rf_fp8_none(void)
{
    const rf_unit16 zeros = {0, 0};
    return zeros;
}

/* Loads `n` elements one by one: fewer than eight, or not aligned for one load.
 * The others are zeros. */
RF_PATTERN_FN rf_unit16 rf_fp8_gather(const uint16_t *from, uint32_t n)
{
    rf_unit16 eight = rf_fp8_none();
    RF_UNROLL for (uint32_t i = 0; i < RF_FP8_WIDE; i++)
    {
        const uint64_t element = i < n ? from[i] : 0;
        if (i < 4) {
            eight.low |= element << (16 * i);
        } else {
            eight.high |= element << (16 * (i - 4));
        }
    }
    return eight;
}

/* Loads the elements that `thread` scales; zeros outside the tile. */
RF_PATTERN_FN void rf_fp8_load(const struct rf_fp8_slice *s,
                               const struct rf_tile *tile, uint32_t thread,
                               rf_unit16 held[RF_FP8_ROWS])
{
    const uint32_t n = rf_fp8_columns(tile, thread);
    const uint32_t row = thread / RF_FP8_LANES;
    const uint64_t step = RF_FP8_STEP * s->src_pitch;
    const uint16_t *from = s->src + (tile->row + row) * s->src_pitch +
                           tile->column + rf_fp8_column(thread);
    const uint32_t rows = tile->rows > row ? tile->rows - row : 0;
    RF_IN_GLOBAL(from);
    if (s->src_wide && n == RF_FP8_WIDE) {
        RF_UNROLL for (uint32_t i = 0; i < RF_FP8_ROWS; i++)
        {
            held[i] = rf_fp8_none();
            if (i * RF_FP8_STEP < rows) {
                held[i] = *(const rf_unit16 *)(const void *)(from + i * step);
            }
        }
    } else {
        RF_UNROLL for (uint32_t i = 0; i < RF_FP8_ROWS; i++)
        {
            held[i] =
                rf_fp8_gather(from + i * step, i * RF_FP8_STEP < rows ? n : 0);
        }
    }
}

/* The largest magnitude in `held`, as the bits of a float. */
RF_PATTERN_FN unsigned rf_fp8_amax(const rf_unit16 held[RF_FP8_ROWS])
{
    uint32_t amax = 0;
    RF_UNROLL for (uint32_t i = 0; i < RF_FP8_ROWS * RF_FP8_WIDE; i++)
    {
        const uint32_t bits =
            rf_fp8_element(&held[i / RF_FP8_WIDE], i % RF_FP8_WIDE) & 0x7FFFu;
        amax = bits > amax ? bits : amax;
    }
    return amax << 16;
}

/* Replaces each thread's value by the largest of `lanes` threads, a power of
 * two up to a warp. */
RF_BLOCK_FN void rf_warp_max(unsigned value[RF_KEPT], uint32_t lanes)
{
    unsigned other[RF_KEPT];
    RF_UNROLL for (uint32_t mask = lanes / 2; mask > 0; mask /= 2)
    {
        RF_EACH_THREAD (thread) {
            other[RF_AT(thread)] = RF_SHUFFLE_XOR(value, thread, mask);
        }
        RF_EACH_THREAD (thread) {
            if (other[RF_AT(thread)] > value[RF_AT(thread)]) {
                value[RF_AT(thread)] = other[RF_AT(thread)];
            }
        }
    }
}

/* The same for the whole block. */
RF_BLOCK_FN void rf_block_max(unsigned value[RF_KEPT])
{
    RF_BLOCK_SHARED unsigned of_warp[RF_WARPS];
    rf_warp_max(value, RF_WARP);
    RF_BLOCK_SYNC(); /* all have read the values of the tile before */
    RF_EACH_THREAD (thread) {
        if (thread % RF_WARP == 0) {
            of_warp[thread / RF_WARP] = value[RF_AT(thread)];
        }
    }
    RF_BLOCK_SYNC();
    RF_EACH_THREAD (thread) {
        /* cppcheck-suppress uninitvar ; the first phase wrote it */
        value[RF_AT(thread)] = of_warp[thread % RF_WARPS];
    }
    rf_warp_max(value, RF_WARPS);
}

/* Two scaled elements in fp8, the first in the low byte. */
RF_PATTERN_FN uint32_t rf_fp8_pair(uint32_t first, uint32_t second, float scale)
{
    const float low = RF_FLOAT_MULTIPLY(rf_bf16_to_f32((uint16_t)first), scale);
    const float high =
        RF_FLOAT_MULTIPLY(rf_bf16_to_f32((uint16_t)second), scale);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(pair)
        : "f"(high), "f"(low));
    return pair;
#else
    return (uint32_t)rf_f32_to_e4m3(low) | (uint32_t)rf_f32_to_e4m3(high) << 8;
#endif
}

RF_PATTERN_FN uint64_t rf_fp8_eight(const rf_unit16 *eight, float scale)
{
    uint64_t out = 0;
    RF_UNROLL for (uint32_t i = 0; i < RF_FP8_WIDE; i += 2)
    {
        out |= (uint64_t)rf_fp8_pair(rf_fp8_element(eight, i),
                                     rf_fp8_element(eight, i + 1), scale)
               << (8 * i);
    }
    return out;
}

/* Scales and stores the elements of `thread`, and the block's scale. */
RF_PATTERN_FN void rf_fp8_store(const struct rf_fp8_slice *s,
                                const struct rf_tile *tile, uint32_t thread,
                                const rf_unit16 held[RF_FP8_ROWS],
                                unsigned amax_bits)
{
    const uint32_t n = rf_fp8_columns(tile, thread);
    const uint32_t row = thread / RF_FP8_LANES;
    const uint64_t step = RF_FP8_STEP * s->dst_pitch;
    uint8_t *to = s->dst + (tile->row + row) * s->dst_pitch + tile->column +
                  rf_fp8_column(thread);
    const int wide = s->dst_wide && n == RF_FP8_WIDE;
    float *scale_inv = s->scale_inv +
                       tile->row / RF_FP8_BLOCK * s->block_columns +
                       tile->column / RF_FP8_BLOCK;
    union rf_float_bits amax;
    float scale;
    RF_IN_GLOBAL(to);
    RF_IN_GLOBAL(scale_inv);
    amax.bits = amax_bits;
    amax.value =
        amax.value < RF_FP8_AMAX_FLOOR ? RF_FP8_AMAX_FLOOR : amax.value;
    scale = RF_FLOAT_DIVIDE(amax.value, RF_FP8_MAX);
    if (thread == 0) {
        *scale_inv = scale;
    }
    scale = RF_FLOAT_DIVIDE(1.0f, scale);
    RF_UNROLL for (uint32_t i = 0; i < RF_FP8_ROWS; i++)
    {
        if (row + i * RF_FP8_STEP < tile->rows) {
            const uint64_t out = rf_fp8_eight(&held[i], scale);
            if (wide) {
                *(uint64_t *)(void *)to = out;
            } else {
                for (uint32_t c = 0; c < n; c++) {
                    to[c] = (uint8_t)(out >> (8 * c));
                }
            }
        }
        to += step;
    }
}

/* One tile, all threads of the block. */
RF_BLOCK_FN void rf_fp8_tile(const struct rf_fp8_args *args,
                             const struct rf_tile *tile)
{
    const struct rf_fp8_slice *s = &args->slices[tile->slice];
    rf_unit16 held[RF_KEPT][RF_FP8_ROWS];
    unsigned amax[RF_KEPT];
    RF_EACH_THREAD (thread) {
        rf_fp8_load(s, tile, thread, held[RF_AT(thread)]);
        amax[RF_AT(thread)] = rf_fp8_amax(held[RF_AT(thread)]);
    }
    rf_block_max(amax);
    RF_EACH_THREAD (thread) {
        rf_fp8_store(s, tile, thread, held[RF_AT(thread)], amax[RF_AT(thread)]);
    }
}

#endif

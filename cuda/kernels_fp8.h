/*
 * bfloat16 matrices to fp8 e4m3 with a scale for each 128×128 block, formula
 * "amax_448" of common/fp8.h. Part of kernels.h, in two kernels because a block
 * of threads cannot know a maximum before all its threads have looked: the
 * first finds each block's largest magnitude (as bits: magnitudes order like
 * integers, so the order of the threads does not matter), the second scales.
 *
 * A tile is one 128×128 block, less at the edges: row and column are the
 * block's first, rows and units (columns) its size. group_log2 is 7: a group of
 * threads has a lane for each column.
 */
#ifndef RF_CUDA_KERNELS_FP8_H
#define RF_CUDA_KERNELS_FP8_H

struct rf_fp8_slice {
    const uint16_t *src; /* bfloat16 */
    uint8_t *dst;
    float *scale_inv; /* [block row][block column] */
    unsigned *amax;   /* the same shape, zero at the start: float bits */
    uint64_t src_pitch, dst_pitch; /* elements a row */
    uint64_t block_columns;
};

struct rf_fp8_args {
    const struct rf_fp8_slice *slices;
    const struct rf_tile *tiles;
    uint32_t n_tiles;
};

#ifdef __CUDACC__
#define RF_FLOAT_DIVIDE(a, b) __fdiv_rn((a), (b))
#define RF_FLOAT_MULTIPLY(a, b) __fmul_rn((a), (b))
#else
#define RF_FLOAT_DIVIDE(a, b) ((a) / (b))
#define RF_FLOAT_MULTIPLY(a, b) ((a) * (b))
#endif

RF_PATTERN_FN uint64_t rf_fp8_block_index(const struct rf_fp8_slice *s,
                                          const struct rf_tile *tile)
{
    return tile->row / RF_FP8_BLOCK * s->block_columns +
           tile->column / RF_FP8_BLOCK;
}

RF_PATTERN_FN void rf_fp8_amax_tile(const struct rf_fp8_args *args,
                                    const struct rf_tile *tile, uint32_t thread)
{
    const struct rf_fp8_slice *s = &args->slices[tile->slice];
    const uint32_t lane = thread & (RF_FP8_BLOCK - 1);
    unsigned amax = 0;
    if (lane < tile->units) {
        for (uint32_t r = thread / RF_FP8_BLOCK; r < tile->rows;
             r += RF_TILE_THREADS / RF_FP8_BLOCK) {
            const unsigned bits =
                s->src[(tile->row + r) * s->src_pitch + tile->column + lane] &
                0x7FFFu;
            amax = bits << 16 > amax ? bits << 16 : amax;
        }
    }
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 800
    amax = __reduce_max_sync(0xFFFFFFFFu, amax);
    if ((thread & 31) != 0) {
        return;
    }
#endif
#endif
    RF_ATOMIC_MAX(&s->amax[rf_fp8_block_index(s, tile)], amax);
}

RF_PATTERN_FN void rf_fp8_cast_tile(const struct rf_fp8_args *args,
                                    const struct rf_tile *tile, uint32_t thread)
{
    const struct rf_fp8_slice *s = &args->slices[tile->slice];
    const uint64_t block = rf_fp8_block_index(s, tile);
    const uint32_t lane = thread & (RF_FP8_BLOCK - 1);
    union rf_float_bits amax;
    float scale;
    amax.bits = s->amax[block];
    amax.value =
        amax.value < RF_FP8_AMAX_FLOOR ? RF_FP8_AMAX_FLOOR : amax.value;
    scale = RF_FLOAT_DIVIDE(RF_FP8_MAX, amax.value);
    if (thread == 0) {
        s->scale_inv[block] = RF_FLOAT_DIVIDE(amax.value, RF_FP8_MAX);
    }
    if (lane >= tile->units) {
        return;
    }
    for (uint32_t r = thread / RF_FP8_BLOCK; r < tile->rows;
         r += RF_TILE_THREADS / RF_FP8_BLOCK) {
        const uint64_t row = tile->row + r, column = tile->column + lane;
        s->dst[row * s->dst_pitch + column] = rf_f32_to_e4m3(RF_FLOAT_MULTIPLY(
            rf_bf16_to_f32(s->src[row * s->src_pitch + column]), scale));
    }
}

#endif

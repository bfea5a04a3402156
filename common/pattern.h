/*
 * The formula for the content of every weight: one header compiled by the C
 * compiler and by nvcc, so that processor and device agree to the bit.
 *
 * A logical tensor is a byte stream over its row-major byte offset in its own
 * dtype. Word k (bytes 8k…8k+7, little endian) is
 *     mix64((tensor_seed ^ iteration·C1) + k·C2)
 * so any shard can regenerate exactly its part, no two tensors, places or
 * iterations look alike, and there is no period. Bit 14 of every 2-byte lane is
 * then cleared, which keeps bfloat16, float16 and the high half of float32
 * finite (an exponent of all ones cannot occur), so casts are exact functions.
 */
#ifndef RF_COMMON_PATTERN_H
#define RF_COMMON_PATTERN_H

#include <stdint.h>

#ifdef __CUDACC__
#define RF_PATTERN_FN static __host__ __device__ __forceinline__
#else
#define RF_PATTERN_FN static inline __attribute__((unused))
#endif

#define RF_MIX64_FIRST 0xBF58476D1CE4E5B9ull
#define RF_MIX64_SECOND 0x94D049BB133111EBull

/* Finaliser of SplitMix64 (Steele, Lea, Flood 2014). A bijection on 64 bits. */
RF_PATTERN_FN uint64_t rf_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * RF_MIX64_FIRST;
    z = (z ^ (z >> 27)) * RF_MIX64_SECOND;
    return z ^ (z >> 31);
}

/* Seed of one logical tensor: the family's index in the model and the layer
 * and expert index inside the family. */
RF_PATTERN_FN uint64_t rf_pattern_seed(uint64_t family, uint64_t layer,
                                       uint64_t expert)
{
    return rf_mix64(rf_mix64(rf_mix64(family + 1) ^ (layer + 1)) ^
                    (expert + 1));
}

#define RF_PATTERN_STEP 0x9E3779B97F4A7C15ull
#define RF_PATTERN_MASK 0xBFFFBFFFBFFFBFFFull

/* The input of the mixer for word k; word k + 1 adds RF_PATTERN_STEP. */
RF_PATTERN_FN uint64_t rf_pattern_state(uint64_t seed, uint64_t iteration,
                                        uint64_t k)
{
    return (seed ^ (iteration * 0xD1B54A32D192ED03ull)) + k * RF_PATTERN_STEP;
}

/* The eight content bytes at byte offset 8·k of the tensor in `iteration`. */
RF_PATTERN_FN uint64_t rf_pattern_word(uint64_t seed, uint64_t iteration,
                                       uint64_t k)
{
    return rf_mix64(rf_pattern_state(seed, iteration, k)) & RF_PATTERN_MASK;
}

/* The content byte at byte offset `at`. */
RF_PATTERN_FN uint8_t rf_pattern_byte(uint64_t seed, uint64_t iteration,
                                      uint64_t at)
{
    return (uint8_t)(rf_pattern_word(seed, iteration, at >> 3) >>
                     (8 * (at & 7)));
}

/* The byte that fills destinations before `iteration`; differs between
 * consecutive iterations. */
RF_PATTERN_FN uint8_t rf_poison_byte(uint64_t iteration)
{
    return (uint8_t)(0xA5 ^ (iteration & 0x0F));
}

/* float32 bits to bfloat16 bits, round to nearest even; a NaN becomes quiet and
 * keeps its sign and the upper bits of its payload. */
RF_PATTERN_FN uint16_t rf_f32_to_bf16(uint32_t bits)
{
    if ((bits & 0x7FFFFFFF) > 0x7F800000) {
        return (uint16_t)((bits >> 16) | 0x40);
    }
    return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

#endif

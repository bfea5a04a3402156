/*
 * Conversion against an oracle of its own: tables of all e4m3 and e2m1 numbers,
 * searched for the nearest, and scales by frexp() and ldexp(). Products and
 * quotients that a format defines in single precision are float here too.
 */
#include "worker/content/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/unit/unit.h"
#include "worker/content/convert_loops.h"

#define ALL 65536u

static const struct rf_quant_format *format_at(int i)
{
    return &rf_quant_formats[i];
}

static float value_of(uint16_t bfloat16)
{
    const uint32_t bits = (uint32_t)bfloat16 << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* --- The oracle ------------------------------------------------------------ */

static double e4m3_of_code(unsigned code)
{
    return code < 8 ? ldexp(code, -9)
                    : ldexp(8 + code % 8, (int)(code / 8) - 10);
}

static double e2m1_of_code(unsigned code)
{
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return values[code];
}

/* The code below `n` whose value is nearest to |x|, of two the even one, with
 * the sign as `sign`. Codes ascend. */
static uint8_t nearest(double (*of_code)(unsigned), unsigned n, float x,
                       uint8_t sign)
{
    const double want = fabs((double)x);
    unsigned low = 0, high = n - 1;
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        *(of_code(middle) <= want ? &low : &high) = middle;
    }
    const double below = want - of_code(low), above = of_code(high) - want;
    const unsigned code =
        below < above || (below == above && low % 2 == 0) ? low : high;
    return (uint8_t)(code | (signbit(x) ? sign : 0));
}

static uint8_t e4m3(float x)
{
    return nearest(e4m3_of_code, 127, x, 0x80);
}

/* The least k with 2^k from x on, -127 for smaller ones. */
static int power_above(float x)
{
    int exponent = 0;
    const double fraction = frexp((double)x, &exponent);
    const int k = fraction == 0.5 ? exponent - 1 : exponent;
    return x == 0 || k < -127 ? -127 : k;
}

/* Options of blocks of fp8. */
static const struct options {
    float eps;
    bool divides;
} plain = {1e-4f, false};

/* A block's scale as stored, and how its elements are scaled. */
struct block {
    uint8_t scale[4];
    float factor, divisor;
};

static struct block block_of(enum rf_quant id, float amax, float tensor,
                             const struct options *options)
{
    struct block block = {.factor = 1, .divisor = 1};
    float scale = fmaxf(amax, options->eps) / 448.0f;
    switch (id) {
    case RF_FP8_TENSOR:
        block.factor = 1.0f / (fmaxf(tensor, 1e-12f) / 448.0f);
        break;
    case RF_MXFP8: {
        const int k = power_above(amax * (float)(1.0 / 448.0));
        block.scale[0] = (uint8_t)(k + 127);
        block.factor = (float)ldexp(1, -k);
        break;
    }
    case RF_NVFP4: {
        const float wide = 2688.0f / tensor;
        const float encode = tensor == 0 ? 1.0f : fminf(wide, FLT_MAX);
        const float sixth = 1.0f / 6.0f;
        block.scale[0] = e4m3(amax * (encode * sixth));
        const float decode = (float)e4m3_of_code(block.scale[0]);
        const float both = decode * (1.0f / encode);
        block.factor = both == 0 ? FLT_MAX : fminf(1.0f / both, FLT_MAX);
        break;
    }
    default:
        if (id == RF_FP8_BLOCK128_UE8M0) {
            scale = (float)ldexp(1, power_above(scale));
        }
        memcpy(block.scale, &scale, sizeof(scale));
        if (options->divides) {
            block.divisor = scale;
        } else {
            block.factor = 1.0f / scale;
        }
    }
    return block;
}

static float tensor_scale(enum rf_quant id, float amax)
{
    return id != RF_NVFP4 ? fmaxf(amax, 1e-12f) / 448.0f
           : amax == 0    ? 1.0f
                          : 1.0f / fminf(2688.0f / amax, FLT_MAX);
}

/* --- Comparison ------------------------------------------------------------ */

struct matrix {
    const uint16_t *at;
    uint64_t pitch, rows, columns; /* elements */
};

static float amax_of(const struct matrix *m, uint64_t top, uint64_t left,
                     uint64_t rows, uint64_t columns)
{
    float amax = 0;
    for (uint64_t r = top; r < RF_MIN(top + rows, m->rows); r++) {
        for (uint64_t c = left; c < RF_MIN(left + columns, m->columns); c++) {
            amax = fmaxf(amax, fabsf(value_of(m->at[r * m->pitch + c])));
        }
    }
    return amax;
}

static void expect_value(const struct rf_quant_format *format,
                         const uint8_t *values, uint64_t i, float scaled)
{
    uint8_t found = values[i], wanted = 0;
    if (format->id == RF_NVFP4) {
        found = values[i / 2] >> (i % 2 != 0 ? 4 : 0) & 15;
        wanted = nearest(e2m1_of_code, 8, scaled, 8);
    } else {
        wanted = e4m3(scaled);
    }
    ck_assert_msg(found == wanted, "%s, element %llu, %.9g: %02x, not %02x",
                  format->name, (unsigned long long)i, (double)scaled, found,
                  wanted);
}

/* Every value and scale of a matrix, converted into `values` and `scales`. */
static void expect_converted(const struct rf_quant_format *format,
                             const struct matrix *m, float tensor,
                             const struct options *options,
                             const uint8_t *values, const uint8_t *scales)
{
    const bool blocks = format->id != RF_FP8_TENSOR;
    const uint64_t down = blocks ? format->rows : m->rows;
    const uint64_t wide = blocks ? format->columns : m->columns;
    const uint32_t item = rf_dtype_bytes(format->parts[1].dtype);
    const uint64_t across = rf_div_up(m->columns, wide);
    for (uint64_t b = 0; b < rf_div_up(m->rows, down) * across; b++) {
        const uint64_t top = b / across * down, left = b % across * wide;
        const struct block block = block_of(
            format->id, amax_of(m, top, left, down, wide), tensor, options);
        if (blocks) {
            ck_assert_mem_eq(scales + b * item, block.scale, item);
        }
        for (uint64_t r = top; r < RF_MIN(top + down, m->rows); r++) {
            for (uint64_t c = left; c < RF_MIN(left + wide, m->columns); c++) {
                expect_value(format, values, r * m->columns + c,
                             value_of(m->at[r * m->pitch + c]) * block.factor /
                                 block.divisor);
            }
        }
    }
}

static struct rf_convert_rows rows_of(const struct matrix *m, uint8_t *values,
                                      uint8_t *scales, float tensor)
{
    return (struct rf_convert_rows){.src = (const uint8_t *)m->at,
                                    .pitch = 2 * m->pitch,
                                    .rows = m->rows,
                                    .columns = m->columns,
                                    .values = values,
                                    .scales = scales,
                                    .amax = tensor};
}

#define LINE_BYTES 64u

static uint8_t *new_lines(size_t bytes)
{
    return aligned_alloc(LINE_BYTES,
                         rf_align_up(bytes + LINE_BYTES, LINE_BYTES));
}

/* Converts as one tensor and compares. Values begin on a line, from where loops
 * stream them, or so many bytes beside one. */
static void check_at(const struct rf_quant_format *format,
                     const struct matrix *m, const struct options *options,
                     size_t beside)
{
    const size_t bytes = (size_t)(m->rows * m->columns);
    AUTO_FREE uint8_t *lines = new_lines(bytes), *scales = malloc(4 * bytes);
    uint8_t *values = lines + beside;
    struct rf_convert_rows rows = rows_of(m, values, scales, 0);
    const float tensor = rf_convert_amax(&rows);
    ck_assert_float_eq(tensor, amax_of(m, 0, 0, m->rows, m->columns));
    rows.amax = tensor;
    rows.eps = options != &plain ? options->eps : 0;
    rows.divides = options->divides;
    ck_assert(rf_convert_run(format, &rows));
    expect_converted(format, m, tensor, options, values, scales);
    if (rf_quant_has_tensor_scale(format)) {
        ck_assert_float_eq(rf_convert_tensor_scale(format, tensor),
                           tensor_scale(format->id, tensor));
    }
}

static void check_options(const struct rf_quant_format *format,
                          const struct matrix *m, const struct options *options)
{
    check_at(format, m, options, 0);
}

static void check_matrix(const struct rf_quant_format *format,
                         const struct matrix *m)
{
    check_options(format, m, &plain);
}

/* --- Tests ----------------------------------------------------------------- */

LIMIT(120)

/* Of zeros, denormal numbers, both sides of the least amax and of powers of two
 * times 448, and the largest. */
static const uint16_t edges[] = {
    0x0000, 0x0001, 0x0008, 0x007F, 0x0080, 0x2B8C, 0x2B8D, 0x358D, 0x38D1,
    0x38D2, 0x3A80, 0x3C23, 0x3EAB, 0x3F00, 0x3F7F, 0x3F80, 0x3F81, 0x3FE0,
    0x3FE1, 0x4380, 0x43DF, 0x43E0, 0x43E1, 0x43E8, 0x4780, 0x7E80, 0x7F7F,
};

/* All bit patterns; those above the edge become the edge, with their sign. */
static void check_every_bfloat16(const struct rf_quant_format *format,
                                 const struct options *options)
{
    AUTO_FREE uint16_t *x = malloc(ALL * sizeof(*x));
    for (size_t e = 0; e < RF_ARRAY_SIZE(edges); e++) {
        /* blocks of 128 × 128 and rows of blocks have 16,384 patterns each */
        const struct matrix m = {x, 512, 128, 512};
        for (uint32_t i = 0; i < ALL; i++) {
            const uint16_t most = RF_MIN((uint16_t)(i & 0x7FFF), edges[e]);
            x[i] = (uint16_t)(most | (i & 0x8000));
        }
        check_options(format, &m, options);
    }
}

LOOP_TEST(test_every_bfloat16_under_every_edge, RF_QUANTS)
{
    check_every_bfloat16(format_at(_i), &plain);
}

/* All magnitudes up to an edge beside it in their blocks, which any tensor of a
 * larger edge may have. */
LOOP_TEST(test_every_bfloat16_beside_every_edge, RF_ARRAY_SIZE(edges))
{
    AUTO_FREE uint16_t *x = malloc(ALL * sizeof(*x));
    AUTO_FREE uint8_t *values = malloc(ALL), *scales = malloc(ALL);
    const struct matrix m = {x, 512, 128, 512};
    for (uint32_t odd = 0; odd < 2; odd++) {
        for (uint32_t i = 0; i < ALL; i++) {
            const uint16_t most = RF_MIN((uint16_t)(i & 0x7FFF), edges[_i]);
            x[i] = i % 16 == odd ? edges[_i] : (uint16_t)(most | (i & 0x8000));
        }
        check_matrix(format_at(RF_MXFP8), &m);
        for (size_t e = (size_t)_i; e < RF_ARRAY_SIZE(edges); e++) {
            const float tensor = value_of(edges[e]);
            const struct rf_convert_rows rows =
                rows_of(&m, values, scales, tensor);
            ck_assert(rf_convert_run(format_at(RF_NVFP4), &rows));
            expect_converted(format_at(RF_NVFP4), &m, tensor, &plain, values,
                             scales);
        }
    }
}

/* The forms of other libraries, named in convert.h, and the bounds of eps. */
LOOP_TEST(test_every_bfloat16_with_options_of_blocks, 10)
{
    static const struct options options[] = {
        {1e-10f, false}, {0x1.1ap-40f, true}, {1e-4f, true},
        {1e-30f, true},  {1, false},
    };
    check_every_bfloat16(
        format_at(_i < 5 ? RF_FP8_BLOCK128 : RF_FP8_BLOCK128_UE8M0),
        &options[_i % 5]);
}

/* Blocks of different amax beside each other, from the smallest to the
 * largest. */
LOOP_TEST(test_blocks_of_a_matrix_are_scaled_one_by_one, RF_QUANTS)
{
    AUTO_FREE uint16_t *x = malloc(ALL * sizeof(*x));
    const struct matrix m = {x, 1024, 64, 1024};
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t block = i % 1024 / 16 + i / 1024 * 64;
        const uint32_t most = block * 8 % 0x7F80;
        x[i] = (uint16_t)(i % 16 == 3 ? most : i * 2654435761u % (most + 1));
        x[i] |= (uint16_t)(i * 40503u & 0x8000);
    }
    check_matrix(format_at(_i), &m);
}

LOOP_TEST(test_edges_of_matrices_are_as_if_padded, RF_QUANTS)
{
    static const uint64_t sizes[][2] = {{1, 1},     {129, 257}, {300, 100},
                                        {5, 1056},  {127, 640}, {256, 1152},
                                        {130, 4129}};
    for (size_t s = 0; s < RF_ARRAY_SIZE(sizes); s++) {
        struct matrix m = {NULL, 0, sizes[s][0], sizes[s][1]};
        uint16_t *x;
        if (format_at(_i)->whole_blocks) {
            m.columns = rf_align_up(m.columns, format_at(_i)->columns);
        }
        m.pitch = m.columns + 3;
        x = malloc((size_t)(m.rows * m.pitch) * sizeof(*x));
        for (uint64_t i = 0; i < m.rows * m.pitch; i++) {
            x[i] = (uint16_t)(rf_pattern_word(s, 7, i) & 0xBFFF);
            x[i] = i % m.pitch < m.columns ? x[i] : 0x7F80; /* not read */
        }
        m.at = x;
        check_at(format_at(_i), &m, &plain, 0);
        check_at(format_at(_i), &m, &plain, 16);
        free(x);
    }
}

/* Rows in two halves give what they give together, cut at a block. */
LOOP_TEST(test_bands_of_rows_equal_the_whole, RF_QUANTS)
{
    const struct rf_quant_format *format = format_at(_i);
    AUTO_FREE uint16_t *x = malloc(ALL * sizeof(*x));
    AUTO_FREE uint8_t *values = malloc(ALL), *scales = calloc(4, ALL);
    struct matrix half = {x, 256, 128, 256};
    const struct matrix m = {x, 256, 256, 256};
    for (uint32_t i = 0; i < ALL; i++) {
        x[i] = (uint16_t)(i & 0xBFFF);
    }
    for (uint64_t h = 0; h < 2; h++) {
        const uint64_t item = rf_dtype_bytes(format->parts[1].dtype);
        const uint64_t n = 128 * 256;
        const uint64_t before =
            h * item * n / ((uint64_t)format->rows * format->columns);
        struct rf_convert_rows rows = rows_of(
            &half, values + h * n * (format->id == RF_NVFP4 ? 1 : 2) / 2,
            scales + before, 1.9921875f);
        half.at += n;
        ck_assert(rf_convert_run(format, &rows));
    }
    expect_converted(format, &m, 1.9921875f, &plain, values, scales);
}

/* Known answers: the input's first elements, all others zero, and the first
 * values and scale. */
static const struct {
    enum rf_quant format;
    uint16_t x[2];
    uint8_t values[2];
    float scale; /* as its byte in mxfp8 and nvfp4 */
} known[] = {
    {RF_FP8_BLOCK128, {0, 0x8000}, {0x00, 0x80}, 2.2321429e-07f},
    {RF_FP8_BLOCK128_UE8M0, {0, 0x8000}, {0x00, 0x80}, 0x1p-22f},
    {RF_MXFP8, {0, 0x8000}, {0x00, 0x80}, 0},
    {RF_NVFP4, {0, 0x8000}, {0x80, 0x00}, 0},
    {RF_FP8_TENSOR, {0, 0x8000}, {0x00, 0x80}, 1e-12f / 448},
    /* 9.9837780e-07 is far below the least amax of blocks */
    {RF_FP8_BLOCK128, {0x3586, 0}, {0x49, 0}, 2.2321429e-07f},
    {RF_MXFP8, {0x43E1, 0}, {0x76, 0}, 128},          /* 450 */
    {RF_MXFP8, {0x0001, 0}, {0x08, 0}, 0},            /* 2^-133 */
    {RF_MXFP8, {0x43E0, 0x4188}, {0x7E, 0x58}, 127},  /* 448, 17: a tie */
    {RF_NVFP4, {0x40C0, 0xBF00}, {0x97, 0x00}, 0x7E}, /* 6, -0.5 */
};

LOOP_TEST(test_known_answers, RF_ARRAY_SIZE(known))
{
    const struct rf_quant_format *format = format_at(known[_i].format);
    uint16_t x[128 * 128] = {known[_i].x[0], known[_i].x[1]};
    uint8_t values[128 * 128], scales[4 * 128 * 128];
    const struct matrix m = {x, 128, 128, 128};
    struct rf_convert_rows rows = rows_of(&m, values, scales, 0);
    float scale;
    rows.amax = rf_convert_amax(&rows);
    ck_assert(rf_convert_run(format, &rows));
    ck_assert_uint_eq(values[0], known[_i].values[0]);
    ck_assert_uint_eq(values[1], known[_i].values[1]);
    memcpy(&scale, scales, sizeof(scale));
    if (format->id == RF_FP8_TENSOR) {
        scale = rf_convert_tensor_scale(format, rows.amax);
    } else if (format->parts[1].dtype != RF_F32) {
        scale = scales[0];
    }
    ck_assert_float_eq(scale, known[_i].scale);
    if (format->id == RF_NVFP4) {
        ck_assert_float_eq(rf_convert_tensor_scale(format, rows.amax),
                           rows.amax > 0 ? 1.0f / (2688.0f / rows.amax) : 1.0f);
    }
}

/* Infinity and NaN of either sign, inside and at the edge of a matrix. */
LOOP_TEST(test_infinity_and_nan_are_refused_and_found, RF_QUANTS)
{
    static const uint16_t bad[] = {0x7F80, 0xFF80, 0x7F81, 0x7FC0, 0xFFFF};
    static const uint64_t at[][2] = {{0, 0}, {129, 0}, {77, 287}, {129, 287}};
    const struct rf_quant_format *format = format_at(_i);
    uint8_t values[130 * 288], scales[4 * 130 * 288];
    static uint16_t x[130 * 288];
    const struct matrix m = {x, 288, 130, 288};
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad) * RF_ARRAY_SIZE(at); i++) {
        const uint64_t *place = at[i % RF_ARRAY_SIZE(at)];
        uint16_t *element = &x[place[0] * 288 + place[1]];
        struct rf_convert_rows rows = rows_of(&m, values, scales, 1);
        uint64_t row = 0, column = 0;
        ck_assert(!rf_convert_not_finite(&rows, &row, &column));
        *element = bad[i / RF_ARRAY_SIZE(at)];
        ck_assert(!isfinite(rf_convert_amax(&rows)));
        ck_assert(rf_quant_has_tensor_scale(format) ||
                  !rf_convert_run(format, &rows));
        ck_assert(rf_convert_not_finite(&rows, &row, &column));
        ck_assert_uint_eq(row, place[0]);
        ck_assert_uint_eq(column, place[1]);
        *element = 0;
    }
}

/* What all of x becomes in groups, after its scales. */
static void convert_groups(rf_groups_fn *convert, const uint16_t *x,
                           float encode, uint8_t made[2 * ALL])
{
    memset(made, 0, 2 * ALL);
    ck_assert(convert((const uint8_t *)x, ALL / RF_CONVERT_GROUP, encode, made,
                      made + ALL));
}

/* All sets of instructions give the same, streamed or not. */
LOOP_TEST(test_loops_of_all_instructions_agree, 3)
{
    static const float factors[] = {1.0f, 1.9f, 0x1p-20f, 448.0f / 3.0f};
    AUTO_FREE uint16_t *x = malloc(ALL * sizeof(*x));
    AUTO_FREE uint8_t *out = new_lines(ALL), *quotients = new_lines(ALL);
    AUTO_FREE uint8_t *made = new_lines(2 * ALL), *wanted = malloc(2 * ALL);
    const struct rf_convert_loops *fastest = rf_convert_loops(0);
    const struct rf_convert_loops *loops = rf_convert_loops((size_t)_i);
    ck_assert(loops != NULL || _i > 0);
    for (size_t f = 0; loops != NULL && f < RF_ARRAY_SIZE(factors); f++) {
        struct rf_convert_lanes lanes = {{0}};
        float of_blocks[ALL / 1024];
        uint32_t amax[ALL / RF_CONVERT_STEP], most = 0, whole = 0;
        for (uint32_t i = 0; i < ALL; i++) {
            const float value = value_of((uint16_t)i) * factors[f];
            x[i] = fabsf(value) <= 448 ? (uint16_t)i : 0;
        }
        for (size_t b = 0; b < RF_ARRAY_SIZE(of_blocks); b++) {
            of_blocks[b] = factors[f];
        }
        loops->e4m3((const uint8_t *)x, RF_ARRAY_SIZE(of_blocks), 1024,
                    of_blocks, out);
        for (size_t b = 0; b < RF_ARRAY_SIZE(of_blocks); b++) {
            of_blocks[b] = 1.0f / factors[f];
        }
        loops->quotient((const uint8_t *)x, RF_ARRAY_SIZE(of_blocks), 1024,
                        of_blocks, quotients);
        convert_groups(loops->mxfp8, x, 6 * factors[f], made);
        convert_groups(fastest->mxfp8, x, 6 * factors[f], wanted);
        ck_assert_mem_eq(made, wanted, 2 * ALL);
        convert_groups(loops->nvfp4, x, 6 * factors[f], made);
        convert_groups(fastest->nvfp4, x, 6 * factors[f], wanted);
        ck_assert_mem_eq(made, wanted, 2 * ALL);
        loops->raise((const uint8_t *)x, 1, ALL, &lanes);
        loops->amax((const uint8_t *)&lanes, 1, &most);
        loops->amax((const uint8_t *)x, RF_ARRAY_SIZE(amax), amax);
        for (uint32_t i = 0; i < ALL; i++) {
            const uint16_t magnitude = x[i] & 0x7FFF;
            ck_assert_uint_eq(out[i], e4m3(value_of(x[i]) * factors[f]));
            ck_assert_uint_eq(quotients[i],
                              e4m3(value_of(x[i]) / (1.0f / factors[f])));
            ck_assert_uint_le(magnitude, amax[i / RF_CONVERT_STEP]);
            whole = RF_MAX(whole, (uint32_t)magnitude);
        }
        ck_assert_uint_eq(most, whole);
        for (uint32_t b = 0; b < RF_ARRAY_SIZE(amax); b++) {
            const uint16_t *block = &x[b * RF_CONVERT_STEP];
            bool found = false;
            for (uint32_t i = 0; i < RF_CONVERT_STEP; i++) {
                found |= (block[i] & 0x7FFF) == amax[b];
            }
            ck_assert(found);
        }
    }
}

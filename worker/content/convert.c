/*
 * Conversion. See convert.h.
 *
 * Rows are read in the order of memory, twice: in panels of a row of blocks, at
 * most PANEL columns wide, which the caches hold from one time to the other.
 */
#include "worker/content/convert.h"

#include <float.h>
#include <string.h>

#include "common/fp8.h"
#include "common/mem.h"
#include "transport/codec/strided_copy.h"
#include "worker/content/convert_loops.h"

#define PANEL                                                                  \
    2048           /* columns: two panels are a megabyte, which the second
                      cache holds */
#define CHUNK 1024 /* columns of a panel's row */
#define BLOCK 128
#define LINE_BYTES 64 /* of caches */
#define MAX_BLOCKS (PANEL / BLOCK)

/* --- fp8_block128 ---------------------------------------------------------- */

/* Rows and columns of a matrix that are converted together: whole blocks, or
 * part of the last one in each row. */
struct panel {
    uint64_t top, left;
    uint32_t n_rows, n_columns; /* 0: there is none */
    struct rf_convert_lanes lanes[MAX_BLOCKS];
    float scale[MAX_BLOCKS], factor[MAX_BLOCKS];
};

/* Values of a padded block. They begin on no line of the caches, from where
 * loops store past these: they are read at once. */
struct padded {
    _Alignas(LINE_BYTES) uint8_t skipped;
    uint8_t at[RF_CONVERT_GROUP];
};

struct fp8 {
    const struct rf_convert_rows *rows;
    const struct rf_convert_loops *loops;
    rf_e4m3_fn *e4m3;
    float eps;
    bool ue8m0; /* scales are powers of two */
};

static uint32_t blocks_of(const struct panel *panel)
{
    return (panel->n_columns + BLOCK - 1) / BLOCK;
}

/* Places the panel that begins at `top` and `left`, or else below. */
static void place(const struct rf_convert_rows *rows, uint64_t top,
                  uint64_t left, struct panel *out)
{
    if (left == rows->columns) {
        left = 0;
        top += BLOCK;
    }
    const uint64_t wide = rows->columns - left;
    out->top = top;
    out->left = left;
    out->n_rows = out->n_columns = 0;
    if (top >= rows->rows) {
        return;
    }
    out->n_rows = (uint32_t)RF_MIN(rows->rows - top, (uint64_t)BLOCK);
    out->n_columns = (uint32_t)(wide < BLOCK ? wide
                                             : RF_MIN(wide / BLOCK * BLOCK,
                                                      (uint64_t)PANEL));
    memset(out->lanes, 0, blocks_of(out) * sizeof(*out->lanes));
}

static const uint8_t *row_of(const struct fp8 *fp8, const struct panel *panel,
                             uint32_t r)
{
    return fp8->rows->src + (panel->top + r) * fp8->rows->pitch +
           2 * panel->left;
}

/* The last block of a row, padded with zeros. */
static void pad(const struct panel *panel, const uint8_t *src,
                uint8_t padded[2 * BLOCK])
{
    memset(padded, 0, sizeof(uint16_t) * BLOCK);
    memcpy(padded, src, 2 * (size_t)panel->n_columns);
}

/* Raises a panel's largest magnitudes by those of row `r`. */
static void scan_row(const struct fp8 *fp8, uint32_t r, struct panel *panel)
{
    const uint8_t *src = row_of(fp8, panel, r);
    uint8_t padded[2 * BLOCK];
    if (panel->n_columns < BLOCK) {
        pad(panel, src, padded);
        src = padded;
    }
    fp8->loops->raise(src, blocks_of(panel), BLOCK, panel->lanes);
}

/* Scales row `r` of a panel, and fetches that of the next one meanwhile. */
static void scale_row(const struct fp8 *fp8, uint32_t r,
                      const struct panel *panel, const struct panel *next)
{
    const uint8_t *src = row_of(fp8, panel, r);
    uint8_t padded[2 * BLOCK];
    struct padded out;
    uint8_t *to =
        fp8->rows->values + (panel->top + r) * fp8->rows->columns + panel->left;
    if (panel->n_columns < BLOCK) {
        pad(panel, src, padded);
        fp8->e4m3(padded, 1, BLOCK, panel->factor, out.at);
        memcpy(to, out.at, panel->n_columns);
        return;
    }
    for (uint32_t c = 0; c < panel->n_columns; c += CHUNK) {
        const uint32_t n = RF_MIN(panel->n_columns - c, (uint32_t)CHUNK);
        if (r < next->n_rows && c < next->n_columns) {
            const uint8_t *after = row_of(fp8, next, r) + sizeof(uint16_t) * c;
            for (uint32_t i = 0; i < 2 * n; i += LINE_BYTES) {
                __builtin_prefetch(after + i);
            }
        }
        fp8->e4m3(src + sizeof(uint16_t) * c, n / BLOCK, BLOCK,
                  panel->factor + c / BLOCK, to + c);
    }
}

/* Makes and stores the scales of a panel whose rows are scanned. */
static bool scale_panel(const struct fp8 *fp8, struct panel *panel)
{
    const uint64_t across = rf_div_up(fp8->rows->columns, BLOCK);
    const uint64_t at = panel->top / BLOCK * across + panel->left / BLOCK;
    const uint32_t n = blocks_of(panel);
    for (uint32_t b = 0; b < n; b++) {
        uint32_t bits = 0;
        fp8->loops->amax((const uint8_t *)&panel->lanes[b], 1, &bits);
        if (bits >= RF_CONVERT_NOT_FINITE) {
            return false;
        }
        const float amax = rf_bf16_to_f32((uint16_t)bits);
        const float scale = (amax > fp8->eps ? amax : fp8->eps) / RF_FP8_MAX;
        panel->scale[b] =
            fp8->ue8m0 ? rf_float_of_bits(rf_power_above(scale) << 23) : scale;
        panel->factor[b] =
            fp8->rows->divides ? panel->scale[b] : 1.0f / panel->scale[b];
    }
    memcpy(fp8->rows->scales + at * sizeof(float), panel->scale,
           n * sizeof(float));
    return true;
}

/* Scans each panel while the one before is scaled, row by row, so that the
 * memory works while the processor does. */
static bool convert_block128(const struct rf_convert_rows *rows, bool ue8m0)
{
    const struct rf_convert_loops *loops = rf_convert_loops(0);
    const struct fp8 fp8 = {
        .rows = rows,
        .loops = loops,
        .e4m3 = rows->divides ? loops->quotient : loops->e4m3,
        .eps = rows->eps > 0 ? rows->eps : RF_FP8_AMAX_FLOOR,
        .ue8m0 = ue8m0};
    struct panel panels[2];
    struct panel *now = &panels[0], *next = &panels[1];
    place(rows, 0, 0, now);
    for (uint32_t r = 0; r < now->n_rows; r++) {
        scan_row(&fp8, r, now);
    }
    while (now->n_rows > 0) {
        struct panel *before = now;
        place(rows, now->top, now->left + now->n_columns, next);
        if (!scale_panel(&fp8, now)) {
            return false;
        }
        for (uint32_t r = 0; r < RF_MAX(now->n_rows, next->n_rows); r++) {
            if (r < now->n_rows) {
                scale_row(&fp8, r, now, next);
            }
            if (r < next->n_rows) {
                scan_row(&fp8, r, next);
            }
        }
        now = next;
        next = before;
    }
    return true;
}

/* --- fp8_tensor ------------------------------------------------------------ */

static void convert_tensor(const struct rf_quant_format *format,
                           const struct rf_convert_rows *rows)
{
    const struct rf_convert_loops *loops = rf_convert_loops(0);
    const uint64_t whole = rows->columns / BLOCK * BLOCK;
    const uint64_t rest = rows->columns - whole;
    const float factor = 1.0f / rf_convert_tensor_scale(format, rows->amax);
    uint8_t x[2 * BLOCK] = {0};
    struct padded out;
    for (uint64_t r = 0; r < rows->rows; r++) {
        const uint8_t *src = rows->src + r * rows->pitch;
        uint8_t *to = rows->values + r * rows->columns;
        loops->e4m3(src, 1, (uint32_t)whole, &factor, to);
        if (rest > 0) {
            memcpy(x, src + 2 * whole, 2 * rest);
            loops->e4m3(x, 1, BLOCK, &factor, out.at);
            memcpy(to + whole, out.at, rest);
        }
    }
}

/* --- mxfp8 and nvfp4 ------------------------------------------------------- */

/* 2688 = 448 · 6, the largest values of e4m3 and e2m1. */
static float encode_scale(float amax)
{
    const float scale = amax > 0 ? 2688.0f / amax : 1.0f;
    return scale < FLT_MAX ? scale : FLT_MAX;
}

static bool convert_groups(const struct rf_quant_format *format,
                           const struct rf_convert_rows *rows)
{
    const struct rf_convert_loops *loops = rf_convert_loops(0);
    rf_groups_fn *convert =
        format->id == RF_MXFP8 ? loops->mxfp8 : loops->nvfp4;
    const uint32_t wide = format->columns, packed = format->parts[0].columns;
    const uint64_t whole = rows->columns / RF_CONVERT_GROUP * RF_CONVERT_GROUP;
    const uint64_t rest = rows->columns - whole;
    const float encode = encode_scale(rows->amax);
    uint8_t x[2 * RF_CONVERT_GROUP] = {0}, scales_of_x[RF_CONVERT_GROUP];
    struct padded out;
    bool finite = true;
    for (uint64_t r = 0; r < rows->rows && finite; r++) {
        const uint8_t *src = rows->src + r * rows->pitch;
        uint8_t *scales = rows->scales + r * rows->columns / wide;
        uint8_t *to = rows->values + r * rows->columns / packed;
        finite = convert(src, (uint32_t)(whole / RF_CONVERT_GROUP), encode,
                         scales, to);
        if (rest > 0) {
            memcpy(x, src + 2 * whole, 2 * rest);
            finite &= convert(x, 1, encode, scales_of_x, out.at);
            memcpy(scales + whole / wide, scales_of_x, rest / wide);
            memcpy(to + whole / packed, out.at, rest / packed);
        }
    }
    return finite;
}

/* --- Matrices -------------------------------------------------------------- */

bool rf_convert_run(const struct rf_quant_format *format,
                    const struct rf_convert_rows *rows)
{
    bool finite = true;
    switch (format->id) {
    case RF_FP8_TENSOR:
        convert_tensor(format, rows);
        break;
    case RF_MXFP8:
    case RF_NVFP4:
        finite = convert_groups(format, rows);
        break;
    default:
        finite = convert_block128(rows, format->id == RF_FP8_BLOCK128_UE8M0);
    }
    rf_copy_fence();
    return finite;
}

float rf_convert_tensor_scale(const struct rf_quant_format *format, float amax)
{
    return format->id == RF_NVFP4
               ? 1.0f / encode_scale(amax)
               : (amax > 1e-12f ? amax : 1e-12f) / RF_FP8_MAX;
}

float rf_convert_amax(const struct rf_convert_rows *rows)
{
    const struct rf_convert_loops *loops = rf_convert_loops(0);
    const uint64_t whole = rows->columns / RF_CONVERT_STEP * RF_CONVERT_STEP;
    const uint64_t rest = rows->columns - whole;
    struct rf_convert_lanes lanes = {{0}}, x = {{0}};
    uint32_t most = 0;
    for (uint64_t r = 0; r < rows->rows; r++) {
        const uint8_t *src = rows->src + r * rows->pitch;
        loops->raise(src, 1, (uint32_t)whole, &lanes);
        memcpy(&x, src + 2 * whole, 2 * rest);
        loops->raise((const uint8_t *)&x, 1, RF_CONVERT_STEP, &lanes);
    }
    loops->amax((const uint8_t *)&lanes, 1, &most);
    return rf_bf16_to_f32((uint16_t)most);
}

static uint16_t load(const uint8_t *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof(bits));
    return bits;
}

bool rf_convert_not_finite(const struct rf_convert_rows *rows, uint64_t *row,
                           uint64_t *column)
{
    for (uint64_t r = 0; r < rows->rows; r++) {
        const uint8_t *src = rows->src + r * rows->pitch;
        for (uint64_t c = 0; c < rows->columns; c++) {
            if ((load(src + 2 * c) & 0x7FFF) >= RF_CONVERT_NOT_FINITE) {
                *row = r;
                *column = c;
                return true;
            }
        }
    }
    return false;
}

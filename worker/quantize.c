/*
 * Block-scaled fp8 on the processor. See quantize.h.
 *
 * Verification does not look at what arrived: it starts from the content that
 * the iteration must have, so a byte that was wrong before quantising is found
 * even where rounding hides it in the result, by the comparison of what
 * arrived.
 */
#include "worker/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fp8.h"
#include "common/mem.h"
#include "common/pattern.h"
#include "worker/content.h"

struct quantizer {
    struct rf_quantizer_env env;
    struct source {
        const uint8_t *at; /* first element of each part */
        uint64_t pitch;    /* bytes from row to row */
    } * sources;
};

static uint16_t load(const uint8_t *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof(bits));
    return bits;
}

/* One block, at most 128×128; `pitch` in bytes. Magnitudes order like their
 * bits; a NaN makes the whole block NaN, as on devices. */
static void quantize_block(const uint8_t *src, uint64_t pitch, uint64_t rows,
                           uint64_t columns, uint8_t *dst, uint64_t dst_pitch,
                           float *scale_inv)
{
    union rf_float_bits amax = {.value = RF_FP8_AMAX_FLOOR};
    float scale;
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            const uint32_t bits = load(src + r * pitch + 2 * c) & 0x7FFFu;
            amax.bits = RF_MAX(amax.bits, bits << 16);
        }
    }
    scale = RF_FP8_MAX / amax.value;
    *scale_inv = amax.value / RF_FP8_MAX;
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            dst[r * dst_pitch + c] = rf_f32_to_e4m3(
                rf_bf16_to_f32(load(src + r * pitch + 2 * c)) * scale);
        }
    }
}

/* One row of blocks. */
static void quantize_band(const uint8_t *src, uint64_t pitch, uint64_t rows,
                          uint64_t columns, uint8_t *dst, float *scales)
{
    for (uint64_t c = 0; c < columns; c += RF_FP8_BLOCK) {
        quantize_block(src + 2 * c, pitch, rows,
                       RF_MIN(columns - c, (uint64_t)RF_FP8_BLOCK), dst + c,
                       columns, scales++);
    }
}

enum rf_status rf_quantizer_create(const struct rf_quantizer_env *env,
                                   void **out, struct rf_err *err)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(env->plan, RF_INFER, env->rank);
    struct quantizer *quantizer = rf_xcalloc(1, sizeof(*quantizer));
    (void)err;
    quantizer->env = *env;
    quantizer->sources = rf_xcalloc(env->what->n, sizeof(*quantizer->sources));
    for (size_t i = 0; i < env->what->n; i++) {
        const struct rf_quantize_part *part = &env->what->parts[i];
        const struct rf_piece *piece = &layout->pieces[part->piece];
        uint64_t stride[RF_BOX_DIMS];
        const uint8_t *base = rf_quantize_base(env, piece, stride);
        quantizer->sources[i].at =
            base + rf_quantize_offset(piece, part, stride);
        quantizer->sources[i].pitch = stride[2];
    }
    *out = quantizer;
    return RF_OK;
}

enum rf_status rf_quantizer_run(void *opaque, struct rf_err *err)
{
    const struct quantizer *quantizer = opaque;
    uint8_t *result = quantizer->env.result->base;
    (void)err;
    for (size_t i = 0; i < quantizer->env.what->n; i++) {
        const struct rf_quantize_part *part = &quantizer->env.what->parts[i];
        const struct source *source = &quantizer->sources[i];
        const uint64_t across = rf_quantize_blocks(part->columns);
        float *scales = (float *)(void *)(result + part->scales);
        for (uint64_t r = 0; r < part->rows; r += RF_FP8_BLOCK) {
            quantize_band(source->at + r * source->pitch, source->pitch,
                          RF_MIN(part->rows - r, (uint64_t)RF_FP8_BLOCK),
                          part->columns,
                          result + part->values + r * part->columns, scales);
            scales += across;
        }
    }
    return RF_OK;
}

void rf_quantizer_destroy(void *opaque)
{
    struct quantizer *quantizer = opaque;
    if (quantizer != NULL) {
        free(quantizer->sources);
        free(quantizer);
    }
}

/* --- Verification --- */

struct band {
    const struct rf_plan *plan;
    const struct rf_piece *piece;
    const struct rf_quantize_part *part;
    uint64_t row, rows; /* of the part */
    uint8_t *content;   /* bfloat16, rows × columns */
    uint8_t *values, *found_values;
    float *scales, *found_scales;
};

static void note(const struct band *band, bool scale, uint64_t at,
                 const void *expected, const void *found, uint32_t item,
                 struct rf_verify_result *out)
{
    const struct rf_quantize_part *part = band->part;
    const uint64_t across = rf_quantize_blocks(part->columns);
    const uint64_t row = part->row + band->row;
    out->family = band->piece->family;
    out->layer_index = part->layer_index;
    out->expert = part->expert;
    out->item_bytes = item;
    out->suffix = scale ? " (scale_inv)" : " (fp8)";
    if (scale) {
        out->index[0] = row / RF_FP8_BLOCK;
        out->index[1] = part->column / RF_FP8_BLOCK + at % across;
    } else {
        out->index[0] = row + at / part->columns;
        out->index[1] = part->column + at % part->columns;
    }
    memcpy(out->expected, expected, item);
    memcpy(out->found, found, item);
}

static void compare(const struct band *band, bool scale, const void *expected,
                    const void *found, uint64_t n, uint32_t item,
                    struct rf_verify_result *out)
{
    const uint8_t *want = expected, *have = found;
    if (memcmp(want, have, n * item) == 0) {
        return;
    }
    for (uint64_t i = 0; i < n * item; i++) {
        if (want[i] != have[i] && out->mismatched_bytes++ == 0) {
            const uint64_t at = i / item;
            note(band, scale, at, want + at * item, have + at * item, item,
                 out);
        }
    }
}

static enum rf_status
verify_band(const struct band *band, struct rf_content *content,
            const struct rf_memory_ops *memory, const struct rf_arena *result,
            struct rf_verify_result *out, struct rf_err *err)
{
    const struct rf_quantize_part *part = band->part;
    const struct rf_family *family =
        &band->plan->model->families[band->piece->family];
    const uint64_t across = rf_quantize_blocks(part->columns);
    const uint64_t n = band->rows * part->columns;
    enum rf_status status = RF_OK;
    for (uint64_t r = 0; status == RF_OK && r < band->rows; r++) {
        status = rf_content_read(
            content, band->piece->family, part->layer_index, part->expert,
            (part->row + band->row + r) * family->shape[1] + part->column,
            part->columns, band->content + 2 * r * part->columns, err);
    }
    if (status == RF_OK) {
        quantize_band(band->content, 2 * part->columns, band->rows,
                      part->columns, band->values, band->scales);
        status = memory->read(result, part->values + band->row * part->columns,
                              n, band->found_values, err);
    }
    if (status == RF_OK) {
        status = memory->read(result,
                              part->scales + band->row / RF_FP8_BLOCK * across *
                                                 sizeof(float),
                              across * sizeof(float), band->found_scales, err);
    }
    if (status == RF_OK) {
        compare(band, false, band->values, band->found_values, n, 1, out);
        compare(band, true, band->scales, band->found_scales, across,
                sizeof(float), out);
    }
    return status;
}

/* What lies between values and scales must still hold the poison. */
static enum rf_status verify_gap(const struct rf_memory_ops *memory,
                                 const struct rf_arena *result, uint64_t from,
                                 uint64_t to, uint8_t poison,
                                 struct rf_verify_result *out,
                                 struct rf_err *err)
{
    uint8_t found[256];
    enum rf_status status = RF_OK;
    for (uint64_t n; status == RF_OK && from < to; from += n) {
        n = RF_MIN(to - from, (uint64_t)sizeof(found));
        status = memory->read(result, from, n, found, err);
        for (uint64_t i = 0; status == RF_OK && i < n; i++) {
            if (found[i] == poison || out->mismatched_bytes++ > 0) {
                continue;
            }
            out->family = RF_NONE;
            out->index[0] = from + i;
            out->item_bytes = 1;
            out->expected[0] = poison;
            out->found[0] = found[i];
        }
    }
    return status;
}

/* Parts lie one after another, each with its values before its scales. */
static enum rf_status verify_gaps(const struct rf_quantize *what,
                                  const struct rf_memory_ops *memory,
                                  const struct rf_arena *result, uint8_t poison,
                                  struct rf_verify_result *out,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < what->n && status == RF_OK; i++) {
        const struct rf_quantize_part *part = &what->parts[i];
        const uint64_t next =
            i + 1 < what->n ? what->parts[i + 1].values : what->bytes;
        status = verify_gap(memory, result,
                            part->values + part->rows * part->columns,
                            part->scales, poison, out, err);
        if (status == RF_OK) {
            status = verify_gap(memory, result,
                                part->scales +
                                    rf_quantize_blocks(part->rows) *
                                        rf_quantize_blocks(part->columns) *
                                        sizeof(float),
                                next, poison, out, err);
        }
    }
    return status;
}

enum rf_status rf_quantize_verify(const struct rf_plan *plan, uint32_t rank,
                                  uint64_t iteration,
                                  const struct rf_quantize *what,
                                  const struct rf_memory_ops *memory,
                                  const struct rf_arena *result,
                                  struct rf_verify_result *out,
                                  struct rf_err *err)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, rank);
    struct rf_content *content = NULL;
    struct band band = {.plan = plan};
    uint64_t widest = 0;
    enum rf_status status =
        rf_content_create(plan, RF_INFER, iteration, &content, err);
    if (status != RF_OK) {
        return status;
    }
    for (size_t i = 0; i < what->n; i++) {
        widest = RF_MAX(widest, what->parts[i].columns);
    }
    band.content = rf_xmalloc(widest * 2 * RF_FP8_BLOCK);
    band.values = rf_xmalloc(widest * RF_FP8_BLOCK);
    band.found_values = rf_xmalloc(widest * RF_FP8_BLOCK);
    band.scales = rf_xcalloc(rf_quantize_blocks(widest), sizeof(float));
    band.found_scales = rf_xcalloc(rf_quantize_blocks(widest), sizeof(float));
    for (size_t i = 0; status == RF_OK && i < what->n; i++) {
        band.part = &what->parts[i];
        band.piece = &layout->pieces[band.part->piece];
        for (uint64_t r = 0; status == RF_OK && r < band.part->rows;
             r += RF_FP8_BLOCK) {
            band.row = r;
            band.rows = RF_MIN(band.part->rows - r, (uint64_t)RF_FP8_BLOCK);
            status = verify_band(&band, content, memory, result, out, err);
        }
    }
    if (status == RF_OK) {
        status = verify_gaps(what, memory, result, rf_poison_byte(iteration),
                             out, err);
    }
    free(band.content);
    free(band.values);
    free(band.found_values);
    free(band.scales);
    free(band.found_scales);
    rf_content_destroy(content);
    return status;
}

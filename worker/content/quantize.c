/*
 * Block-scaled fp8 on the processor. See quantize.h.
 *
 * Verification does not use what arrived: it quantises the content that the
 * iteration must have. A byte that was wrong before quantisation, but is hidden
 * by rounding, is found by the separate comparison of what arrived.
 */
#include "worker/content/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/fp8.h"
#include "common/mem.h"
#include "worker/content/content.h"

struct quantizer {
    const struct rf_quantize *what;
    uint8_t *result;
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

/* At most 128×128 elements; pitches in bytes. */
struct scaled_block {
    const uint8_t *src;
    uint8_t *dst;
    uint64_t src_pitch, dst_pitch, rows, columns;
};

/* Magnitudes compare like their bits. A NaN makes the whole block NaN, as on
 * devices. */
static void quantize_block(const struct scaled_block *block, float *scale_inv)
{
    union rf_float_bits amax = {.value = RF_FP8_AMAX_FLOOR};
    float scale;
    for (uint64_t r = 0; r < block->rows; r++) {
        const uint8_t *src = block->src + r * block->src_pitch;
        for (uint64_t c = 0; c < block->columns; c++) {
            const uint32_t bits = load(src + 2 * c) & 0x7FFFu;
            amax.bits = RF_MAX(amax.bits, bits << 16);
        }
    }
    scale = RF_FP8_MAX / amax.value;
    *scale_inv = amax.value / RF_FP8_MAX;
    for (uint64_t r = 0; r < block->rows; r++) {
        const uint8_t *src = block->src + r * block->src_pitch;
        uint8_t *dst = block->dst + r * block->dst_pitch;
        for (uint64_t c = 0; c < block->columns; c++) {
            dst[c] = rf_f32_to_e4m3(rf_bf16_to_f32(load(src + 2 * c)) * scale);
        }
    }
}

/* Quantises one row of blocks. */
static void quantize_band(const uint8_t *src, uint64_t pitch, uint64_t rows,
                          uint64_t columns, uint8_t *dst, float *scales)
{
    for (uint64_t c = 0; c < columns; c += RF_FP8_BLOCK) {
        const struct scaled_block block = {
            .src = src + 2 * c,
            .dst = dst + c,
            .src_pitch = pitch,
            .dst_pitch = columns,
            .rows = rows,
            .columns = RF_MIN(columns - c, (uint64_t)RF_FP8_BLOCK)};
        quantize_block(&block, scales++);
    }
}

enum rf_status rf_quantizer_create(const struct rf_content_job *arrived,
                                   const struct rf_quantize *what,
                                   const struct rf_arena *result, void **out,
                                   struct rf_err *err)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(arrived->plan, RF_INFER, arrived->rank);
    struct quantizer *quantizer = rf_xcalloc(1, sizeof(*quantizer));
    (void)err;
    quantizer->what = what;
    quantizer->result = result->base;
    quantizer->sources = rf_xcalloc(what->n, sizeof(*quantizer->sources));
    for (size_t i = 0; i < what->n; i++) {
        const struct rf_quantize_part *part = &what->parts[i];
        const struct rf_piece *piece = &layout->pieces[part->piece];
        const struct rf_place place = rf_place_of(arrived, piece);
        quantizer->sources[i].at =
            place.base + rf_quantize_offset(piece, part, place.stride);
        quantizer->sources[i].pitch = place.stride[2];
    }
    *out = quantizer;
    return RF_OK;
}

enum rf_status rf_quantizer_run(void *opaque, int64_t *ns, struct rf_err *err)
{
    const struct quantizer *quantizer = opaque;
    const int64_t before = rf_now_ns();
    uint8_t *result = quantizer->result;
    (void)err;
    for (size_t i = 0; i < quantizer->what->n; i++) {
        const struct rf_quantize_part *part = &quantizer->what->parts[i];
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
    *ns = rf_now_ns() - before;
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

struct block_verification {
    const struct rf_content_job *job;
    const struct rf_memory_ops *memory;
    struct rf_content *content;
    struct rf_verify_result *out;
};

struct band {
    const struct rf_piece *piece;
    const struct rf_quantize_part *part;
    uint64_t row, rows; /* of the part */
    uint8_t *content;   /* bfloat16, rows × columns */
    uint8_t *values, *found_values;
    float *scales, *found_scales;
};

/* Values or scales of a band. */
struct items {
    bool scales;
    const void *expected, *found;
    uint64_t n;
    uint32_t bytes; /* of each */
};

static void note(const struct band *band, const struct items *items,
                 uint64_t at, struct rf_verify_result *out)
{
    const struct rf_quantize_part *part = band->part;
    const uint64_t across = rf_quantize_blocks(part->columns);
    const uint64_t row = part->row + band->row;
    out->family = band->piece->family;
    out->layer_index = part->layer_index;
    out->expert = part->expert;
    out->item_bytes = items->bytes;
    out->suffix = items->scales ? " (scale_inv)" : " (fp8)";
    if (items->scales) {
        out->index[0] = row / RF_FP8_BLOCK;
        out->index[1] = part->column / RF_FP8_BLOCK + at % across;
    } else {
        out->index[0] = row + at / part->columns;
        out->index[1] = part->column + at % part->columns;
    }
    memcpy(out->expected, (const uint8_t *)items->expected + at * items->bytes,
           items->bytes);
    memcpy(out->found, (const uint8_t *)items->found + at * items->bytes,
           items->bytes);
}

static void compare(const struct band *band, const struct items *items,
                    struct rf_verify_result *out)
{
    const uint8_t *want = items->expected, *have = items->found;
    if (memcmp(want, have, items->n * items->bytes) == 0) {
        return;
    }
    for (uint64_t i = 0; i < items->n * items->bytes; i++) {
        if (want[i] != have[i] && out->mismatched_bytes++ == 0) {
            note(band, items, i / items->bytes, out);
        }
    }
}

/* Makes the band's expected values and scales. */
static enum rf_status make_band(const struct block_verification *v,
                                const struct band *band, struct rf_err *err)
{
    const struct rf_quantize_part *part = band->part;
    const struct rf_family *family =
        &v->job->plan->model->families[band->piece->family];
    struct rf_content_span span = {.family = band->piece->family,
                                   .layer_index = part->layer_index,
                                   .expert = part->expert,
                                   .count = part->columns,
                                   .end = (part->row + band->row + band->rows) *
                                          family->shape[1]};
    for (uint64_t r = 0; r < band->rows; r++) {
        span.first =
            (part->row + band->row + r) * family->shape[1] + part->column;
        RF_TRY(rf_content_read(v->content, &span,
                               band->content + 2 * r * part->columns, err));
    }
    quantize_band(band->content, 2 * part->columns, band->rows, part->columns,
                  band->values, band->scales);
    return RF_OK;
}

static enum rf_status verify_band(const struct block_verification *v,
                                  const struct band *band, struct rf_err *err)
{
    const struct rf_quantize_part *part = band->part;
    const uint64_t across = rf_quantize_blocks(part->columns);
    const struct items values = {false, band->values, band->found_values,
                                 band->rows * part->columns, 1};
    const struct items scales = {true, band->scales, band->found_scales, across,
                                 sizeof(float)};
    enum rf_status status = make_band(v, band, err);
    RF_THEN(status, v->memory->read(v->job->arena,
                                    part->values + band->row * part->columns,
                                    values.n, band->found_values, err));
    RF_THEN(status,
            v->memory->read(v->job->arena,
                            part->scales + band->row / RF_FP8_BLOCK * across *
                                               sizeof(float),
                            across * sizeof(float), band->found_scales, err));
    if (status == RF_OK) {
        compare(band, &values, v->out);
        compare(band, &scales, v->out);
    }
    return status;
}

/* Gaps between values and scales must still hold the poison. Parts are
 * consecutive, each with its values before its scales. */
static enum rf_status verify_gaps(const struct block_verification *v,
                                  const struct rf_quantize *what,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < what->n && status == RF_OK; i++) {
        const struct rf_quantize_part *part = &what->parts[i];
        const uint64_t next =
            i + 1 < what->n ? what->parts[i + 1].values : what->bytes;
        const uint64_t scales =
            rf_quantize_blocks(part->rows) * rf_quantize_blocks(part->columns);
        status = rf_verify_poison(v->memory, v->job,
                                  part->values + part->rows * part->columns,
                                  part->scales, v->out, err);
        RF_THEN(status, rf_verify_poison(v->memory, v->job,
                                         part->scales + scales * sizeof(float),
                                         next, v->out, err));
    }
    return status;
}

static enum rf_status verify_part(const struct block_verification *v,
                                  struct band *band, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (uint64_t r = 0; status == RF_OK && r < band->part->rows;
         r += RF_FP8_BLOCK) {
        band->row = r;
        band->rows = RF_MIN(band->part->rows - r, (uint64_t)RF_FP8_BLOCK);
        status = verify_band(v, band, err);
    }
    return status;
}

enum rf_status rf_quantizer_verify(const struct rf_content_job *job,
                                   const struct rf_quantize *what,
                                   const struct rf_memory_ops *memory,
                                   struct rf_verify_result *out,
                                   struct rf_err *err)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(job->plan, RF_INFER, job->rank);
    struct block_verification v = {.job = job, .memory = memory, .out = out};
    struct band band = {.row = 0};
    uint64_t widest = 0;
    enum rf_status status = RF_OK;
    RF_TRY(rf_content_create(job, NULL, &v.content, err));
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
        status = verify_part(&v, &band, err);
    }
    RF_THEN(status, verify_gaps(&v, what, err));
    free(band.content);
    free(band.values);
    free(band.found_values);
    free(band.scales);
    free(band.found_scales);
    rf_content_destroy(v.content);
    return status;
}

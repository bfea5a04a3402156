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
#include "planner/layout/box.h"
#include "worker/content/content.h"

#define ROW RF_DIM_TENSOR /* dimensions of a matrix in its box */
#define COLUMN (RF_DIM_TENSOR + 1)

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
        const struct rf_piece *piece = &layout->pieces[what->sources[i]];
        const struct rf_place place = rf_place_of(arrived, piece);
        quantizer->sources[i].at =
            place.base + rf_box_offset(piece->box.start, 0, place.stride,
                                       what->result.pieces[2 * i].box.start);
        quantizer->sources[i].pitch = place.stride[RF_DIM_TENSOR];
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
        const struct rf_piece *values = &quantizer->what->result.pieces[2 * i];
        const struct rf_piece *scales = values + 1;
        const struct source *source = &quantizer->sources[i];
        const uint64_t rows = values->box.extent[ROW];
        const uint64_t columns = values->box.extent[COLUMN];
        float *scale = (float *)(void *)(result + scales->offset);
        for (uint64_t r = 0; r < rows; r += RF_FP8_BLOCK) {
            quantize_band(source->at + r * source->pitch, source->pitch,
                          RF_MIN(rows - r, (uint64_t)RF_FP8_BLOCK), columns,
                          result + values->offset + r * columns, scale);
            scale += scales->box.extent[COLUMN];
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

/* Up to 128 rows of a matrix. */
struct band {
    const struct rf_piece *pieces; /* of values and scales */
    uint64_t row, rows;            /* of the former */
    uint8_t *content;              /* bfloat16, rows × columns */
    uint8_t *values;
    float *scales;
    void *found; /* room for values or scales */
};

/* Rows of one of a matrix's pieces. */
struct items {
    const struct rf_piece *piece;
    uint64_t row, n; /* the first row, elements */
    uint32_t bytes;  /* of an element */
    const void *expected;
    const char *suffix;
};

static void note(const struct block_verification *v, const struct items *items,
                 uint64_t at, const uint8_t *found)
{
    const struct rf_box *box = &items->piece->box;
    struct rf_verify_result *out = v->out;
    out->family = items->piece->family % v->job->plan->model->n_families;
    out->layer_index = (uint32_t)box->start[RF_DIM_LAYER];
    out->expert = (uint32_t)box->start[RF_DIM_EXPERT];
    out->item_bytes = items->bytes;
    out->suffix = items->suffix;
    out->index[0] = box->start[ROW] + items->row + at / box->extent[COLUMN];
    out->index[1] = box->start[COLUMN] + at % box->extent[COLUMN];
    memcpy(out->expected, (const uint8_t *)items->expected + at * items->bytes,
           items->bytes);
    memcpy(out->found, found + at * items->bytes, items->bytes);
}

static enum rf_status compare(const struct block_verification *v,
                              const struct items *items, void *found,
                              struct rf_err *err)
{
    const uint8_t *want = items->expected, *have = found;
    RF_TRY(v->memory->read(v->job->arena,
                           items->piece->offset +
                               items->row * items->piece->stride[ROW],
                           items->n * items->bytes, found, err));
    if (memcmp(want, have, items->n * items->bytes) == 0) {
        return RF_OK;
    }
    for (uint64_t i = 0; i < items->n * items->bytes; i++) {
        if (want[i] != have[i] && v->out->mismatched_bytes++ == 0) {
            note(v, items, i / items->bytes, have);
        }
    }
    return RF_OK;
}

/* Makes the band's expected values and scales. */
static enum rf_status make_band(const struct block_verification *v,
                                const struct band *band, struct rf_err *err)
{
    const struct rf_piece *values = &band->pieces[0];
    const struct rf_box *box = &values->box;
    const uint64_t width =
        v->job->plan->model->families[values->family].shape[1];
    const uint64_t first = box->start[ROW] + band->row;
    struct rf_content_span span = {
        .family = values->family,
        .layer_index = (uint32_t)box->start[RF_DIM_LAYER],
        .expert = (uint32_t)box->start[RF_DIM_EXPERT],
        .count = box->extent[COLUMN],
        .end = (first + band->rows) * width};
    for (uint64_t r = 0; r < band->rows; r++) {
        span.first = (first + r) * width + box->start[COLUMN];
        RF_TRY(rf_content_read(v->content, &span,
                               band->content + 2 * r * span.count, err));
    }
    quantize_band(band->content, 2 * span.count, band->rows, span.count,
                  band->values, band->scales);
    return RF_OK;
}

static enum rf_status verify_band(const struct block_verification *v,
                                  const struct band *band, struct rf_err *err)
{
    const struct items values = {.piece = &band->pieces[0],
                                 .row = band->row,
                                 .n = band->rows *
                                      band->pieces[0].box.extent[COLUMN],
                                 .bytes = 1,
                                 .expected = band->values,
                                 .suffix = " (fp8)"};
    const struct items scales = {.piece = &band->pieces[1],
                                 .row = band->row / RF_FP8_BLOCK,
                                 .n = band->pieces[1].box.extent[COLUMN],
                                 .bytes = sizeof(float),
                                 .expected = band->scales,
                                 .suffix = " (scale_inv)"};
    enum rf_status status = make_band(v, band, err);
    RF_THEN(status, compare(v, &values, band->found, err));
    RF_THEN(status, compare(v, &scales, band->found, err));
    return status;
}

/* Gaps between pieces, which ascend, must still hold the poison. */
static enum rf_status verify_gaps(const struct block_verification *v,
                                  const struct rf_rank_layout *result,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < result->n_pieces && status == RF_OK; i++) {
        const struct rf_piece *piece = &result->pieces[i];
        status = rf_verify_poison(
            v->memory, v->job,
            piece->offset + piece->box.extent[ROW] * piece->stride[ROW],
            i + 1 < result->n_pieces ? piece[1].offset : result->arena_bytes,
            v->out, err);
    }
    return status;
}

static enum rf_status verify_matrix(const struct block_verification *v,
                                    struct band *band, struct rf_err *err)
{
    const uint64_t rows = band->pieces->box.extent[ROW];
    enum rf_status status = RF_OK;
    for (uint64_t r = 0; status == RF_OK && r < rows; r += RF_FP8_BLOCK) {
        band->row = r;
        band->rows = RF_MIN(rows - r, (uint64_t)RF_FP8_BLOCK);
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
    struct block_verification v = {.job = job, .memory = memory, .out = out};
    struct band band = {.row = 0};
    uint64_t widest = 0;
    enum rf_status status = RF_OK;
    RF_TRY(rf_content_create(job, NULL, &v.content, err));
    for (size_t i = 0; i < what->n; i++) {
        widest = RF_MAX(widest, what->result.pieces[2 * i].box.extent[COLUMN]);
    }
    band.content = rf_xmalloc(widest * 2 * RF_FP8_BLOCK);
    band.values = rf_xmalloc(widest * RF_FP8_BLOCK);
    band.scales = rf_xcalloc(rf_div_up(widest, RF_FP8_BLOCK), sizeof(float));
    band.found = rf_xmalloc(widest * RF_FP8_BLOCK);
    for (size_t i = 0; status == RF_OK && i < what->n; i++) {
        band.pieces = &what->result.pieces[2 * i];
        status = verify_matrix(&v, &band, err);
    }
    RF_THEN(status, verify_gaps(&v, &what->result, err));
    free(band.content);
    free(band.values);
    free(band.scales);
    free(band.found);
    rf_content_destroy(v.content);
    return status;
}

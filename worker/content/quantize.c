/*
 * Quantised weights on the processor. See quantize.h.
 *
 * Verification does not use what arrived: it quantises the content that the
 * iteration must have. A byte that was wrong before quantisation, but is hidden
 * by rounding, is found by the separate comparison of what arrived.
 */
#include "worker/content/quantize.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/layout/box.h"
#include "worker/content/content.h"
#include "worker/content/convert.h"

#define ROW RF_DIM_TENSOR /* dimensions of a matrix in its box */
#define COLUMN (RF_DIM_TENSOR + 1)
#define BAND UINT64_C(128) /* rows that are verified together; whole blocks */

struct quantizer {
    const struct rf_plan *plan;
    const struct rf_quant_format *format;
    const struct rf_quantize *what;
    uint8_t *result;
    struct source {
        const uint8_t *at; /* first element of each matrix */
        uint64_t pitch;    /* bytes from row to row */
    } * sources;
};

/* Whether a matrix has the tensor's scale beside those of blocks, or alone. */
static bool has_block_scales(const struct rf_quant_format *format)
{
    return format->parts[1].rows != 0;
}

/* Names the element of a tensor that cannot be converted. `rows` are rows of
 * the box from `top` on. */
static enum rf_status refuse(const struct rf_plan *plan, uint32_t family,
                             const struct rf_box *box, uint64_t top,
                             const struct rf_convert_rows *rows,
                             struct rf_err *err)
{
    char name[512];
    uint64_t row = 0, column = 0;
    rf_convert_not_finite(rows, &row, &column);
    rf_family_tensor_name(
        &plan->model->families[family], (uint32_t)box->start[RF_DIM_LAYER],
        (uint32_t)box->start[RF_DIM_EXPERT], name, sizeof(name));
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "quantize %s: element [%" PRIu64 ", %" PRIu64
                      "] of %.300s is infinite or not a number; no scale fits",
                      plan->spec->infer.quantize->name,
                      box->start[ROW] + top + row, box->start[COLUMN] + column,
                      name);
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
    quantizer->plan = arrived->plan;
    quantizer->format = arrived->plan->spec->infer.quantize;
    quantizer->what = what;
    quantizer->result = result->base;
    quantizer->sources = rf_xcalloc(what->n, sizeof(*quantizer->sources));
    for (size_t i = 0; i < what->n; i++) {
        const struct rf_quantize_matrix *matrix = &what->matrices[i];
        const struct rf_piece *piece = &layout->pieces[matrix->source];
        const struct rf_place place = rf_place_of(arrived, piece);
        quantizer->sources[i].at =
            place.base +
            rf_box_offset(piece->box.start, 0, place.stride, matrix->box.start);
        quantizer->sources[i].pitch = place.stride[RF_DIM_TENSOR];
    }
    *out = quantizer;
    return RF_OK;
}

/* Matrix `i` as it arrived, and the place of its result. */
static struct rf_convert_rows rows_of(const struct quantizer *quantizer,
                                      size_t i)
{
    const struct rf_quantize *what = quantizer->what;
    const struct rf_piece *parts =
        &what->result.pieces[i * quantizer->format->n_parts];
    return (struct rf_convert_rows){
        .src = quantizer->sources[i].at,
        .pitch = quantizer->sources[i].pitch,
        .rows = what->matrices[i].box.extent[ROW],
        .columns = what->matrices[i].box.extent[COLUMN],
        .values = quantizer->result + parts[0].offset,
        .scales = quantizer->result + parts[1].offset};
}

static enum rf_status refuse_matrix(const struct quantizer *quantizer, size_t i,
                                    const struct rf_convert_rows *rows,
                                    struct rf_err *err)
{
    const uint32_t number =
        quantizer->what->result.pieces[i * quantizer->format->n_parts].family;
    return refuse(quantizer->plan, number, &quantizer->what->matrices[i].box, 0,
                  rows, err);
}

enum rf_status rf_quantizer_amax(void *opaque, float *amax, struct rf_err *err)
{
    const struct quantizer *quantizer = opaque;
    memset(amax, 0, quantizer->what->n_joined * sizeof(*amax));
    for (size_t i = 0; i < quantizer->what->n; i++) {
        const struct rf_convert_rows rows = rows_of(quantizer, i);
        float *most = &amax[quantizer->what->matrices[i].joined];
        const float here = rf_convert_amax(&rows);
        if (!isfinite(here)) {
            return refuse_matrix(quantizer, i, &rows, err);
        }
        *most = RF_MAX(*most, here);
    }
    return RF_OK;
}

enum rf_status rf_quantizer_run(void *opaque, const float *amax, int64_t *ns,
                                struct rf_err *err)
{
    const struct quantizer *quantizer = opaque;
    const struct rf_quant_format *format = quantizer->format;
    const struct rf_quantize *what = quantizer->what;
    const int64_t before = rf_now_ns();
    for (size_t i = 0; i < what->n; i++) {
        const struct rf_piece *last =
            &what->result.pieces[(i + 1) * format->n_parts - 1];
        struct rf_convert_rows rows = rows_of(quantizer, i);
        if (rf_quant_has_tensor_scale(format)) {
            rows.amax = amax[what->matrices[i].joined];
            const float scale = rf_convert_tensor_scale(format, rows.amax);
            memcpy(quantizer->result + last->offset, &scale, sizeof(scale));
        }
        if (!rf_convert_run(format, &rows)) {
            return refuse_matrix(quantizer, i, &rows, err);
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

struct result_verification {
    const struct rf_content_job *job;
    const struct rf_quant_format *format;
    const struct rf_quantize *what;
    const struct rf_memory_ops *memory;
    struct rf_content *content;
    struct rf_verify_result *out;
};

/* Up to BAND rows of a matrix. */
struct band {
    const struct rf_quantize_matrix *matrix;
    const struct rf_piece *parts;
    uint64_t row, n;  /* of the matrix */
    uint8_t *content; /* bfloat16, rows × columns */
    float amax, tensor_scale;
    uint8_t *values, *scales;
    void *found; /* room for values or scales */
};

/* Rows of one of a matrix's parts. */
struct items {
    const struct rf_piece *piece;
    uint64_t row, n; /* the first row, elements */
    uint32_t bytes;  /* of an element */
    const void *expected;
    const char *suffix;
};

static void note(const struct result_verification *v, const struct items *items,
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

static enum rf_status compare(const struct result_verification *v,
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

/* Reads `n` rows of a box in one tensor, from `top` on, as they must be. */
static enum rf_status read_rows(const struct result_verification *v,
                                uint32_t family, const struct rf_box *box,
                                uint64_t top, uint64_t n, uint8_t *to,
                                struct rf_err *err)
{
    const uint64_t width = v->job->plan->model->families[family].shape[1];
    const uint64_t first = box->start[ROW] + top;
    struct rf_content_span span = {
        .family = family,
        .layer_index = (uint32_t)box->start[RF_DIM_LAYER],
        .expert = (uint32_t)box->start[RF_DIM_EXPERT],
        .count = box->extent[COLUMN],
        .end = (first + n) * width};
    for (uint64_t r = 0; r < n; r++) {
        span.first = (first + r) * width + box->start[COLUMN];
        RF_TRY(
            rf_content_read(v->content, &span, to + 2 * r * span.count, err));
    }
    return RF_OK;
}

/* Raises *amax to the largest magnitude of a whole tensor. */
static enum rf_status tensor_amax(const struct result_verification *v,
                                  uint32_t family,
                                  const struct rf_quantize_joined *joined,
                                  float *amax, struct rf_err *err)
{
    const struct rf_family *of = &v->job->plan->model->families[family];
    struct rf_box box = rf_box_whole(of);
    uint8_t *content = rf_xmalloc(2 * BAND * of->shape[1]);
    enum rf_status status = RF_OK;
    box.start[RF_DIM_LAYER] = joined->layer_index;
    box.start[RF_DIM_EXPERT] = joined->expert;
    for (uint64_t r = 0; status == RF_OK && r < of->shape[0]; r += BAND) {
        const struct rf_convert_rows rows = {.src = content,
                                             .pitch = 2 * of->shape[1],
                                             .rows =
                                                 RF_MIN(of->shape[0] - r, BAND),
                                             .columns = of->shape[1]};
        status = read_rows(v, family, &box, r, rows.rows, content, err);
        if (status == RF_OK) {
            const float here = rf_convert_amax(&rows);
            *amax = RF_MAX(*amax, here);
        }
    }
    free(content);
    return status;
}

/* The largest magnitude of all joined tensors, from their whole content. */
static enum rf_status joined_amax(const struct result_verification *v,
                                  const struct rf_quantize_joined *joined,
                                  float *amax, struct rf_err *err)
{
    uint32_t families[RF_FAMILY_MAX_PARTS];
    const uint32_t n = rf_quantize_joined_to(v->job->plan, joined, families);
    *amax = 0;
    for (uint32_t i = 0; i < n; i++) {
        RF_TRY(tensor_amax(v, families[i], joined, amax, err));
    }
    return RF_OK;
}

/* Makes the band's expected values and scales. */
static enum rf_status make_band(const struct result_verification *v,
                                const struct band *band, struct rf_err *err)
{
    const uint32_t family = band->parts[0].family;
    const struct rf_box *box = &band->matrix->box;
    const struct rf_convert_rows rows = {.src = band->content,
                                         .pitch = 2 * box->extent[COLUMN],
                                         .rows = band->n,
                                         .columns = box->extent[COLUMN],
                                         .values = band->values,
                                         .scales = band->scales,
                                         .amax = band->amax};
    RF_TRY(read_rows(v, family, box, band->row, band->n, band->content, err));
    return rf_convert_run(v->format, &rows)
               ? RF_OK
               : refuse(v->job->plan, family, box, band->row, &rows, err);
}

/* The band's rows of part `k`. */
static struct items items_of(const struct result_verification *v,
                             const struct band *band, uint32_t k,
                             const void *expected)
{
    const struct rf_quant_part *part = &v->format->parts[k];
    const struct rf_piece *piece = &band->parts[k];
    return (struct items){.piece = piece,
                          .row = band->row / part->rows,
                          .n = rf_div_up(band->n, part->rows) *
                               piece->box.extent[COLUMN],
                          .bytes = rf_dtype_bytes(part->dtype),
                          .expected = expected,
                          .suffix = k == 0 ? " (quantised)" : part->suffix};
}

static enum rf_status verify_band(const struct result_verification *v,
                                  const struct band *band, struct rf_err *err)
{
    struct items items;
    RF_TRY(make_band(v, band, err));
    items = items_of(v, band, 0, band->values);
    RF_TRY(compare(v, &items, band->found, err));
    if (has_block_scales(v->format)) {
        items = items_of(v, band, 1, band->scales);
        RF_TRY(compare(v, &items, band->found, err));
    }
    return RF_OK;
}

/* Gaps between pieces, which ascend, must still hold the poison. */
static enum rf_status verify_gaps(const struct result_verification *v,
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

static enum rf_status verify_matrix(const struct result_verification *v,
                                    struct band *band, struct rf_err *err)
{
    const uint64_t rows = band->matrix->box.extent[ROW];
    const uint32_t last = v->format->n_parts - 1;
    enum rf_status status = RF_OK;
    if (rf_quant_has_tensor_scale(v->format)) {
        const struct items items = {.piece = &band->parts[last],
                                    .n = 1,
                                    .bytes = sizeof(band->tensor_scale),
                                    .expected = &band->tensor_scale,
                                    .suffix = v->format->parts[last].suffix};
        band->tensor_scale = rf_convert_tensor_scale(v->format, band->amax);
        status = compare(v, &items, band->found, err);
    }
    for (uint64_t r = 0; status == RF_OK && r < rows; r += BAND) {
        band->row = r;
        band->n = RF_MIN(rows - r, BAND);
        status = verify_band(v, band, err);
    }
    return status;
}

/* Verifies all matrices; `amax` is that of the joined tensors. */
static enum rf_status verify_matrices(const struct result_verification *v,
                                      const float *amax, struct rf_err *err)
{
    struct band band = {.row = 0};
    uint64_t widest = 0;
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < v->what->n; i++) {
        widest = RF_MAX(widest, v->what->matrices[i].box.extent[COLUMN]);
    }
    band.content = rf_xmalloc(widest * 2 * BAND);
    band.values = rf_xmalloc(widest * BAND);
    band.scales = rf_xmalloc(rf_align_up(widest, BAND) * BAND);
    band.found = rf_xmalloc(rf_align_up(widest, BAND) * BAND);
    for (size_t i = 0; status == RF_OK && i < v->what->n; i++) {
        band.matrix = &v->what->matrices[i];
        band.parts = &v->what->result.pieces[i * v->format->n_parts];
        band.amax = v->what->n_joined > 0 ? amax[band.matrix->joined] : 0;
        status = verify_matrix(v, &band, err);
    }
    free(band.content);
    free(band.values);
    free(band.scales);
    free(band.found);
    return status;
}

enum rf_status rf_quantizer_verify(const struct rf_content_job *job,
                                   const struct rf_quantize *what,
                                   const struct rf_memory_ops *memory,
                                   struct rf_verify_result *out,
                                   struct rf_err *err)
{
    struct result_verification v = {.job = job,
                                    .format = job->plan->spec->infer.quantize,
                                    .what = what,
                                    .memory = memory,
                                    .out = out};
    float *amax = rf_xcalloc(what->n_joined, sizeof(*amax));
    enum rf_status status = rf_content_create(job, NULL, &v.content, err);
    for (size_t i = 0; status == RF_OK && i < what->n_joined; i++) {
        status = joined_amax(&v, &what->joined[i], &amax[i], err);
    }
    RF_THEN(status, verify_matrices(&v, amax, err));
    RF_THEN(status, verify_gaps(&v, &what->result, err));
    free(amax);
    rf_content_destroy(v.content);
    return status;
}

/*
 * Content after conversion. See converted_content.h.
 *
 * Spans come row by row, so the rows of the last blocks are kept.
 */
#include "worker/content/converted_content.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "worker/content/convert.h"
#include "worker/content/quantize.h"

#define BAND UINT64_C(128) /* rows that are converted together: whole blocks */

/* Converted rows of a matrix, between two of its columns. */
struct band {
    uint32_t family, layer_index, expert;
    uint64_t row, rows, column, columns; /* rows 0: none */
};

struct rf_converted_content {
    const struct rf_converted *converted;
    const struct rf_quantize_spec *how;
    const struct rf_model *model; /* of the weights */
    struct rf_weights *weights;
    struct band band;
    uint64_t capacity; /* columns of the buffers, which have BAND rows */
    uint8_t *elements; /* of bfloat16 */
    uint8_t *parts[2]; /* values, scales of blocks */
    /* By family, the first of those joined: of each layer and expert; NaN: not
     * known. */
    float **amax;
};

struct rf_converted_content *
rf_converted_content_create(const struct rf_plan *plan, uint32_t rank,
                            struct rf_weights *weights)
{
    struct rf_converted_content *content = rf_xcalloc(1, sizeof(*content));
    content->converted = rf_plan_converted(plan, rank);
    content->how = &rf_plan_pool(plan, rank)->quantize;
    content->model = content->converted->before;
    content->weights = weights;
    content->amax =
        rf_xcalloc(content->model->n_families, sizeof(*content->amax));
    return content;
}

static void free_buffers(struct rf_converted_content *content)
{
    free(content->elements);
    free(content->parts[0]);
    free(content->parts[1]);
}

void rf_converted_content_destroy(struct rf_converted_content *content)
{
    if (content != NULL) {
        for (uint32_t f = 0; f < content->model->n_families; f++) {
            free(content->amax[f]);
        }
        free(content->amax);
        free_buffers(content);
        free(content);
    }
}

/* Room for BAND rows of these columns. */
static void make_room(struct rf_converted_content *content, uint64_t columns)
{
    if (columns > content->capacity) {
        free_buffers(content);
        content->elements = rf_xmalloc(BAND * columns * sizeof(uint16_t));
        content->parts[0] = rf_xmalloc(BAND * columns);
        content->parts[1] = rf_xmalloc(BAND * columns);
        content->capacity = columns;
    }
}

/* Reads the weights of a band. */
static enum rf_status read_band(struct rf_converted_content *content,
                                const struct band *band, struct rf_err *err)
{
    const uint64_t width = content->model->families[band->family].shape[1];
    struct rf_content_span span = {.family = band->family,
                                   .layer_index = band->layer_index,
                                   .expert = band->expert,
                                   .count = band->columns,
                                   .end = (band->row + band->rows) * width};
    for (uint64_t r = 0; r < band->rows; r++) {
        span.first = (band->row + r) * width + band->column;
        RF_TRY(rf_weights_read(content->weights, &span,
                               content->elements + 2 * r * band->columns, err));
    }
    return RF_OK;
}

static struct rf_convert_rows
rows_of(const struct rf_converted_content *content, const struct band *band)
{
    return (struct rf_convert_rows){.src = content->elements,
                                    .pitch = 2 * band->columns,
                                    .rows = band->rows,
                                    .columns = band->columns,
                                    .values = content->parts[0],
                                    .scales = content->parts[1],
                                    .eps = (float)content->how->eps,
                                    .divides = content->how->divides};
}

static enum rf_status refuse(const struct rf_converted_content *content,
                             const struct band *band,
                             const struct rf_convert_rows *rows,
                             struct rf_err *err)
{
    const struct rf_quantize_place place = {.family = band->family,
                                            .layer_index = band->layer_index,
                                            .expert = band->expert,
                                            .row = band->row,
                                            .column = band->column};
    return rf_quantize_refuse(content->converted, &place, rows, err);
}

/* Raises *amax to the largest magnitude of a whole tensor. */
static enum rf_status raise_amax(struct rf_converted_content *content,
                                 struct band band, float *amax,
                                 struct rf_err *err)
{
    const uint64_t *shape = content->model->families[band.family].shape;
    band.columns = shape[1];
    make_room(content, band.columns);
    for (band.row = 0; band.row < shape[0]; band.row += BAND) {
        struct rf_convert_rows rows;
        band.rows = RF_MIN(shape[0] - band.row, BAND);
        RF_TRY(read_band(content, &band, err));
        rows = rows_of(content, &band);
        const float here = rf_convert_amax(&rows);
        if (!isfinite(here)) {
            return refuse(content, &band, &rows, err);
        }
        *amax = RF_MAX(*amax, here);
    }
    return RF_OK;
}

/* The largest magnitude of all tensors that have one scale with one of this
 * family. */
static enum rf_status find_amax(struct rf_converted_content *content,
                                const struct rf_content_span *span,
                                uint32_t family, float *out, struct rf_err *err)
{
    const struct rf_quantize_joined joined = {
        .family = content->converted->joined[family],
        .layer_index = span->layer_index,
        .expert = span->expert};
    const struct rf_family *of = &content->model->families[joined.family];
    const size_t n = (size_t)of->n_layers * of->n_experts;
    float **known = &content->amax[joined.family];
    uint32_t families[RF_FAMILY_MAX_PARTS], n_families;
    float *amax;
    if (*known == NULL) {
        *known = rf_xmalloc(n * sizeof(**known));
        for (size_t i = 0; i < n; i++) {
            (*known)[i] = NAN;
        }
    }
    amax = &(*known)[(size_t)span->layer_index * of->n_experts + span->expert];
    if (isnan(*amax)) {
        float most = 0;
        content->band.rows = 0;
        n_families =
            rf_quantize_joined_to(content->converted, &joined, families);
        for (uint32_t i = 0; i < n_families; i++) {
            const struct band band = {.family = families[i],
                                      .layer_index = span->layer_index,
                                      .expert = span->expert};
            RF_TRY(raise_amax(content, band, &most, err));
        }
        *amax = most;
    }
    *out = *amax;
    return RF_OK;
}

/* Converts the band of a matrix's row, unless it is there. */
static enum rf_status make_band(struct rf_converted_content *content,
                                const struct rf_content_span *span,
                                const struct band *wanted, struct rf_err *err)
{
    const struct rf_quant_format *format = content->converted->format;
    struct band *band = &content->band;
    struct rf_convert_rows rows;
    float amax = 0;
    if (band->rows > 0 && band->family == wanted->family &&
        band->layer_index == wanted->layer_index &&
        band->expert == wanted->expert && band->row == wanted->row &&
        band->column == wanted->column && band->columns == wanted->columns) {
        return RF_OK;
    }
    if (rf_quant_has_tensor_scale(format)) {
        RF_TRY(find_amax(content, span, wanted->family, &amax, err));
    }
    band->rows = 0; /* unless all goes well */
    make_room(content, wanted->columns);
    RF_TRY(read_band(content, wanted, err));
    rows = rows_of(content, wanted);
    rows.amax = amax;
    if (!rf_convert_run(format, &rows)) {
        return refuse(content, wanted, &rows, err);
    }
    *band = *wanted;
    return RF_OK;
}

/* Copies elements [column, column + n) of a part's row. */
static enum rf_status read_row(struct rf_converted_content *content,
                               const struct rf_content_span *span, uint64_t row,
                               uint64_t column, uint64_t n, uint8_t *dst,
                               struct rf_err *err)
{
    const struct rf_converted *converted = content->converted;
    const struct rf_converted_from from = converted->from[span->family];
    const struct rf_quant_part *part = &converted->format->parts[from.part];
    const uint64_t *shape = content->model->families[from.family].shape;
    const uint64_t first = span->columns > 0 ? span->column : 0;
    const uint64_t count =
        span->columns > 0 ? span->columns : rf_div_up(shape[1], part->columns);
    const uint64_t top = row * part->rows / BAND * BAND;
    const struct band band = {
        .family = from.family,
        .layer_index = span->layer_index,
        .expert = span->expert,
        .row = top,
        .rows = RF_MIN(shape[0] - top, BAND),
        .column = first * part->columns,
        .columns = RF_MIN(shape[1], (first + count) * part->columns) -
                   first * part->columns};
    const uint32_t item = rf_dtype_bytes(part->dtype);
    RF_TRY(make_band(content, span, &band, err));
    memcpy(
        dst,
        content->parts[from.part] +
            ((row * part->rows - top) / part->rows * count + column - first) *
                item,
        n * item);
    return RF_OK;
}

enum rf_status rf_converted_content_read(struct rf_converted_content *content,
                                         const struct rf_content_span *span,
                                         void *dst, struct rf_err *err)
{
    const struct rf_converted *converted = content->converted;
    const struct rf_family *family = &converted->model.families[span->family];
    const struct rf_converted_from from = converted->from[span->family];
    const uint64_t end = span->first + span->count;
    uint8_t *to = dst;
    if (converted->format->parts[from.part].rows == 0) {
        float amax, scale;
        RF_TRY(find_amax(content, span, from.family, &amax, err));
        scale = rf_convert_tensor_scale(converted->format, amax);
        memcpy(dst, &scale, sizeof(scale));
        return RF_OK;
    }
    for (uint64_t at = span->first, n; at < end; at += n) {
        const uint64_t column = at % family->shape[1];
        n = RF_MIN(end - at, family->shape[1] - column);
        RF_TRY(
            read_row(content, span, at / family->shape[1], column, n, to, err));
        to += n * rf_dtype_bytes(family->dtype);
    }
    return RF_OK;
}

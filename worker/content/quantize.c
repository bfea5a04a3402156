/* Quantising on the processor. See quantize.h. */
#include "worker/content/quantize.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/layout/box.h"
#include "worker/content/convert.h"

#define ROW RF_DIM_TENSOR /* dimensions of a matrix in its box */
#define COLUMN (RF_DIM_TENSOR + 1)

struct quantizer {
    const struct rf_converted *converted;
    const struct rf_quantize_spec *how;
    const struct rf_quant_format *format;
    const struct rf_quantize *what;
    uint8_t *result;
    struct source {
        const uint8_t *at; /* first element of each matrix */
        uint64_t pitch;    /* bytes from row to row */
    } * sources;
};

enum rf_status rf_quantize_refuse(const struct rf_converted *converted,
                                  const struct rf_quantize_place *place,
                                  const struct rf_convert_rows *rows,
                                  struct rf_err *err)
{
    char name[512];
    uint64_t row = 0, column = 0;
    rf_convert_not_finite(rows, &row, &column);
    rf_family_tensor_name(&converted->before->families[place->family],
                          place->layer_index, place->expert, name,
                          sizeof(name));
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "quantize %s: element [%" PRIu64 ", %" PRIu64
                      "] of %.300s is infinite or not a number; no scale fits",
                      converted->format->name, place->row + row,
                      place->column + column, name);
}

enum rf_status rf_quantizer_create(const struct rf_content_job *arrived,
                                   const struct rf_quantize *what,
                                   const struct rf_arena *result, void **out,
                                   struct rf_err *err)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(arrived->plan, arrived->side, arrived->rank);
    struct quantizer *quantizer = rf_xcalloc(1, sizeof(*quantizer));
    (void)err;
    quantizer->converted = rf_plan_converted(arrived->plan, arrived->rank);
    quantizer->how = &rf_plan_pool(arrived->plan, arrived->rank)->quantize;
    quantizer->format = quantizer->how->format;
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
        .scales = quantizer->result + parts[1].offset,
        .eps = (float)quantizer->how->eps,
        .divides = quantizer->how->divides};
}

static enum rf_status refuse(const struct quantizer *quantizer,
                             const struct rf_quantize_rows *part,
                             const struct rf_convert_rows *rows,
                             struct rf_err *err)
{
    const struct rf_quantize *what = quantizer->what;
    const struct rf_box *box = &what->matrices[part->matrix].box;
    const struct rf_quantize_place place = {
        .family = what->result.pieces[part->matrix * quantizer->format->n_parts]
                      .family,
        .layer_index = (uint32_t)box->start[RF_DIM_LAYER],
        .expert = (uint32_t)box->start[RF_DIM_EXPERT],
        .row = box->start[ROW] + part->row,
        .column = box->start[COLUMN]};
    return rf_quantize_refuse(quantizer->converted, &place, rows, err);
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
            const struct rf_quantize_rows all = {.matrix = i};
            return refuse(quantizer, &all, &rows, err);
        }
        *most = RF_MAX(*most, here);
    }
    return RF_OK;
}

enum rf_status rf_quantizer_part(void *opaque, const float *amax,
                                 const struct rf_quantize_rows *part,
                                 struct rf_err *err)
{
    const struct quantizer *quantizer = opaque;
    const struct rf_quant_format *format = quantizer->format;
    const struct rf_quantize *what = quantizer->what;
    const struct rf_piece *parts =
        &what->result.pieces[part->matrix * format->n_parts];
    struct rf_convert_rows rows = rows_of(quantizer, part->matrix);
    rows.src += part->row * rows.pitch;
    rows.rows = part->rows;
    rows.values += part->row * parts[0].stride[ROW];
    if (format->parts[1].rows > 0) {
        rows.scales += part->row / format->parts[1].rows * parts[1].stride[ROW];
    }
    if (rf_quant_has_tensor_scale(format)) {
        rows.amax = amax[what->matrices[part->matrix].joined];
        const float scale = rf_convert_tensor_scale(format, rows.amax);
        memcpy(quantizer->result + parts[format->n_parts - 1].offset, &scale,
               sizeof(scale));
    }
    return rf_convert_run(format, &rows) ? RF_OK
                                         : refuse(quantizer, part, &rows, err);
}

enum rf_status rf_quantizer_run(void *opaque, const float *amax, int64_t *ns,
                                struct rf_err *err)
{
    const struct quantizer *quantizer = opaque;
    const int64_t before = rf_now_ns();
    for (size_t i = 0; i < quantizer->what->n; i++) {
        const struct rf_quantize_rows all = {
            .matrix = i, .rows = quantizer->what->matrices[i].box.extent[ROW]};
        RF_TRY(rf_quantizer_part(opaque, amax, &all, err));
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

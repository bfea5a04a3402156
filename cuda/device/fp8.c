/* Block-scaled fp8 on the device. See fp8.h. */
#include "cuda/device/fp8.h"

#include <stdlib.h>

#include "common/mem.h"
#include "cuda/device/events.h"
#include "planner/layout/box.h"

struct rf_fp8_job {
    struct rf_tiles tiles; /* in class 0; freed once on the device */
    void *memory;
    struct rf_fp8_args args;
    cudaEvent_t begin, end;
};

static void add_tiles(struct rf_fp8_job *job, uint32_t slice,
                      const struct rf_fp8_matrix *matrix)
{
    for (uint64_t row = 0; row < matrix->rows; row += RF_FP8_BLOCK) {
        for (uint64_t column = 0; column < matrix->columns;
             column += RF_FP8_BLOCK) {
            const uint64_t rows = matrix->rows - row;
            const uint64_t columns = matrix->columns - column;
            RF_PUSH(job->tiles.tiles[0], job->tiles.n[0],
                    job->tiles.capacity[0],
                    ((struct rf_tile){
                        .slice = slice,
                        .rows = (uint32_t)RF_MIN(rows, (uint64_t)RF_FP8_BLOCK),
                        .row = row,
                        .column = column,
                        .units = (uint32_t)RF_MIN(columns,
                                                  (uint64_t)RF_FP8_BLOCK)}));
        }
    }
}

/* Whether eight elements can be moved at once at the start of every row of a
 * matrix; then they can in every block. */
static uint32_t is_wide(const void *base, uint64_t pitch, size_t element)
{
    const uint64_t unit = RF_FP8_WIDE * element;
    return (uintptr_t)base % unit == 0 && pitch * element % unit == 0;
}

static enum rf_status upload(struct rf_fp8_job *job,
                             const struct rf_fp8_slice *slices, size_t n,
                             struct rf_err *err)
{
    struct rf_device_table table;
    enum rf_status status = rf_device_upload(slices, n * sizeof(*slices),
                                             &job->tiles, 0, &table, err);
    if (status == RF_OK) {
        job->memory = table.memory;
        job->args = (struct rf_fp8_args){.slices = table.memory,
                                         .tiles = table.tiles[0],
                                         .n_tiles = table.n[0]};
    }
    free(job->tiles.tiles[0]);
    job->tiles.tiles[0] = NULL;
    return status;
}

enum rf_status rf_fp8_job_create(const struct rf_fp8_matrix *matrices, size_t n,
                                 void **out, struct rf_err *err)
{
    struct rf_fp8_job *job = rf_xcalloc(1, sizeof(*job));
    struct rf_fp8_slice *slices = rf_xcalloc(n, sizeof(*slices));
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < n; i++) {
        const struct rf_fp8_matrix *m = &matrices[i];
        slices[i] = (struct rf_fp8_slice){
            .src = m->src,
            .dst = m->dst,
            .scale_inv = m->scale_inv,
            .src_pitch = m->src_pitch,
            .dst_pitch = m->dst_pitch,
            .block_columns = rf_div_up(m->columns, RF_FP8_BLOCK),
            .src_wide = is_wide(m->src, m->src_pitch, sizeof(uint16_t)),
            .dst_wide = is_wide(m->dst, m->dst_pitch, sizeof(uint8_t))};
        add_tiles(job, (uint32_t)i, m);
    }
    status = upload(job, slices, n, err);
    if (status == RF_OK) {
        RF_CUDA_TRY(err, out, cudaEventCreate(&job->begin));
        RF_CUDA_TRY(err, out, cudaEventCreate(&job->end));
    }
out:
    free(slices);
    if (status != RF_OK) {
        rf_fp8_job_destroy(job);
        return status;
    }
    *out = job;
    return RF_OK;
}

enum rf_status rf_fp8_job_run(void *opaque, const float *amax, int64_t *ns,
                              struct rf_err *err)
{
    struct rf_fp8_job *job = opaque;
    (void)amax;
    RF_CUDA_CHECK(err, cudaEventRecord(job->begin, NULL));
    RF_TRY(rf_device_launch(RF_K_rf_kernel_fp8, job->args.n_tiles, &job->args,
                            NULL, err));
    RF_CUDA_CHECK(err, cudaEventRecord(job->end, NULL));
    RF_CUDA_CHECK(err, cudaEventSynchronize(job->end));
    *ns = rf_events_ns(job->begin, job->end);
    return RF_OK;
}

void rf_fp8_job_destroy(void *opaque)
{
    struct rf_fp8_job *job = opaque;
    if (job == NULL) {
        return;
    }
    if (!rf_device_abandoned()) {
        cudaFree(job->memory);
        rf_event_free(job->begin);
        rf_event_free(job->end);
    }
    free(job);
}

enum rf_status rf_fp8_quantizer_create(const struct rf_content_job *arrived,
                                       const struct rf_quantize *what,
                                       const struct rf_arena *result,
                                       void **out, struct rf_err *err)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(arrived->plan, arrived->side, arrived->rank);
    struct rf_fp8_matrix *matrices = rf_xcalloc(what->n, sizeof(*matrices));
    unsigned char *to = result->base;
    enum rf_status status;
    for (size_t i = 0; i < what->n; i++) {
        const struct rf_piece *values = &what->result.pieces[2 * i];
        const struct rf_piece *piece =
            &layout->pieces[what->matrices[i].source];
        const struct rf_place place = rf_place_of(arrived, piece);
        matrices[i] = (struct rf_fp8_matrix){
            .src = place.base + rf_box_offset(piece->box.start, 0, place.stride,
                                              values->box.start),
            .dst = to + values[0].offset,
            .scale_inv = to + values[1].offset,
            .rows = values->box.extent[RF_DIM_TENSOR],
            .columns = values->box.extent[RF_DIM_TENSOR + 1],
            .src_pitch = place.stride[RF_DIM_TENSOR] / 2,
            .dst_pitch = values->stride[RF_DIM_TENSOR]};
    }
    status = rf_fp8_job_create(matrices, what->n, out, err);
    free(matrices);
    return status;
}

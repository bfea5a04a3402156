/* Block-scaled fp8 on the device. See fp8.h. */
#include "cuda/fp8.h"

#include <stdlib.h>

#include "common/mem.h"

struct job {
    struct rf_tiles tiles; /* in class 0 */
    struct rf_fp8_slice *slices;
    uint64_t blocks;
    unsigned *amax; /* of all blocks */
    void *memory;
};

static void add_tiles(struct job *job, uint32_t slice,
                      const struct rf_fp8_matrix *matrix)
{
    for (uint64_t row = 0; row < matrix->rows; row += RF_FP8_BLOCK) {
        for (uint64_t column = 0; column < matrix->columns;
             column += RF_FP8_BLOCK) {
            const uint64_t rows = matrix->rows - row;
            const uint64_t columns = matrix->columns - column;
            RF_PUSH(
                job->tiles.tiles[0], job->tiles.n[0], job->tiles.capacity[0],
                ((struct rf_tile){
                    .slice = slice,
                    .rows = (uint32_t)RF_MIN(rows, (uint64_t)RF_FP8_BLOCK),
                    .row = row,
                    .column = column,
                    .units = (uint32_t)RF_MIN(columns, (uint64_t)RF_FP8_BLOCK),
                    .group_log2 = 7}));
        }
    }
}

static enum rf_status run(struct job *job, size_t n, struct rf_err *err)
{
    const struct rf_tile *tiles[RF_UNIT_CLASSES];
    uint32_t counts[RF_UNIT_CLASSES];
    struct rf_fp8_args args;
    enum rf_status status =
        rf_device_upload(job->slices, n * sizeof(*job->slices), &job->tiles, 0,
                         &job->memory, tiles, counts, err);
    if (status == RF_OK) {
        args = (struct rf_fp8_args){
            .slices = job->memory, .tiles = tiles[0], .n_tiles = counts[0]};
        status = rf_device_launch(RF_K_rf_kernel_fp8_amax, counts[0], &args,
                                  NULL, err);
    }
    if (status == RF_OK) {
        status = rf_device_launch(RF_K_rf_kernel_fp8_cast, counts[0], &args,
                                  NULL, err);
    }
    if (status == RF_OK) {
        RF_CUDA_TRY(err, out, cudaStreamSynchronize(NULL));
    }
out:
    return status;
}

enum rf_status rf_device_fp8(const struct rf_fp8_matrix *matrices, size_t n,
                             struct rf_err *err)
{
    struct job job = {.slices = rf_xcalloc(n, sizeof(*job.slices))};
    enum rf_status status = RF_OK;
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        job.blocks += rf_fp8_blocks(matrices[i].rows) *
                      rf_fp8_blocks(matrices[i].columns);
    }
    RF_CUDA_TRY(
        err, out,
        cudaMalloc((void **)&job.amax, (job.blocks + 1) * sizeof(*job.amax)));
    RF_CUDA_TRY(err, out,
                cudaMemset(job.amax, 0, (job.blocks + 1) * sizeof(*job.amax)));
    for (size_t i = 0; i < n; i++) {
        const struct rf_fp8_matrix *m = &matrices[i];
        job.slices[i] =
            (struct rf_fp8_slice){.src = m->src,
                                  .dst = m->dst,
                                  .scale_inv = m->scale_inv,
                                  .amax = job.amax + at,
                                  .src_pitch = m->src_pitch,
                                  .dst_pitch = m->dst_pitch,
                                  .block_columns = rf_fp8_blocks(m->columns)};
        at += rf_fp8_blocks(m->rows) * rf_fp8_blocks(m->columns);
        add_tiles(&job, (uint32_t)i, m);
    }
    status = run(&job, n, err);
out:
    cudaFree(job.amax);
    cudaFree(job.memory);
    free(job.tiles.tiles[0]);
    free(job.slices);
    return status;
}

/*
 * Copies by the device's copy engines, which need no multiprocessor: contiguous
 * runs in batches (cudaMemcpyBatchAsync, CUDA 12.8 or later), pitched rows as
 * two-dimensional copies, or, 2 GiB and more apart, as runs. Lists are made once
 * per plan; running one allocates nothing.
 */
#ifndef RF_CUDA_DEVICE_COPY_ENGINE_H
#define RF_CUDA_DEVICE_COPY_ENGINE_H

#include "cuda/device/checked.h"
#include "cuda/device/tiles.h"

struct rf_engine_rows {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, rows;
};

/* Consecutive copies to one destination; its runs form one batch. */
struct rf_copy_engine_part {
    uint32_t dst_base;
    size_t n_runs, n_rows;
};

struct rf_copy_engine_list {
    void **to; /* of each run */
    const void **from;
    size_t *bytes;
    size_t n_runs, runs_capacity;
    struct rf_engine_rows *rows;
    size_t n_rows, rows_capacity;
    struct rf_copy_engine_part *parts;
    size_t n_parts, parts_capacity;
    uint64_t total_bytes;
};

/* Length of one run of the slice; a contiguous slice is one run. */
uint64_t rf_copy_engine_run_bytes(const struct rf_slice *slice);

/* Adds a slice of plain bytes at these bases. */
void rf_copy_engine_add(struct rf_copy_engine_list *list,
                        const struct rf_slice *slice,
                        const struct rf_bases *bases);

/* Whether the driver takes batches; without them runs are copied one by one.
 * Waits for the device. */
enum rf_status rf_copy_engine_has_batches(bool *out,
                                          struct rf_err *err) RF_MUST_CHECK;

/* Enqueues all copies, part by part. */
enum rf_status rf_copy_engine_run(const struct rf_copy_engine_list *list,
                                  bool batches, cudaStream_t stream,
                                  struct rf_err *err) RF_MUST_CHECK;
void rf_copy_engine_free(struct rf_copy_engine_list *list);

#endif

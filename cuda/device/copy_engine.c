/* Copies by copy engines. See copy_engine.h. */
#include "cuda/device/copy_engine.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/events.h"

/* cudaDevAttrMaxPitch of every device. */
#define MOST_PITCH INT_MAX

static bool is_contiguous(const struct rf_slice *slice)
{
    return slice->rows == 1 || (slice->src_pitch == slice->width &&
                                slice->dst_pitch == slice->width);
}

uint64_t rf_copy_engine_run_bytes(const struct rf_slice *slice)
{
    return is_contiguous(slice) ? slice->width * slice->rows : slice->width;
}

/* The three arrays of a batch grow together. */
static void add_run(struct rf_copy_engine_list *list, void *to,
                    const void *from, size_t bytes)
{
    size_t capacity = list->runs_capacity, n = list->n_runs;
    RF_PUSH(list->to, n, capacity, to);
    capacity = list->runs_capacity;
    n = list->n_runs;
    RF_PUSH(list->from, n, capacity, from);
    RF_PUSH(list->bytes, list->n_runs, list->runs_capacity, bytes);
}

static struct rf_copy_engine_part *part_for(struct rf_copy_engine_list *list,
                                            uint32_t dst_base)
{
    if (list->n_parts == 0 ||
        list->parts[list->n_parts - 1].dst_base != dst_base) {
        RF_PUSH(list->parts, list->n_parts, list->parts_capacity,
                ((struct rf_copy_engine_part){.dst_base = dst_base}));
    }
    return &list->parts[list->n_parts - 1];
}

void rf_copy_engine_add(struct rf_copy_engine_list *list,
                        const struct rf_slice *slice,
                        const struct rf_bases *bases)
{
    struct rf_copy_engine_part *part = part_for(list, slice->dst_base);
    unsigned char *to = bases->at[slice->dst_base] + slice->dst_offset;
    const unsigned char *from = bases->at[slice->src_base] + slice->src_offset;
    if (is_contiguous(slice)) {
        add_run(list, to, from, (size_t)(slice->width * slice->rows));
        part->n_runs++;
    } else if (RF_MAX(slice->src_pitch, slice->dst_pitch) > MOST_PITCH) {
        for (uint64_t r = 0; r < slice->rows; r++) { /* a few: 2 GiB apart */
            add_run(list, to + r * slice->dst_pitch,
                    from + r * slice->src_pitch, (size_t)slice->width);
            part->n_runs++;
        }
    } else {
        RF_PUSH(list->rows, list->n_rows, list->rows_capacity,
                ((struct rf_engine_rows){.to = to,
                                         .from = from,
                                         .to_pitch = slice->dst_pitch,
                                         .from_pitch = slice->src_pitch,
                                         .width = slice->width,
                                         .rows = slice->rows}));
        part->n_rows++;
    }
    list->total_bytes += slice->width * slice->rows;
}

/* The attribute asks for copy engines; inside a device the driver would rather
 * use a kernel. */
static cudaError_t run_batch(void *const *to, const void *const *from,
                             const size_t *bytes, size_t n, cudaStream_t stream)
{
    struct cudaMemcpyAttributes attributes = {
        .srcAccessOrder = cudaMemcpySrcAccessOrderStream,
        .flags = cudaMemcpyFlagPreferOverlapWithCompute};
    size_t first = 0;
#if CUDART_VERSION >= 13000
    return cudaMemcpyBatchAsync(to, from, bytes, n, &attributes, &first, 1,
                                stream);
#else
    /* CUDA 12's form also only reads the arrays; it reports the failed copy. */
    size_t failed = 0;
    return cudaMemcpyBatchAsync((void **)to, (void **)from, (size_t *)bytes, n,
                                &attributes, &first, 1, &failed, stream);
#endif
}

enum rf_status rf_copy_engine_has_batches(bool *out, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    unsigned char *memory = NULL;
    cudaStream_t stream = NULL;
    const size_t bytes = 256;
    cudaError_t code;
    void *to;
    const void *from;
    RF_CUDA_TRY(err, out, cudaMalloc((void **)&memory, 2 * bytes));
    RF_CUDA_TRY(err, out,
                cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    to = memory + bytes;
    from = memory;
    code = run_batch(&to, &from, &bytes, 1, stream);
    *out = code == cudaSuccess;
    if (code == cudaErrorNotSupported ||
        code == cudaErrorCallRequiresNewerDriver) {
        (void)cudaGetLastError();
    } else {
        RF_CUDA_TRY(err, out, code);
    }
    RF_CUDA_TRY(err, out, cudaStreamSynchronize(stream));
out:
    rf_stream_free(stream);
    cudaFree(memory);
    return status;
}

static enum rf_status run_runs(const struct rf_copy_engine_list *list,
                               size_t first, size_t n, bool batches,
                               cudaStream_t stream, struct rf_err *err)
{
    if (batches && n > 0) {
        RF_CUDA_CHECK(err, run_batch(list->to + first, list->from + first,
                                     list->bytes + first, n, stream));
    }
    for (size_t i = first; !batches && i < first + n; i++) {
        RF_CUDA_CHECK(err, cudaMemcpyAsync(list->to[i], list->from[i],
                                           list->bytes[i],
                                           cudaMemcpyDeviceToDevice, stream));
    }
    return RF_OK;
}

enum rf_status rf_copy_engine_run(const struct rf_copy_engine_list *list,
                                  bool batches, cudaStream_t stream,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    size_t run = 0, rows = 0;
    for (size_t p = 0; p < list->n_parts && status == RF_OK; p++) {
        const struct rf_copy_engine_part *part = &list->parts[p];
        status = run_runs(list, run, part->n_runs, batches, stream, err);
        run += part->n_runs;
        for (size_t i = 0; i < part->n_rows && status == RF_OK; i++) {
            const struct rf_engine_rows *at = &list->rows[rows++];
            RF_CUDA_CHECK(err,
                          cudaMemcpy2DAsync(at->to, at->to_pitch, at->from,
                                            at->from_pitch, at->width, at->rows,
                                            cudaMemcpyDeviceToDevice, stream));
        }
    }
    return status;
}

void rf_copy_engine_free(struct rf_copy_engine_list *list)
{
    free(list->to);
    free(list->from);
    free(list->bytes);
    free(list->rows);
    free(list->parts);
    memset(list, 0, sizeof(*list));
}

/*
 * Arenas in device memory: plain cudaMalloc, because CUDA IPC handles can share
 * only that. If handles are refused, or REFIT_IPC says so, memory shared by
 * file descriptor (cuda/device/vmm.h), which is then the arena's `fd`. Fill and
 * verify run as kernels over tables of content slices, made on first use and
 * kept with the arena.
 */
#include "cuda/device/device_memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/device_load.h"
#include "cuda/device/fp8.h"
#include "cuda/device/vmm.h"
#include "cuda/nvml/memory_usage.h"

struct arena_tables {
    struct rf_content_job of;
    struct rf_content_slices slices;
    struct rf_device_content content;
};

static uint64_t arenas_now; /* bytes of this process's arenas */

static enum rf_status alloc_plain(uint64_t bytes, struct rf_arena *out,
                                  struct rf_err *err)
{
    const cudaError_t code = cudaMalloc(&out->base, bytes);
    size_t available = 0, total = 0;
    char need[32], have[32];
    if (code == cudaSuccess) {
        out->bytes = bytes;
        return RF_OK;
    }
    (void)cudaGetLastError();
    (void)cudaMemGetInfo(&available, &total);
    return rf_err_set(
        err, code == cudaErrorMemoryAllocation ? RF_ERR_NOMEM : RF_ERR_DEVICE,
        "device memory: %s wanted, %s free: %s",
        rf_format_bytes(bytes, need, sizeof(need)),
        rf_format_bytes(available, have, sizeof(have)),
        cudaGetErrorString(code));
}

static enum rf_status alloc_vmm(uint64_t bytes, struct rf_arena *out,
                                struct rf_err *err)
{
    char need[32];
    const enum rf_status status =
        rf_vmm_alloc(&bytes, &out->base, &out->fd, err);
    RF_TRY(rf_err_within(status, err,
                         "device memory to share by file descriptor: %s wanted",
                         rf_format_bytes(bytes, need, sizeof(need))));
    out->bytes = bytes;
    return RF_OK;
}

/* Replaces plain memory that has no handle by shareable memory, if the device
 * supports that. */
static enum rf_status replace_if_refused(struct rf_arena *arena,
                                         struct rf_err *err)
{
    cudaIpcMemHandle_t handle;
    const uint64_t bytes = arena->bytes;
    if (cudaIpcGetMemHandle(&handle, arena->base) == cudaSuccess) {
        return RF_OK;
    }
    (void)cudaGetLastError();
    if (rf_vmm_ready(NULL) != RF_OK) {
        return RF_OK; /* method ipc reports why; others go on without */
    }
    cudaFree(arena->base);
    *arena = (struct rf_arena){.fd = -1};
    return alloc_vmm(bytes, arena, err);
}

static enum rf_status cuda_alloc(uint64_t bytes, struct rf_arena *out,
                                 struct rf_err *err)
{
    const uint64_t wanted = rf_align_up(bytes, RF_DEVICE_ALIGN);
    enum rf_vmm_wish wish;
    enum rf_status status = rf_vmm_wish(&wish, err);
    struct rf_arena arena = {.fd = -1};
    *out = arena;
    if (status == RF_OK && bytes > 0) {
        status = wish == RF_VMM_ALWAYS ? alloc_vmm(wanted, &arena, err)
                                       : alloc_plain(wanted, &arena, err);
        if (status == RF_OK && wish == RF_VMM_IF_NEEDED) {
            status = replace_if_refused(&arena, err);
        }
    }
    if (status != RF_OK) {
        return status;
    }
    *out = arena;
    arenas_now += arena.bytes;
    rf_memory_usage_note(arenas_now);
    return RF_OK;
}

static void tables_destroy(struct arena_tables *tables)
{
    if (tables != NULL) {
        rf_content_slices_free(&tables->slices);
        rf_device_content_free(&tables->content);
        free(tables);
    }
}

static void cuda_free(struct rf_arena *arena)
{
    tables_destroy(arena->priv);
    if (arena->base != NULL && !rf_device_abandoned()) {
        if (arena->fd < 0) {
            cudaFree(arena->base);
        } else {
            (void)cudaDeviceSynchronize();
            rf_vmm_unmap(arena->base, arena->bytes);
            close(arena->fd);
        }
        arenas_now -= arena->bytes;
    }
    *arena = (struct rf_arena){.fd = -1};
}

static uint32_t cast_between(uint32_t train_item, uint32_t side_item)
{
    if (train_item == 4 && side_item == 2) {
        return RF_KERNEL_CAST_F32_BF16;
    }
    return train_item == 2 && side_item == 4 ? RF_KERNEL_CAST_BF16_F32
                                             : RF_KERNEL_CAST_NONE;
}

static bool is_same(const struct rf_content_job *a,
                    const struct rf_content_job *b)
{
    return a->plan == b->plan && a->side == b->side && a->rank == b->rank &&
           a->data == b->data;
}

/* The tables of the job's arena; made if it has none, or those of another
 * side. */
static enum rf_status tables_of(const struct rf_content_job *job,
                                struct arena_tables **out, struct rf_err *err)
{
    const struct rf_plan *plan = job->plan;
    struct rf_arena *arena = job->arena;
    struct arena_tables *tables = arena->priv;
    enum rf_status status;
    uint32_t cast = RF_KERNEL_CAST_NONE;
    if (tables != NULL && is_same(&tables->of, job)) {
        *out = tables;
        return RF_OK;
    }
    tables_destroy(tables);
    arena->priv = NULL;
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        const uint32_t from = rf_form_item(rf_plan_form(plan, RF_TRAIN, f));
        const uint32_t to = rf_form_item(rf_plan_form(plan, job->side, f));
        if (from != to) {
            cast = cast_between(from, to);
        }
    }
    tables = rf_xcalloc(1, sizeof(*tables));
    tables->of = *job;
    rf_content_slices_add_side(&tables->slices, job, cast);
    status =
        rf_device_content_upload(&tables->slices, cast, &tables->content, err);
    if (status != RF_OK) {
        tables_destroy(tables);
        return status;
    }
    arena->priv = tables;
    *out = tables;
    return RF_OK;
}

static enum rf_status cuda_fill(const struct rf_content_job *job,
                                struct rf_err *err)
{
    struct arena_tables *tables;
    if (job->arena->base == NULL) {
        return RF_OK;
    }
    RF_TRY(tables_of(job, &tables, err));
    RF_TRY(rf_device_fill(&tables->content, job->arena->base, job->iteration,
                          NULL, err));
    RF_CUDA_CHECK(err, cudaDeviceSynchronize());
    rf_memory_usage_note(arenas_now); /* now with the method's memory */
    return RF_OK;
}

static enum rf_status cuda_poison(uint64_t round, struct rf_arena *arena,
                                  struct rf_err *err)
{
    if (arena->base == NULL) {
        return RF_OK;
    }
    RF_CUDA_CHECK(err,
                  cudaMemset(arena->base, rf_poison_byte(round), arena->bytes));
    RF_CUDA_CHECK(err, cudaDeviceSynchronize());
    return RF_OK;
}

/* Describes the first mismatch from its slice and byte. */
static enum rf_status locate(const struct arena_tables *tables,
                             const struct rf_content_job *job, uint64_t first,
                             struct rf_verify_result *out, struct rf_err *err)
{
    const uint32_t index = (uint32_t)(first >> 40);
    const struct rf_content_slice *s = &tables->slices.at[index];
    const struct rf_content_origin *origin = &tables->slices.origin[index];
    const struct rf_rank_layout *layout =
        rf_plan_layout(job->plan, job->side, job->rank);
    const uint32_t f = layout->pieces[origin->piece].family;
    const struct rf_family *family = &job->plan->model->families[f];
    const uint32_t item = rf_form_item(rf_plan_form(job->plan, job->side, f));
    const uint32_t train = rf_form_item(rf_plan_form(job->plan, RF_TRAIN, f));
    const uint64_t byte = first & ((UINT64_C(1) << 40) - 1);
    const uint64_t row = byte / s->width;
    const uint64_t column = byte % s->width / item * item;
    const uint64_t wanted = rf_content_unit(
        s, job->iteration,
        train == item ? RF_KERNEL_CAST_NONE : tables->content.cast, row,
        column);
    uint64_t element =
        (s->logical_offset + row * s->logical_pitch) / train + column / item;
    out->family = f;
    out->layer_index = origin->layer_index;
    out->expert = origin->expert;
    out->item_bytes = item;
    for (uint32_t d = family->ndim; d-- > 0;) {
        out->index[d] = element % family->shape[d];
        element /= family->shape[d];
    }
    memcpy(out->expected, &wanted, item);
    RF_CUDA_CHECK(err, cudaMemcpy(out->found,
                                  (const unsigned char *)job->arena->base +
                                      s->arena_offset + row * s->arena_pitch +
                                      column,
                                  item, cudaMemcpyDeviceToHost));
    return RF_OK;
}

static enum rf_status cuda_verify(const struct rf_content_job *job,
                                  struct rf_verify_result *out,
                                  struct rf_err *err)
{
    struct arena_tables *tables;
    struct rf_verify_counts counts;
    memset(out, 0, sizeof(*out));
    if (job->arena->base == NULL) {
        return RF_OK;
    }
    RF_TRY(tables_of(job, &tables, err));
    RF_TRY(rf_device_verify(&tables->content, job->arena->base, job->iteration,
                            &counts, err));
    out->checked_bytes = tables->slices.bytes;
    out->mismatched_bytes = counts.mismatched_bytes;
    return counts.mismatched_bytes > 0
               ? locate(tables, job, counts.first, out, err)
               : RF_OK;
}

static enum rf_status cuda_flip(struct rf_arena *arena, uint64_t offset,
                                struct rf_err *err)
{
    unsigned char byte;
    unsigned char *at = (unsigned char *)arena->base + offset;
    RF_CUDA_CHECK(err, cudaMemcpy(&byte, at, 1, cudaMemcpyDeviceToHost));
    byte ^= 0xFF;
    RF_CUDA_CHECK(err, cudaMemcpy(at, &byte, 1, cudaMemcpyHostToDevice));
    return RF_OK;
}

static enum rf_status cuda_read(const struct rf_arena *arena, uint64_t offset,
                                uint64_t bytes, void *dst, struct rf_err *err)
{
    RF_CUDA_CHECK(err,
                  cudaMemcpy(dst, (const unsigned char *)arena->base + offset,
                             bytes, cudaMemcpyDeviceToHost));
    return RF_OK;
}

static enum rf_status cuda_write(const struct rf_arena *arena, uint64_t offset,
                                 uint64_t bytes, const void *src,
                                 struct rf_err *err)
{
    RF_CUDA_CHECK(err, cudaMemcpy((unsigned char *)arena->base + offset, src,
                                  bytes, cudaMemcpyHostToDevice));
    return RF_OK;
}

/* Pinned host memory. */
static enum rf_status cuda_buffer_alloc(uint64_t bytes, void **out,
                                        struct rf_err *err)
{
    RF_CUDA_CHECK(err, cudaMallocHost(out, bytes));
    return RF_OK;
}

static void cuda_buffer_free(void *buffer)
{
    if (buffer != NULL && !rf_device_abandoned()) {
        cudaFreeHost(buffer);
    }
}

static uint64_t cuda_used(void)
{
    return rf_device_abandoned() ? arenas_now
                                 : RF_MAX(arenas_now, rf_memory_usage_now());
}

const struct rf_memory_ops rf_memory_cuda = {
    .name = "cuda",
    .alloc = cuda_alloc,
    .free = cuda_free,
    .fill = cuda_fill,
    .poison = cuda_poison,
    .verify = cuda_verify,
    .flip = cuda_flip,
    .read = cuda_read,
    .write = cuda_write,
    .buffer_alloc = cuda_buffer_alloc,
    .buffer_free = cuda_buffer_free,
    .quantizer_create = rf_fp8_quantizer_create,
    .quantizer_run = rf_fp8_job_run,
    .quantizer_destroy = rf_fp8_job_destroy,
    .load_bytes = RF_DEVICE_LOAD_BYTES,
    .load_create = rf_device_load_create,
    .load_step = rf_device_load_step,
    .load_destroy = rf_device_load_destroy,
    .used = cuda_used,
};

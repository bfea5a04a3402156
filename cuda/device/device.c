/*
 * Device, kernels and launches. The kernels are a fat binary inside this module
 * (cuda/device/fatbin.S), loaded through the runtime's library interface and
 * found by name: there is no C++ start-up code, and a fake runtime can serve
 * the same calls.
 */
#include "cuda/device/device.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/no_device.h"
#include "cuda/device/sm_share.h"
#include "cuda/nvml/memory_usage.h"
#include "cuda/nvml/nvml.h"

extern const unsigned char rf_cuda_fatbin[];

static const char *const kernel_names[] = {
#define X(name, args, tile) #name,
    RF_KERNELS(X)
#undef X
};

static struct {
    int device;
    int processors;
    cudaLibrary_t image;
    cudaKernel_t kernels[RF_KERNEL_COUNT];
    bool abandoned;
} state = {.device = -1};

enum rf_status rf_cuda_error(struct rf_err *err, const char *call,
                             cudaError_t code)
{
    const int name = (int)strcspn(call, "(");
    (void)cudaGetLastError();
    return rf_err_set(
        err, code == cudaErrorMemoryAllocation ? RF_ERR_NOMEM : RF_ERR_DEVICE,
        "%.*s: %s (%s)", name, call, cudaGetErrorString(code),
        cudaGetErrorName(code));
}

int rf_device_index(void)
{
    return state.device;
}

void rf_device_abandon(void)
{
    state.abandoned = true;
}

bool rf_device_abandoned(void)
{
    return state.abandoned;
}

enum rf_status rf_device_ready(struct rf_err *err)
{
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count <= 0) {
        return rf_device_why_none(code, err);
    }
    while (count-- > 0) { /* the reason, if any, is that of the first */
        if (rf_nvml_check_device(count, err) == RF_OK) {
            return RF_OK;
        }
    }
    return RF_ERR_UNSUPPORTED;
}

/* Slot n is device n. Tests may let ranks share devices; that makes timings
 * worthless, so it is opt-in. */
static enum rf_status device_of_slot(uint32_t slot, uint32_t *device,
                                     struct rf_err *err)
{
    const char *share = getenv("REFIT_SHARE_GPU");
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count <= 0) {
        return rf_device_why_none(code, err);
    }
    if (slot >= (uint32_t)count && (share == NULL || strcmp(share, "1") != 0)) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "slot %u has no GPU: this node has %d; lower \"slots\" (or share "
            "GPUs, for tests: REFIT_SHARE_GPU=1 in launch.env)",
            slot, count);
    }
    *device = slot % (uint32_t)count;
    return RF_OK;
}

enum rf_status rf_device_use(uint32_t slot, struct rf_err *err)
{
    uint32_t device = 0;
    cudaError_t code;
    RF_TRY(device_of_slot(slot, &device, err));
    if (state.device >= 0) {
        if (state.device != (int)device) {
            return rf_err_set(err, RF_ERR_INTERNAL,
                              "device %u asked for, device %d is in use",
                              device, state.device);
        }
        RF_CUDA_CHECK(err, cudaSetDevice((int)device));
        return RF_OK;
    }
    RF_TRY(rf_nvml_check_device((int)device, err));
    rf_memory_usage_begin((int)device);
    code = cudaSetDevice((int)device);
    if (code == cudaErrorDevicesUnavailable) {
        const enum rf_status status = rf_cuda_error(err, "cudaSetDevice", code);
        rf_err_wrap(err,
                    "GPU %u is busy: another process has it in exclusive mode",
                    device);
        return status;
    }
    RF_CUDA_CHECK(err, code);
    rf_memory_usage_have_context();
    RF_CUDA_CHECK(err, cudaDeviceGetAttribute(&state.processors,
                                              cudaDevAttrMultiProcessorCount,
                                              (int)device));
    RF_CUDA_CHECK(err, cudaLibraryLoadData(&state.image, rf_cuda_fatbin, NULL,
                                           NULL, 0, NULL, NULL, 0));
    for (int k = 0; k < RF_KERNEL_COUNT; k++) {
        RF_CUDA_CHECK(err, cudaLibraryGetKernel(&state.kernels[k], state.image,
                                                kernel_names[k]));
    }
    state.device = (int)device;
    return RF_OK;
}

enum rf_status rf_device_upload(const void *table, size_t bytes,
                                const struct rf_tiles *tiles, size_t extra,
                                struct rf_device_table *out, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    struct rf_device_table made = {.memory = NULL};
    uint64_t total = rf_align_up(bytes, 256) + rf_align_up(extra, 256), at;
    for (int c = 0; c < RF_UNIT_CLASSES; c++) {
        total += rf_align_up(tiles->n[c] * sizeof(struct rf_tile), 256);
        if (tiles->n[c] > UINT32_MAX) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "%zu tiles exceed one launch", tiles->n[c]);
        }
    }
    RF_CUDA_TRY(err, out, cudaMalloc(&made.memory, total + 256));
    if (bytes > 0) {
        RF_CUDA_TRY(
            err, out,
            cudaMemcpy(made.memory, table, bytes, cudaMemcpyHostToDevice));
    }
    at = rf_align_up(bytes, 256);
    for (int c = 0; c < RF_UNIT_CLASSES; c++) {
        const size_t size = tiles->n[c] * sizeof(struct rf_tile);
        void *to = (unsigned char *)made.memory + at;
        if (size > 0) {
            RF_CUDA_TRY(
                err, out,
                cudaMemcpy(to, tiles->tiles[c], size, cudaMemcpyHostToDevice));
        }
        made.tiles[c] = to;
        made.n[c] = (uint32_t)tiles->n[c];
        at += rf_align_up(size, 256);
    }
    made.extra = (unsigned char *)made.memory + at;
    /* A copy from pageable memory may outlast its call, and the streams that
     * read the tables do not wait for the NULL stream. */
    RF_CUDA_TRY(err, out, cudaStreamSynchronize(NULL));
out:
    if (status != RF_OK) {
        cudaFree(made.memory);
        return status;
    }
    *out = made;
    return RF_OK;
}

static void table_free(struct rf_device_table *table)
{
    if (table->memory != NULL && !state.abandoned) {
        cudaFree(table->memory);
    }
}

static enum rf_status launch(enum rf_kernel kernel, uint32_t n_tiles,
                             uint32_t most_blocks, void *args,
                             cudaStream_t stream, struct rf_err *err)
{
    const dim3 block = {RF_TILE_THREADS, 1, 1};
    const dim3 grid = {RF_MIN(n_tiles, most_blocks), 1, 1};
    void *list[] = {args};
    if (n_tiles == 0) {
        return RF_OK;
    }
    RF_CUDA_CHECK(err, cudaLaunchKernel((const void *)state.kernels[kernel],
                                        grid, block, list, 0, stream));
    return RF_OK;
}

static uint32_t all_blocks(void)
{
    return RF_TILE_BLOCKS * (uint32_t)state.processors;
}

enum rf_status rf_device_launch(enum rf_kernel kernel, uint32_t n_tiles,
                                void *args, cudaStream_t stream,
                                struct rf_err *err)
{
    return launch(kernel, n_tiles, all_blocks(), args, stream, err);
}

enum rf_status rf_device_stream(enum rf_stream_use use, cudaStream_t *out,
                                struct rf_err *err)
{
    int least = 0, greatest = 0;
    RF_CUDA_CHECK(err, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    RF_CUDA_CHECK(err, cudaStreamCreateWithPriority(
                           out, cudaStreamNonBlocking,
                           use == RF_STREAM_WIRE ? greatest : least));
    return RF_OK;
}

enum rf_status rf_device_pack_blocks(bool both, uint32_t *out,
                                     struct rf_err *err)
{
    return rf_sm_share_blocks((uint32_t)state.processors, both,
                              getenv(RF_SHARE_VARIABLE), out, err);
}

enum rf_status rf_device_slices_upload(const struct rf_slices *slices,
                                       uint32_t cast,
                                       struct rf_device_slices *out,
                                       struct rf_err *err)
{
    enum rf_status status;
    memset(out, 0, sizeof(*out));
    status = rf_device_upload(NULL, 0, &slices->tiles, 0, &out->table, err);
    out->cast = cast;
    out->bytes = slices->bytes;
    out->most_blocks = all_blocks();
    return status;
}

void rf_device_slices_free(struct rf_device_slices *slices)
{
    table_free(&slices->table);
    memset(slices, 0, sizeof(*slices));
}

enum rf_status rf_device_copy(const struct rf_device_slices *slices,
                              const struct rf_bases *bases, cudaStream_t stream,
                              struct rf_err *err)
{
    static const enum rf_kernel copies[RF_UNIT_CLASSES] = {
        RF_K_rf_kernel_copy1, RF_K_rf_kernel_copy2, RF_K_rf_kernel_copy4,
        RF_K_rf_kernel_copy8, RF_K_rf_kernel_copy16};
    static const enum rf_kernel narrows[RF_UNIT_CLASSES] = {
        [2] = RF_K_rf_kernel_narrow1, [4] = RF_K_rf_kernel_narrow4};
    static const enum rf_kernel widens[RF_UNIT_CLASSES] = {
        [1] = RF_K_rf_kernel_widen1, [3] = RF_K_rf_kernel_widen4};
    const enum rf_kernel *by_class =
        slices->cast == RF_KERNEL_CAST_F32_BF16   ? narrows
        : slices->cast == RF_KERNEL_CAST_BF16_F32 ? widens
                                                  : copies;
    struct rf_copy_args args = {.bases = *bases};
    for (int c = RF_UNIT_CLASSES; c-- > 0;) {
        args.tiles = slices->table.tiles[c];
        args.n_tiles = slices->table.n[c];
        RF_TRY(launch(by_class[c], slices->table.n[c], slices->most_blocks,
                      &args, stream, err));
    }
    return RF_OK;
}

enum rf_status rf_device_copies_upload(const struct rf_copies *copies,
                                       uint32_t cast,
                                       struct rf_device_slices out[2],
                                       struct rf_err *err)
{
    enum rf_status status = RF_OK;
    memset(out, 0, 2 * sizeof(*out));
    if (copies->plain.bytes > 0) {
        status = rf_device_slices_upload(&copies->plain, RF_KERNEL_CAST_NONE,
                                         &out[0], err);
    }
    if (status == RF_OK && copies->cast.bytes > 0) {
        status = rf_device_slices_upload(&copies->cast, cast, &out[1], err);
    }
    return status;
}

void rf_device_copies_limit(struct rf_device_slices copies[2],
                            uint32_t most_blocks)
{
    copies[0].most_blocks = copies[1].most_blocks = most_blocks;
}

enum rf_status rf_device_copies(const struct rf_device_slices copies[2],
                                const struct rf_bases *bases,
                                cudaStream_t stream, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (int i = 0; i < 2 && status == RF_OK; i++) {
        if (copies[i].table.memory != NULL) {
            status = rf_device_copy(&copies[i], bases, stream, err);
        }
    }
    return status;
}

enum rf_status rf_device_content_upload(const struct rf_content_slices *slices,
                                        uint32_t cast,
                                        struct rf_device_content *out,
                                        struct rf_err *err)
{
    memset(out, 0, sizeof(*out));
    out->cast = cast;
    return rf_device_upload(slices->at, slices->n * sizeof(*slices->at),
                            &slices->tiles, sizeof(struct rf_verify_counts),
                            &out->table, err);
}

void rf_device_content_free(struct rf_device_content *content)
{
    table_free(&content->table);
    memset(content, 0, sizeof(*content));
}

static enum rf_status content_launch(const struct rf_device_content *content,
                                     const enum rf_kernel by_class[4],
                                     void *arena, uint64_t round,
                                     cudaStream_t stream, struct rf_err *err)
{
    struct rf_content_args args = {.arena = arena,
                                   .slices = content->table.memory,
                                   .cast = content->cast,
                                   .round = round,
                                   .counts = content->table.extra};
    for (int c = 4; c-- > 0;) {
        args.tiles = content->table.tiles[c];
        args.n_tiles = content->table.n[c];
        RF_TRY(rf_device_launch(by_class[c], content->table.n[c], &args, stream,
                                err));
    }
    return RF_OK;
}

enum rf_status rf_device_fill(const struct rf_device_content *content,
                              void *arena, uint64_t round, cudaStream_t stream,
                              struct rf_err *err)
{
    static const enum rf_kernel by_class[4] = {
        RF_K_rf_kernel_fill1, RF_K_rf_kernel_fill2, RF_K_rf_kernel_fill4,
        RF_K_rf_kernel_fill8};
    return content_launch(content, by_class, arena, round, stream, err);
}

enum rf_status rf_device_verify(const struct rf_device_content *content,
                                void *arena, uint64_t round,
                                struct rf_verify_counts *out,
                                struct rf_err *err)
{
    static const enum rf_kernel by_class[4] = {
        RF_K_rf_kernel_verify1, RF_K_rf_kernel_verify2, RF_K_rf_kernel_verify4,
        RF_K_rf_kernel_verify8};
    const struct rf_verify_counts fresh = {.first = ~0ull};
    RF_CUDA_CHECK(err, cudaMemcpy(content->table.extra, &fresh, sizeof(fresh),
                                  cudaMemcpyHostToDevice));
    RF_TRY(content_launch(content, by_class, arena, round, NULL, err));
    RF_CUDA_CHECK(err, cudaMemcpy(out, content->table.extra, sizeof(*out),
                                  cudaMemcpyDeviceToHost));
    return RF_OK;
}

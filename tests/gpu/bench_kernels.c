/*
 * Single kernels against cudaMemcpy of as many bytes, by size of the grid:
 *     bench-gpu-kernels [MEBIBYTES [once]]
 * copy16 copies contiguous rows, copy8 to copy1 the same from addresses that
 * allow no wider unit, narrow4 and widen4 cast between float32 and bfloat16,
 * narrow1 and widen1 where no address is a multiple of four elements, verify8
 * compares with the pattern (so it only reads), fp8 casts matrices as a refit
 * does, with the grid that a refit uses. With `once` each kernel runs once, with
 * one grid, as a profiler wants it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/fp8.h"
#include "common/mem.h"
#include "cuda/device/fp8.h"
#include "tests/gpu/bench_lib.h"

#define ROUNDS 9
#define SLACK 4096
#define ROW ((uint64_t)4096)
#define TILE_ROWS 16
#define SEED 7

extern const unsigned char rf_cuda_fatbin[];

struct bench {
    unsigned char *src, *dst;
    uint64_t bytes;
    cudaStream_t stream;
    cudaLibrary_t image;
    int processors;
    unsigned rounds;
    bool once;
    struct rf_stopwatch watch;
    double memcpy_ms; /* of `bytes` */
};

static cudaKernel_t kernel(const struct bench *bench, const char *name)
{
    cudaKernel_t found;
    rf_bench_cuda(cudaLibraryGetKernel(&found, bench->image, name), name);
    return found;
}

/* Runs a kernel over n_tiles tiles with each grid. `moved` bytes are read and
 * written. */
static void run_grids(const struct bench *bench, const char *name,
                      uint32_t n_tiles, void *args, uint64_t moved)
{
    static const double blocks[] = {2, 0.25, 0.5, 1, 4};
    const cudaKernel_t function = kernel(bench, name);
    const dim3 block = {RF_TILE_THREADS, 1, 1};
    void *list[] = {args};
    const double memcpy_rate = 2 * (double)bench->bytes / bench->memcpy_ms;
    for (size_t g = 0; g < (bench->once ? 1 : RF_ARRAY_SIZE(blocks)); g++) {
        const double wanted = blocks[g] * bench->processors;
        const dim3 grid = {RF_MIN(n_tiles, (uint32_t)(wanted < 1 ? 1 : wanted)),
                           1, 1};
        struct rf_samples samples = {.n = 0};
        char label[96];
        for (unsigned i = 0; i < bench->rounds; i++) {
            rf_stopwatch_begin(&bench->watch, bench->stream);
            rf_bench_cuda(cudaLaunchKernel((const void *)function, grid, block,
                                           list, 0, bench->stream),
                          name);
            rf_stopwatch_end(&bench->watch, bench->stream);
            rf_sample(&samples, rf_stopwatch_ms(&bench->watch));
        }
        snprintf(label, sizeof(label), "%s, %u blocks", name + 10, grid.x);
        rf_figure(label, "ms", moved,
                  (double)moved / rf_samples_median(&samples) / memcpy_rate,
                  &samples);
    }
}

/* Runs the kernel of a slice's class, which all of it must have. */
static void bench_slice(const struct bench *bench, const char *name,
                        const struct rf_slice *slice, uint32_t cast,
                        uint64_t moved)
{
    struct rf_slices host = {0};
    struct rf_device_table table;
    struct rf_copy_args args = {.bases.at = {bench->src, bench->dst}};
    struct rf_err err;
    int class = 0;
    rf_slices_add(&host, *slice, cast);
    rf_bench_must(rf_device_upload(NULL, 0, &host.tiles, 0, &table, &err),
                  &err);
    while (class + 1 < RF_UNIT_CLASSES && table.n[class] == 0) {
        class ++;
    }
    args.tiles = table.tiles[class];
    args.n_tiles = table.n[class];
    run_grids(bench, name, args.n_tiles, &args, moved);
    rf_bench_cuda(cudaFree(table.memory), "cudaFree");
    rf_slices_free(&host);
}

static void bench_copy(const struct bench *bench, const char *name,
                       uint64_t misalign)
{
    const uint64_t rows = bench->bytes / (ROW + 2 * misalign);
    const struct rf_slice slice = {.dst_base = 1,
                                   .src_offset = misalign,
                                   .src_pitch = ROW + 2 * misalign,
                                   .dst_pitch = ROW,
                                   .width = ROW,
                                   .rows = rows};
    bench_slice(bench, name, &slice, RF_KERNEL_CAST_NONE, 2 * rows * ROW);
}

/* `skip` elements at the start leave the rest without alignment. */
static void bench_cast(const struct bench *bench, const char *name,
                       uint32_t cast, uint64_t skip)
{
    const bool narrow = cast == RF_KERNEL_CAST_F32_BF16;
    const uint64_t src_item = narrow ? 4 : 2, dst_item = narrow ? 2 : 4;
    const uint64_t elements = bench->bytes / 4;
    const struct rf_slice slice = {.dst_base = 1,
                                   .src_offset = skip * src_item,
                                   .dst_offset = skip * dst_item,
                                   .width = elements * src_item,
                                   .rows = 1};
    bench_slice(bench, name, &slice, cast, elements * (src_item + dst_item));
}

/* One tensor as rows of 4 KiB, in tiles of 64 KiB as those of a refit. */
static void bench_verify(const struct bench *bench)
{
    const struct rf_content_slice slice = {.seed = SEED,
                                           .logical_pitch = ROW,
                                           .arena_pitch = ROW,
                                           .width = ROW,
                                           .rows = bench->bytes / ROW};
    const struct rf_verify_counts none = {.first = ~0ull};
    struct rf_tiles tiles = {0};
    struct rf_device_table table;
    struct rf_content_args args = {.arena = bench->src};
    struct rf_verify_counts counts;
    struct rf_err err;
    for (uint64_t row = 0; row < slice.rows; row += TILE_ROWS) {
        RF_PUSH(tiles.tiles[3], tiles.n[3], tiles.capacity[3],
                ((struct rf_tile){.rows = (uint32_t)RF_MIN(slice.rows - row,
                                                           (uint64_t)TILE_ROWS),
                                  .row = row,
                                  .units = ROW / 8,
                                  .group_log2 = 9}));
    }
    rf_bench_must(rf_device_upload(&slice, sizeof(slice), &tiles, sizeof(none),
                                   &table, &err),
                  &err);
    rf_bench_cuda(
        cudaMemcpy(table.extra, &none, sizeof(none), cudaMemcpyHostToDevice),
        "cudaMemcpy");
    args.slices = table.memory;
    args.tiles = table.tiles[3];
    args.n_tiles = table.n[3];
    args.counts = table.extra;
    run_grids(bench, "rf_kernel_fill8", args.n_tiles, &args, bench->bytes);
    run_grids(bench, "rf_kernel_verify8", args.n_tiles, &args, bench->bytes);
    rf_bench_cuda(cudaMemcpy(&counts, table.extra, sizeof(counts),
                             cudaMemcpyDeviceToHost),
                  "cudaMemcpy");
    if (counts.mismatched_bytes != 0) {
        fprintf(stderr, "bench: verify8 found %llu wrong bytes\n",
                counts.mismatched_bytes);
        exit(1);
    }
    rf_bench_cuda(cudaFree(table.memory), "cudaFree");
    free(tiles.tiles[3]);
}

static void bench_fp8(const struct bench *bench)
{
    const uint64_t columns = 4096, rows = bench->bytes / 2 / columns;
    const uint64_t moved = rows * columns * 3;
    void *scales =
        rf_bench_memory(sizeof(float) * rf_div_up(rows, RF_FP8_BLOCK) *
                        rf_div_up(columns, RF_FP8_BLOCK));
    const struct rf_fp8_matrix matrix = {.src = bench->src,
                                         .dst = bench->dst,
                                         .scale_inv = scales,
                                         .rows = rows,
                                         .columns = columns,
                                         .src_pitch = columns,
                                         .dst_pitch = columns};
    struct rf_samples samples = {.n = 0};
    void *job;
    struct rf_err err;
    rf_bench_must(rf_fp8_job_create(&matrix, 1, &job, &err), &err);
    for (unsigned i = 0; i < bench->rounds; i++) {
        int64_t ns;
        rf_bench_must(rf_fp8_job_run(job, NULL, &ns, &err), &err);
        rf_sample(&samples, (double)ns / 1e6);
    }
    rf_figure("fp8, the grid of refits", "ms", moved,
              (double)moved / rf_samples_median(&samples) /
                  (2 * (double)bench->bytes / bench->memcpy_ms),
              &samples);
    rf_fp8_job_destroy(job);
    rf_bench_cuda(cudaFree(scales), "cudaFree");
}

static void open_bench(struct bench *bench, uint64_t mebibytes, bool once)
{
    struct rf_samples samples;
    memset(bench, 0, sizeof(*bench));
    rf_bench_open_device();
    bench->bytes = mebibytes << 20;
    bench->once = once;
    bench->rounds = once ? 1 : ROUNDS;
    bench->src = rf_bench_memory(bench->bytes + SLACK);
    bench->dst = rf_bench_memory(bench->bytes + SLACK);
    bench->watch = rf_stopwatch_new();
    rf_bench_cuda(
        cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
    rf_bench_cuda(cudaDeviceGetAttribute(&bench->processors,
                                         cudaDevAttrMultiProcessorCount, 0),
                  "cudaDeviceGetAttribute");
    rf_bench_cuda(cudaLibraryLoadData(&bench->image, rf_cuda_fatbin, NULL, NULL,
                                      0, NULL, NULL, 0),
                  "cudaLibraryLoadData");
    rf_bench_memcpy(bench->dst, bench->src, bench->bytes, bench->stream,
                    bench->rounds, &samples);
    bench->memcpy_ms = rf_samples_median(&samples);
    rf_figure("cudaMemcpyAsync", "ms", 2 * bench->bytes, 1, &samples);
}

int main(int argc, char **argv)
{
    const uint64_t mebibytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
    const bool once = argc > 2 && strcmp(argv[2], "once") == 0;
    struct bench bench;
    if (mebibytes < 1 || mebibytes > 16384 || argc > 3 || (argc > 2 && !once)) {
        fputs("usage: bench-gpu-kernels [MEBIBYTES [once]], 1 to 16384\n",
              stderr);
        return 2;
    }
    open_bench(&bench, mebibytes, once);
    bench_copy(&bench, "rf_kernel_copy16", 0);
    bench_copy(&bench, "rf_kernel_copy8", 8);
    bench_copy(&bench, "rf_kernel_copy4", 4);
    bench_copy(&bench, "rf_kernel_copy2", 2);
    bench_copy(&bench, "rf_kernel_copy1", 1);
    bench_cast(&bench, "rf_kernel_narrow4", RF_KERNEL_CAST_F32_BF16, 0);
    bench_cast(&bench, "rf_kernel_narrow1", RF_KERNEL_CAST_F32_BF16, 1);
    bench_cast(&bench, "rf_kernel_widen4", RF_KERNEL_CAST_BF16_F32, 0);
    bench_cast(&bench, "rf_kernel_widen1", RF_KERNEL_CAST_BF16_F32, 1);
    bench_verify(&bench);
    bench_fp8(&bench);
    return 0;
}

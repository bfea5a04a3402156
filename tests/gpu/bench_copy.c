/*
 * What the copy kernels reach of the device's own copy bandwidth, for the
 * shapes that refits are made of. Each shape moves the same number of bytes;
 * the ceiling is cudaMemcpyAsync, device to device, of as many bytes in the
 * same run, best of several rounds in turn, timed with events. Bandwidths count
 * bytes read and bytes written. Fewer bytes than the second argument, in MiB,
 * measure launches and caches: no ratio is wanted of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/gpu/bench_lib.h"

#define ROUNDS 7
#define SLACK 4096 /* behind each buffer */

struct shape {
    const char *name;
    uint64_t width, pitch; /* of the source; the destination is dense */
    uint64_t misalign;
    double wanted; /* least ratio, 0: reported only */
};

static const struct shape shapes[] = {
    {"contiguous", (uint64_t)1 << 20, (uint64_t)1 << 20, 0, 0.9},
    {"row shard, 16 MiB tensors", (uint64_t)16 << 20, (uint64_t)32 << 20, 0,
     0.9},
    {"column shard, 1792-byte rows", 1792, 14336, 0, 0.9},
    {"64-byte rows", 64, 512, 0, 0},
    {"odd byte offset", (uint64_t)1 << 20, ((uint64_t)1 << 20) + 2, 1, 0},
};

struct bench {
    unsigned char *src, *dst;
    cudaStream_t stream;
    struct rf_stopwatch watch;
    uint64_t total, source_bytes;
    bool judged;
};

static double memcpy_ms(const struct bench *bench, uint64_t bytes)
{
    rf_stopwatch_begin(&bench->watch, bench->stream);
    rf_bench_cuda(cudaMemcpyAsync(bench->dst, bench->src, bytes,
                                  cudaMemcpyDeviceToDevice, bench->stream),
                  "cudaMemcpyAsync");
    rf_stopwatch_end(&bench->watch, bench->stream);
    return rf_stopwatch_ms(&bench->watch);
}

static double kernel_ms(const struct bench *bench,
                        const struct rf_device_slices *slices)
{
    const struct rf_bases bases = {.at = {bench->src, bench->dst}};
    struct rf_err err;
    rf_stopwatch_begin(&bench->watch, bench->stream);
    rf_bench_must(rf_device_copy(slices, &bases, bench->stream, &err), &err);
    rf_stopwatch_end(&bench->watch, bench->stream);
    return rf_stopwatch_ms(&bench->watch);
}

static double wanted_of(const struct bench *bench, const struct shape *shape)
{
    return bench->judged ? shape->wanted : 0;
}

/* A strided source spans up to 8 times what it gives: shapes are cut so that
 * the span stays within the source buffer. */
static bool run(const struct bench *bench, const struct shape *shape)
{
    const uint64_t rows = RF_MIN(bench->total / shape->width,
                                 (bench->source_bytes - SLACK) / shape->pitch);
    const uint64_t bytes = rows * shape->width;
    struct rf_slices host = {0};
    struct rf_device_slices device;
    struct rf_err err;
    const double wanted = wanted_of(bench, shape);
    double copy = 0, kernel = 0, ratio;
    rf_slices_add(&host,
                  (struct rf_slice){.dst_base = 1,
                                    .src_offset = shape->misalign,
                                    .src_pitch = shape->pitch,
                                    .dst_pitch = shape->width,
                                    .width = shape->width,
                                    .rows = rows},
                  RF_KERNEL_CAST_NONE);
    rf_bench_must(
        rf_device_slices_upload(&host, RF_KERNEL_CAST_NONE, &device, &err),
        &err);
    for (int i = 0; i < ROUNDS; i++) {
        const double c = memcpy_ms(bench, bytes);
        const double k = kernel_ms(bench, &device);
        copy = i == 0 || c < copy ? c : copy;
        kernel = i == 0 || k < kernel ? k : kernel;
    }
    ratio = copy / kernel;
    printf("%-30s %8.1f MB  kernel %8.1f GB/s  cudaMemcpy %8.1f GB/s  "
           "ratio %.3f%s\n",
           shape->name, (double)bytes / 1e6, 2e-6 * (double)bytes / kernel,
           2e-6 * (double)bytes / copy, ratio,
           wanted == 0       ? ""
           : ratio >= wanted ? "  ok"
                             : "  below 0.9");
    rf_device_slices_free(&device);
    rf_slices_free(&host);
    return ratio >= wanted;
}

static void open_bench(struct bench *bench, uint64_t mebibytes)
{
    memset(bench, 0, sizeof(*bench));
    rf_bench_open_device();
    bench->total = mebibytes << 20;
    bench->source_bytes = 8 * bench->total + SLACK;
    bench->src = rf_bench_memory(bench->source_bytes);
    bench->dst = rf_bench_memory(bench->total + SLACK);
    bench->watch = rf_stopwatch_new();
    rf_bench_cuda(
        cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
}

int main(int argc, char **argv)
{
    const uint64_t mebibytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
    const uint64_t least = argc > 2 ? strtoull(argv[2], NULL, 10) : 256;
    struct bench bench;
    int passed = 0, failed = 0, reported = 0;
    if (mebibytes < 16 || mebibytes > 16384) {
        fputs("usage: bench-gpu-copy [MEBIBYTES [JUDGED_FROM]], 16 to 16384\n",
              stderr);
        return 2;
    }
    open_bench(&bench, mebibytes);
    bench.judged = mebibytes >= least;
    for (size_t i = 0; i < RF_ARRAY_SIZE(shapes); i++) {
        const bool good = run(&bench, &shapes[i]);
        reported += wanted_of(&bench, &shapes[i]) == 0;
        passed += wanted_of(&bench, &shapes[i]) > 0 && good;
        failed += !good;
    }
    printf("%d passed, %d failed, %d only reported\n", passed, failed,
           reported);
    return failed == 0 ? 0 : 1;
}

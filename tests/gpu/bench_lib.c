/* See bench_lib.h. */
#include "tests/gpu/bench_lib.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/stats.h"

void rf_bench_must(enum rf_status status, const struct rf_err *err)
{
    if (status != RF_OK) {
        fprintf(stderr, "bench: %s\n", err->text);
        exit(1);
    }
}

void rf_bench_cuda(cudaError_t code, const char *what)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "bench: %s: %s (%s)\n", what, cudaGetErrorString(code),
                cudaGetErrorName(code));
        exit(1);
    }
}

void rf_bench_open_device(void)
{
    struct rf_err err;
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        printf("skipped: no GPU here (%s)\n", cudaGetErrorName(code));
        exit(77);
    }
    rf_bench_must(rf_device_use(0, &err), &err);
}

void *rf_bench_memory(uint64_t bytes)
{
    void *made = NULL;
    rf_bench_cuda(cudaMalloc(&made, bytes), "cudaMalloc");
    rf_bench_cuda(cudaMemset(made, 1, bytes), "cudaMemset");
    return made;
}

struct rf_stopwatch rf_stopwatch_new(void)
{
    struct rf_stopwatch watch;
    rf_bench_cuda(cudaEventCreate(&watch.begin), "cudaEventCreate");
    rf_bench_cuda(cudaEventCreate(&watch.end), "cudaEventCreate");
    return watch;
}

void rf_stopwatch_begin(const struct rf_stopwatch *watch, cudaStream_t stream)
{
    rf_bench_cuda(cudaEventRecord(watch->begin, stream), "cudaEventRecord");
}

void rf_stopwatch_end(const struct rf_stopwatch *watch, cudaStream_t stream)
{
    rf_bench_cuda(cudaEventRecord(watch->end, stream), "cudaEventRecord");
}

double rf_stopwatch_ms(const struct rf_stopwatch *watch)
{
    float ms = 0;
    rf_bench_cuda(cudaEventSynchronize(watch->end), "cudaEventSynchronize");
    rf_bench_cuda(cudaEventElapsedTime(&ms, watch->begin, watch->end),
                  "cudaEventElapsedTime");
    return (double)ms;
}

void rf_sample(struct rf_samples *samples, double value)
{
    if (samples->n < RF_BENCH_MAX_SAMPLES) {
        samples->at[samples->n++] = value;
    }
}

double rf_samples_median(const struct rf_samples *samples)
{
    struct rf_samples sorted = *samples;
    const unsigned n = sorted.n;
    qsort(sorted.at, n, sizeof(sorted.at[0]), rf_stats_by_value);
    return n == 0       ? 0
           : n % 2 != 0 ? sorted.at[n / 2]
                        : (sorted.at[n / 2 - 1] + sorted.at[n / 2]) / 2;
}

void rf_figure(const char *name, const char *unit, uint64_t bytes,
               double of_memcpy, const struct rf_samples *samples)
{
    printf("{\"figure\": \"%s\", \"unit\": \"%s\"", name, unit);
    if (bytes > 0) {
        printf(", \"bytes\": %" PRIu64, bytes);
    }
    if (of_memcpy > 0) {
        printf(", \"of_memcpy\": %.4f", of_memcpy);
    }
    printf(", \"samples\": [");
    for (unsigned i = 0; i < samples->n; i++) {
        printf("%s%.6g", i > 0 ? ", " : "", samples->at[i]);
    }
    printf("]}\n");
    fflush(stdout);
}

void rf_bench_memcpy(void *to, const void *from, uint64_t bytes,
                     cudaStream_t stream, unsigned rounds,
                     struct rf_samples *samples)
{
    const struct rf_stopwatch watch = rf_stopwatch_new();
    samples->n = 0;
    for (unsigned i = 0; i < rounds; i++) {
        rf_stopwatch_begin(&watch, stream);
        rf_bench_cuda(
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpyAsync");
        rf_stopwatch_end(&watch, stream);
        rf_sample(samples, rf_stopwatch_ms(&watch));
    }
    rf_bench_cuda(cudaEventDestroy(watch.begin), "cudaEventDestroy");
    rf_bench_cuda(cudaEventDestroy(watch.end), "cudaEventDestroy");
}

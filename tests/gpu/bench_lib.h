/* What the benchmarks on a device share: errors end them, and every figure is a
 * line of JSON with its raw samples, which first-hour collects. */
#ifndef RF_TESTS_GPU_BENCH_LIB_H
#define RF_TESTS_GPU_BENCH_LIB_H

#include <stdbool.h>

#include "cuda/device/device.h"

#define RF_BENCH_MAX_SAMPLES 1024

struct rf_samples {
    double at[RF_BENCH_MAX_SAMPLES];
    unsigned n;
};

void rf_bench_must(enum rf_status status, const struct rf_err *err);
void rf_bench_cuda(cudaError_t code, const char *what);

/* Exits with 77 and the reason where there is no device; uses device 0. */
void rf_bench_open_device(void);
void *rf_bench_memory(uint64_t bytes);

/* Event pairs around what a stream does between begin and end. */
struct rf_stopwatch {
    cudaEvent_t begin, end;
};
struct rf_stopwatch rf_stopwatch_new(void);
void rf_stopwatch_begin(const struct rf_stopwatch *watch, cudaStream_t stream);
void rf_stopwatch_end(const struct rf_stopwatch *watch, cudaStream_t stream);
double rf_stopwatch_ms(const struct rf_stopwatch *watch); /* waits */

void rf_sample(struct rf_samples *samples, double value);
double rf_samples_median(const struct rf_samples *samples);

/* Prints a figure. `bytes` are those read plus those written, 0: no bandwidth;
 * `of_memcpy` is the share of cudaMemcpy's bandwidth, 0: none. */
void rf_figure(const char *name, const char *unit, uint64_t bytes,
               double of_memcpy, const struct rf_samples *samples);

/* Samples of cudaMemcpyAsync, device to device, in ms. */
void rf_bench_memcpy(void *to, const void *from, uint64_t bytes,
                     cudaStream_t stream, unsigned rounds,
                     struct rf_samples *samples);

#endif

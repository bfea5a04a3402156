/*
 * Conversion of a bfloat16 matrix to each format on one processor, against
 * memcpy() of the same matrix: the median rates in GB/s of bfloat16, and the
 * median of the ratios to the copy of the same round. Times are those of the
 * processor, so that other processes' turns do not count.
 *
 *     bench-convert [MEGABYTES [ROUNDS]]
 *
 * Ends with the goals, and fails if one is missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "common/stats.h"
#include "worker/content/convert.h"

#define COLUMNS UINT64_C(4096)
#define MAX_ROUNDS 64
#define PAGE_BYTES 4096

/* Of memcpy; 0: none. */
static const double goals[RF_QUANTS] = {[RF_FP8_BLOCK128] = 0.8,
                                        [RF_FP8_BLOCK128_UE8M0] = 0.8,
                                        [RF_MXFP8] = 0.8,
                                        [RF_NVFP4] = 0.4};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(const struct rf_quant_format *format,
                         const struct rf_convert_rows *rows)
{
    const double before = now_s();
    if (format == NULL) {
        memcpy(rows->values, rows->src, 2 * rows->rows * rows->columns);
    } else if (!rf_convert_run(format, rows)) {
        fprintf(stderr, "bench-convert: the matrix is not finite\n");
        exit(EXIT_FAILURE);
    }
    return now_s() - before;
}

/* Prints a format's line; false: its goal is missed. */
static bool measure(const struct rf_quant_format *format,
                    const struct rf_convert_rows *rows, unsigned rounds)
{
    const double bytes = 2.0 * (double)(rows->rows * rows->columns);
    const double goal = goals[format->id];
    double rates[MAX_ROUNDS] = {0}, ratios[MAX_ROUNDS] = {0};
    struct rf_stats rate, ratio;
    for (unsigned i = 0; i < rounds; i++) {
        const double copied = seconds_of(NULL, rows);
        const double converted = seconds_of(format, rows);
        rates[i] = bytes / converted / 1e9;
        ratios[i] = copied / converted;
    }
    rf_stats_compute(rates, rounds, &rate);
    rf_stats_compute(ratios, rounds, &ratio);
    printf("%-18s  %6.2f GB/s  %5.2f of memcpy", format->name, rate.median,
           ratio.median);
    if (goal > 0) {
        printf(", goal %.2f: %s", goal, ratio.median >= goal ? "ok" : "MISSED");
    }
    printf("\n");
    return ratio.median >= goal;
}

int main(int argc, char **argv)
{
    const uint64_t megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 64;
    const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 15;
    struct rf_convert_rows rows = {.rows = megabytes * 1000000 / COLUMNS / 2,
                                   .columns = COLUMNS,
                                   .pitch = 2 * COLUMNS,
                                   .amax = 1.9921875f};
    const uint64_t n = rows.rows * COLUMNS;
    uint16_t *x;
    bool met = true;
    if (n == 0 || rounds == 0 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench-convert [MEGABYTES [ROUNDS, 1 to %d]]\n",
                MAX_ROUNDS);
        return 2;
    }
    x = rf_xcalloc(n, sizeof(*x));
    for (uint64_t i = 0; i < n; i++) { /* from 2^-15 to 2 */
        x[i] = (uint16_t)((rf_mix64(i) & 0x87FF) | 0x3800);
    }
    rows.src = (const uint8_t *)x;
    rows.values = /* as in arenas */
        aligned_alloc(PAGE_BYTES, rf_align_up(2 * n, PAGE_BYTES));
    if (rows.values == NULL) {
        fprintf(stderr, "bench-convert: out of memory\n");
        return EXIT_FAILURE;
    }
    memset(rows.values, 0, 2 * n);
    rows.scales = rf_xcalloc(n / 16 + 1, 4);
    for (int f = 0; f < RF_QUANTS; f++) {
        met &= measure(&rf_quant_formats[f], &rows, rounds);
    }
    free(x);
    free(rows.values);
    free(rows.scales);
    return met ? EXIT_SUCCESS : EXIT_FAILURE;
}

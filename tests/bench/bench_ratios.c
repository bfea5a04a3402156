/*
 * Tables of samples that were taken in turn. Reads lines ROW, round, name,
 * value, separated by tabs; prints for each row a Markdown table with each
 * name's median and the median of its ratio to the row's first name, round by
 * round, with the 95 % interval of that median.
 *
 *     bench-ratios UNIT <samples
 */
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "common/stats.h"

#define MAX_NAMES 16
#define MAX_ROUNDS 256
#define NAME_SIZE 64

struct series {
    char name[NAME_SIZE];
    double value[MAX_ROUNDS]; /* 0: not sampled */
};

struct row {
    char name[NAME_SIZE];
    struct series series[MAX_NAMES];
    size_t n_series;
};

static struct series *series_of(struct row *row, const char *name)
{
    for (size_t i = 0; i < row->n_series; i++) {
        if (strcmp(row->series[i].name, name) == 0) {
            return &row->series[i];
        }
    }
    if (row->n_series == MAX_NAMES) {
        return NULL;
    }
    snprintf(row->series[row->n_series].name, NAME_SIZE, "%s", name);
    return &row->series[row->n_series++];
}

static void print_series(const struct series *series,
                         const struct series *first, const char *unit)
{
    double values[MAX_ROUNDS], ratios[MAX_ROUNDS], low = 0, high = 0;
    struct rf_stats time, ratio;
    size_t n = 0;
    for (size_t i = 0; i < MAX_ROUNDS; i++) {
        if (series->value[i] > 0 && first->value[i] > 0) {
            values[n] = series->value[i];
            ratios[n++] = series->value[i] / first->value[i];
        }
    }
    rf_stats_compute(values, n, &time);
    rf_stats_compute(ratios, n, &ratio);
    printf("| %s | %.4g %s | %.2f", series->name, time.median, unit,
           ratio.median);
    if (rf_stats_median_interval(ratios, n, &low, &high)) {
        printf(" [%.2f, %.2f]", low, high);
    }
    printf(" | %zu |\n", n);
}

static void print_row(const struct row *row, const char *unit)
{
    if (row->n_series == 0) {
        return;
    }
    printf("\n%s\n\n| | median | ratio to %s | rounds |\n|---|---|---|---|\n",
           row->name, row->series[0].name);
    for (size_t i = 0; i < row->n_series; i++) {
        print_series(&row->series[i], &row->series[0], unit);
    }
}

int main(int argc, char **argv)
{
    static struct row row;
    const char *unit = argc > 1 ? argv[1] : "";
    char line[512], name[NAME_SIZE], of[NAME_SIZE];
    unsigned round;
    double value;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct series *series;
        if (sscanf(line, "%63[^\t]\t%u\t%63[^\t]\t%lf", name, &round, of,
                   &value) != 4 ||
            round >= MAX_ROUNDS) {
            fprintf(stderr, "bench-ratios: not a sample: %s", line);
            return 1;
        }
        if (strcmp(row.name, name) != 0) {
            print_row(&row, unit);
            memset(&row, 0, sizeof(row));
            snprintf(row.name, NAME_SIZE, "%s", name);
        }
        series = series_of(&row, of);
        if (series == NULL) {
            fprintf(stderr, "bench-ratios: too many names in %s\n", name);
            return 1;
        }
        series->value[round] = value;
    }
    print_row(&row, unit);
    return 0;
}

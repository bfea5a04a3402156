/* Output of one rank in an attempt: its first and last lines. */
#ifndef RF_COORDINATOR_SCENARIO_RANK_LOG_H
#define RF_COORDINATOR_SCENARIO_RANK_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RF_RANK_LOG_LINES 200 /* kept of the start, and as many of the end */

struct rf_rank_line {
    char *phase; /* "running iteration 2 of 20" */
    char *text;
};

struct rf_rank_log { /* zero-initialised */
    struct rf_rank_line *first;
    struct rf_rank_line *last; /* a ring; NULL until `first` is full */
    size_t n_first, cap_first;
    uint64_t n_last; /* ever added to `last` */
};

/* Adds a line of clean text and the phase in which it came. */
void rf_rank_log_add(struct rf_rank_log *log, const char *phase,
                     const char *line);

/* Prints all kept lines by phase, and the number of dropped ones. */
void rf_rank_log_print(const struct rf_rank_log *log, FILE *to);
void rf_rank_log_free(struct rf_rank_log *log);

#endif

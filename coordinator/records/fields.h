/* What is read of a scenario's record, and how it is shown. */
#ifndef RF_COORDINATOR_RECORDS_FIELDS_H
#define RF_COORDINATOR_RECORDS_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/stats.h"

enum rf_result_kind {
    RF_RESULT_TEXT,
    RF_RESULT_TRUTH, /* true or false */
    RF_RESULT_COUNT,
    RF_RESULT_BYTES,
    RF_RESULT_MS,           /* milliseconds */
    RF_RESULT_TIME,         /* the same, of the median refit: it has an ... */
    RF_RESULT_LOW,          /* ... interval, from here ... */
    RF_RESULT_HIGH,         /* ... to here */
    RF_RESULT_GBYTES_PER_S, /* GB are 1e9 bytes */
    RF_RESULT_PERCENT,      /* of change: may be below 0 */
    RF_RESULT_EFFICIENCY,   /* a ratio, unless the run was zero copy */
    RF_RESULT_RATIO,        /* with "low" and "high" beside it */
    RF_RESULT_LIST,         /* that no table shows */
    RF_RESULT_VERDICT,      /* wrong bytes; for people a word */
};

struct rf_result_field {
    const char *object, *key; /* as rf_result_number() takes them */
    enum rf_result_kind kind;
    const char *column; /* of CSV, or NULL */
    const char *head; /* of the table for people, or NULL; '>': to the right */
    unsigned drop;    /* when a narrow terminal does without it; 0: never */
    bool varies;      /* between runs of the same thing */
};

/* In the order of both tables' columns; ends with one without a key. */
extern const struct rf_result_field rf_result_fields[];

/* What is at "summary.median_ms"-like places, `object` NULL for the top, with
 * dots for one inside another. Borrowed; NULL when absent. */
const json_t *rf_result_value(const json_t *result, const char *object,
                              const char *key);

/* A number at such a place; false when null, absent, or nothing that can have
 * been measured: below 0 or beyond 1e18. Every figure of a result file is read
 * by this. */
bool rf_result_number(const json_t *result, const char *object, const char *key,
                      double *out);
/* The same for a change, which may be below 0. */
bool rf_result_change(const json_t *result, const char *object, const char *key,
                      double *out);

/* A figure of all measured iterations that have it, in order. */
struct rf_result_samples {
    double *values;
    size_t count;
    size_t *counts; /* of these, in each repeat that has any */
    size_t n_repeats;
};

struct rf_result_samples rf_result_samples(const json_t *result,
                                           const char *key);
void rf_result_samples_free(struct rf_result_samples *samples);

/* They belong to `samples`. */
struct rf_stats_repeats
rf_result_repeats(const struct rf_result_samples *samples);

const char *rf_result_text(const json_t *result, const char *object,
                           const char *key); /* "-" when absent */

/* Whether its status is so. */
bool rf_result_is_ok(const json_t *result);

/* The median of a scenario's measured iterations. */
struct rf_median_interval {
    double median; /* 0: none */
    size_t n_samples;
    bool has_interval;
    double low, high;             /* 95 % */
    double rerun_low, rerun_high; /* rf_stats_rerun_interval() */
};

/* The median at `object`, `key` is the record's, its interval that of the
 * iterations' `samples_key`. A median that is not above 0 is none. */
struct rf_median_interval rf_median_interval_of(const json_t *result,
                                                const char *object,
                                                const char *key,
                                                const char *samples_key);

/* Of the time of the refit. */
struct rf_median_interval rf_median_interval_of_time(const json_t *result);

#endif

/* Version, limits and fields of a scenario's record; how tables show it. */
#ifndef RF_COORDINATOR_RECORDS_FIELDS_H
#define RF_COORDINATOR_RECORDS_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/stats.h"

#define RF_SCHEMA_VERSION 1
#define RF_RESULT_MAX_BYTES ((size_t)1 << 30) /* of a file to read */

enum rf_result_kind {
    RF_RESULT_TEXT,
    RF_RESULT_TRUTH, /* true or false */
    RF_RESULT_COUNT,
    RF_RESULT_BYTES,
    RF_RESULT_MS,           /* milliseconds */
    RF_RESULT_TIME,         /* as MS, for the median refit, which has ... */
    RF_RESULT_LOW,          /* ... an interval, from here ... */
    RF_RESULT_HIGH,         /* ... to here */
    RF_RESULT_GBYTES_PER_S, /* 1 GB is 1e9 bytes */
    RF_RESULT_PERCENT,      /* change; may be negative */
    RF_RESULT_EFFICIENCY,   /* a ratio, or "zero copy" */
    RF_RESULT_RATIO,        /* with "low" and "high" beside it */
    RF_RESULT_LIST,         /* or an object; not in any table */
    RF_RESULT_VERDICT,      /* wrong bytes; a word in the table for people */
};

struct rf_result_field {
    const char *object, *key; /* as for rf_result_number() */
    enum rf_result_kind kind;
    const char *column; /* in CSV, or NULL */
    const char *head;   /* in the table for people, or NULL; '>': align right */
    unsigned drop;      /* removal order on a narrow terminal; 0: never */
    bool varies;        /* between runs of the same scenario */
    bool rare;          /* no column for people where no result has it */
};

/* In the order of both tables' columns; ends with an entry without a key. */
extern const struct rf_result_field rf_result_fields[];

/* The value at a place such as "summary.median_ms": `object` is "summary", NULL
 * for the top level, with dots for nested objects. Borrowed; NULL when
 * absent. */
const json_t *rf_result_value(const json_t *result, const char *object,
                              const char *key);

/* The number at such a place. False if null, absent, or impossible as a
 * measurement: below 0 or beyond 1e18. All figures of result files go through
 * this. */
bool rf_result_number(const json_t *result, const char *object, const char *key,
                      double *out);
/* The same; 0 where that is false. */
double rf_result_figure(const json_t *result, const char *object,
                        const char *key);
/* Likewise for a change, which may be negative. */
bool rf_result_change(const json_t *result, const char *object, const char *key,
                      double *out);

/* A figure from all measured iterations that have it, in order. */
struct rf_result_samples {
    double *values;
    size_t count;
    size_t *counts; /* samples in each repeat that has any */
    size_t n_repeats;
};

struct rf_result_samples rf_result_samples(const json_t *result,
                                           const char *key);
void rf_result_samples_free(struct rf_result_samples *samples);

/* Borrows from `samples`. */
struct rf_stats_repeats
rf_result_repeats(const struct rf_result_samples *samples);

/* Of the samples; 0: none. */
double rf_result_median(const json_t *result, const char *key);

const char *rf_result_text(const json_t *result, const char *object,
                           const char *key); /* "-" when absent */

/* The status of what another system measured, which nobody verified here. */
#define RF_RESULT_IMPORTED "imported"
bool rf_result_is_imported(const json_t *result);

/* Whether the status is "ok", or the record imported. */
bool rf_result_is_ok(const json_t *result);

/* Whether senders convert (`quantize`): byte counts, and the bytes and tensors
 * of `model`, are those of converted weights. */
bool rf_result_senders_convert(const json_t *result);

/* Whether the name of an environment variable suggests a secret. */
bool rf_result_secret_name(const char *name);

/* The median of a scenario's measured iterations. */
struct rf_median_interval {
    double median; /* 0: none */
    size_t n_samples;
    bool has_interval;
    double low, high;             /* 95 % */
    double rerun_low, rerun_high; /* rf_stats_rerun_interval() */
};

/* The median is the record's, at `object`, `key`; the interval is computed from
 * the iterations' `samples_key`. A median not above 0 counts as none. */
struct rf_median_interval rf_median_interval_of(const json_t *result,
                                                const char *object,
                                                const char *key,
                                                const char *samples_key);

/* For the refit time. */
struct rf_median_interval rf_median_interval_of_time(const json_t *result);

#endif

/* The median of a scenario's measured iterations. */
#ifndef RF_COORDINATOR_RECORDS_MEDIAN_INTERVAL_H
#define RF_COORDINATOR_RECORDS_MEDIAN_INTERVAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

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

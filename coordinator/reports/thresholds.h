/* By how much a figure may change before a comparison says so. */
#ifndef RF_COORDINATOR_REPORTS_THRESHOLDS_H
#define RF_COORDINATOR_REPORTS_THRESHOLDS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* What a comparison judges. More of each is worse. */
enum rf_metric {
    RF_METRIC_RATIO,  /* refit over yardstick */
    RF_METRIC_TIME,   /* of the refit */
    RF_METRIC_MEMORY, /* peak of the rank that needed most */
    RF_METRICS,
};

/* Changes as ratios: 0.1 is 10 %. */
struct rf_threshold {
    double worse, better; /* beyond them it has grown, or shrunk */
    bool named;           /* was asked for by its name */
};

struct rf_thresholds {
    struct rf_threshold of[RF_METRICS];
};

/* 10 % both ways for every metric. */
struct rf_thresholds rf_thresholds_default(void);

/*
 * Reads "LIMIT" or "METRIC=LIMIT", several with commas between them, into
 * `thresholds`. A limit is a ratio or a percentage ("0.1", "10%"); of a metric
 * also one for each direction ("+5%-20%") or only one of them. A limit without
 * a metric is for all that have not been named. Limits that are read later win,
 * but a metric may be in a list only once. RF_ERR_USAGE with what is wrong;
 * `thresholds` then stays as it was.
 */
enum rf_status rf_thresholds_read(const char *text,
                                  struct rf_thresholds *thresholds,
                                  struct rf_err *err) RF_MUST_CHECK;

/* "time", as it is written in a limit. */
const char *rf_metric_name(enum rf_metric metric);

/* Whether a change is beyond a limit. */
bool rf_threshold_exceeded(const struct rf_threshold *limits, double change);

/* "10 %", or "+5 % or -20 %". */
const char *rf_threshold_text(const struct rf_threshold *limits, char out[64]);

/* {"time": {"worse", "better"}, ...}. A new reference. */
json_t *rf_thresholds_json(const struct rf_thresholds *thresholds);

#endif

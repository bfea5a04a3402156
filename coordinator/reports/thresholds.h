/* Limits for changes of a figure in a comparison. */
#ifndef RF_COORDINATOR_REPORTS_THRESHOLDS_H
#define RF_COORDINATOR_REPORTS_THRESHOLDS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* The judged metrics. More of each is worse. */
enum rf_metric {
    RF_METRIC_RATIO,  /* refit over yardstick */
    RF_METRIC_TIME,   /* of the refit */
    RF_METRIC_MEMORY, /* peak of the rank that needed most */
    RF_METRICS,
};

/* Changes as ratios: 0.1 is 10 %. */
struct rf_threshold {
    double worse, better; /* limits of growth; of shrinking */
    bool named;           /* the metric was given by name */
};

struct rf_thresholds {
    struct rf_threshold of[RF_METRICS];
};

/* 10 % both ways for every metric. */
struct rf_thresholds rf_thresholds_default(void);

/*
 * Reads "LIMIT" or "METRIC=LIMIT", comma-separated, into `thresholds`. A limit
 * is a ratio or a percentage ("0.1", "10%"); a metric's limit may also be one
 * for each direction ("+5%-20%") or for one direction. A limit without a metric
 * applies to all metrics not named. Later limits win, but a list may name a
 * metric only once. RF_ERR_USAGE with the reason; `thresholds` is then
 * unchanged.
 */
enum rf_status rf_thresholds_read(const char *text,
                                  struct rf_thresholds *thresholds,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The name in a limit, "time". */
const char *rf_metric_name(enum rf_metric metric);

/* Whether a change is beyond its limit. */
bool rf_threshold_exceeded(const struct rf_threshold *limits, double change);

/* "10 %", or "+5 % or -20 %". */
const char *rf_threshold_text(const struct rf_threshold *limits, char out[64]);

/* {"time": {"worse", "better"}, ...}. A new reference. */
json_t *rf_thresholds_json(const struct rf_thresholds *thresholds);

#endif

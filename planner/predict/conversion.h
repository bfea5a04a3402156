/* What conversions ("quantize") take. Bytes are those of the weights before
 * conversion. */
#ifndef RF_PLANNER_PREDICT_CONVERSION_H
#define RF_PLANNER_PREDICT_CONVERSION_H

#include "planner/plan/unit_task.h"

/* Of a unit task, by one of its ranks; 0: nothing of it is converted. */
double rf_conversion_bytes(const struct rf_plan *plan,
                           const struct rf_unit_task *unit, uint32_t rank);

/* Times of ranks on the converting side. */
struct rf_conversion_times {
    double least_ms, most_ms;
    uint32_t slowest; /* the rank; RF_NONE: none, or no rate is known */
};

/* At rates of nodes (rf_capacities.convert_gbytes_per_s; 0: in no time), which
 * their converting ranks share evenly. A receiver converts all of its shard.
 * Senders that hold the same weights convert the same part each or, with
 * `certain`, only what no other holds. */
void rf_conversion_times(const struct rf_plan *plan,
                         const struct rf_unit_tasks *units,
                         const double *gbytes_per_s, bool certain,
                         struct rf_conversion_times *out);

#endif

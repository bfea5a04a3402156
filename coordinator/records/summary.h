/* Figures that follow from the samples of a record, so from one of several
 * repeats as from one of a single attempt. */
#ifndef RF_COORDINATOR_RECORDS_SUMMARY_H
#define RF_COORDINATOR_RECORDS_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>

/* The parts of a rank's time in an iteration. */
#define RF_SUMMARY_PHASES 5
extern const char *const rf_summary_phases[RF_SUMMARY_PHASES];

/* `summary` of a record that has `iterations` and `plan`; with `repeats`, also
 * what varies between them. `has_rate`: the bytes crossed. A new reference. */
json_t *rf_summary_json(const json_t *record, bool has_rate);

/* Adds to a bound with `ms` and `resource` how near the median came to it, and
 * whether it can be one. 0: that is not to be judged. */
void rf_summary_judge_bound(json_t *bound, double median_ms);

#endif

/* Figures computed from a record's samples, alike for one attempt and for
 * several repeats. */
#ifndef RF_COORDINATOR_RECORDS_SUMMARY_H
#define RF_COORDINATOR_RECORDS_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>

/* The parts of a rank's time in an iteration. */
#define RF_SUMMARY_PHASES 5
extern const char *const rf_summary_phases[RF_SUMMARY_PHASES];

/* `summary` of a record with `iterations` and `plan`; with `repeats`, also the
 * variance between them. `has_rate`: the bytes crossed. A new reference. */
json_t *rf_summary_json(const json_t *record, bool has_rate);

/* Its JSON Schema: anyOf without and with `repeats`. A new reference. */
json_t *rf_summary_schema(void);

/* Adds to a bound with `ms` and `resource` how close the median came, and
 * whether the bound is valid. Median 0: do not judge. */
void rf_summary_judge_bound(json_t *out, double median_ms);
/* Adds the same to the JSON Schema of a bound. */
void rf_summary_judge_schema(json_t *out);

#endif

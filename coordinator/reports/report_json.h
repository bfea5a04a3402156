/* Results as one JSON document: the output of `report --json` and the source of
 * figures. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_JSON_H
#define RF_COORDINATOR_REPORTS_REPORT_JSON_H

#include <jansson.h>

#include "coordinator/records/result_files.h"

/* {"schema_version", "runs", "results"} as in docs/RESULTS.md: a run has the
 * facts that its results share, a result the figures of the CSV table under the
 * same names. A new reference. */
json_t *rf_report_json(const struct rf_result_set *set);

/* The entry of "runs" for the run that begins with file `first`. */
json_t *rf_report_run_json(const struct rf_result_set *set, size_t first);

/* "a, b: CPU, 64 processors, 270 GB, 8 x GPU": all of a run's "nodes" that are
 * the same machine as number `first`; NULL if one before it is. Caller
 * frees. */
char *rf_report_machine_text(const json_t *nodes, size_t first);

/* Whether file `i` is the first of its run. */
bool rf_report_begins_run(const struct rf_result_set *set, size_t i);

#endif

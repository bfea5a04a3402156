/* Results in the format of Alpa's resharding benchmark. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_ALPA_H
#define RF_COORDINATOR_REPORTS_REPORT_ALPA_H

#include <jansson.h>

#include "common/err.h"
#include "coordinator/records/result_files.h"

/*
 * The array in Alpa's result files (its
 * benchmark/alpa/resharding/benchmark.py). Each result of one tensor between
 * two layouts `spec` has the meshes, both sharding specs, the tensor's shape,
 * the modes, and mean and variance of the time in seconds. Results that Alpa
 * could not have measured are left out, with a warning. The scenario's name,
 * prefixed with its run's if there are several, tells entries apart; Alpa has
 * no such field. A new reference.
 */
json_t *rf_report_alpa(const struct rf_result_set *set);

/* One entry, or NULL and the reason. */
json_t *rf_report_alpa_entry(const json_t *result, struct rf_err *err);

#endif

/* Results as Alpa's resharding benchmark writes them. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_ALPA_H
#define RF_COORDINATOR_REPORTS_REPORT_ALPA_H

#include <jansson.h>

#include "common/err.h"
#include "coordinator/records/result_files.h"

/*
 * The array of Alpa's result files (its
 * benchmark/alpa/resharding/benchmark.py): for each result of one tensor
 * between two layouts `spec` the meshes, both sharding specs, the tensor's
 * shape, the modes, and mean and variance of the time in seconds. What Alpa
 * could not have measured is named in a warning and left out. What Alpa
 * does not have tells entries apart: the scenario's name, of several runs
 * behind that of its run. A new reference.
 */
json_t *rf_report_alpa(const struct rf_result_set *set);

/* One of them, or NULL and why there is none. */
json_t *rf_report_alpa_entry(const json_t *result, struct rf_err *err);

#endif

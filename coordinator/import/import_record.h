/* The record of a refit that another system measured. */
#ifndef RF_COORDINATOR_IMPORT_IMPORT_RECORD_H
#define RF_COORDINATOR_IMPORT_IMPORT_RECORD_H

#include "coordinator/scenario/scenario.h"
#include "coordinator/store/result_json.h"

/*
 * A record as that of a run whose only scenario is `scenario` (taken), with
 * `iterations` and `source` (import_case.h; both taken) and bounds by the rates
 * in `links` of its cluster file. What only a run can know is null: start and
 * end, setup, verification, probes. A new reference.
 */
json_t *rf_import_record(const struct rf_result_run *run,
                         struct rf_scenario *scenario, json_t *iterations,
                         json_t *source);

#endif

/* Results as the records that ModelExpress logs of a refit. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_STAGES_H
#define RF_COORDINATOR_REPORTS_REPORT_STAGES_H

#include <jansson.h>

#include "coordinator/records/result_files.h"

/*
 * The records "refit-stage-v2" of ModelExpress
 * (modelexpress_client's reshard receiver, log line MX_REFIT_STAGE): one for
 * each rank that receives bytes in a measured iteration, in the order of
 * results, iterations and ranks. docs/RESULTS.md says what each field means
 * here; fields without counterpart are absent. Results that have none are left
 * out, with a warning. A new reference.
 */
json_t *rf_report_stages(const struct rf_result_set *set);

#endif

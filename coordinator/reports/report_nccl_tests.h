/* Results under the names that nccl-tests has in its JSON. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_NCCL_TESTS_H
#define RF_COORDINATOR_REPORTS_REPORT_NCCL_TESTS_H

#include <jansson.h>

#include "coordinator/records/result_files.h"

/*
 * The document that nccl-tests writes with `-J` (version 2, src/util.cu), with
 * an entry of `results` for each result that is ok and has times; a warning and
 * an entry of `errors` name each of the others. docs/RESULTS.md says what each
 * field means for a refit; one without counterpart is null. A new reference.
 */
json_t *rf_report_nccl_tests(const struct rf_result_set *set);

#endif

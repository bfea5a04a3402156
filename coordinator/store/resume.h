/* Whether a result folder matches the run that resumes it. */
#ifndef RF_COORDINATOR_STORE_RESUME_H
#define RF_COORDINATOR_STORE_RESUME_H

#include "coordinator/store/result_json.h"

/* "model" of run.json: as in records, plus the "digest" of its full
 * description; null while unknown. A new reference. */
json_t *rf_resume_model(const struct rf_result_run *run);

/* RF_ERR_CONFIG, with the place, if the configuration or a known model differs
 * from that in run.json (`document`). Warns if only the program differs. */
enum rf_status rf_resume_check(const json_t *document,
                               const struct rf_result_run *run,
                               const char *folder,
                               struct rf_err *err) RF_MUST_CHECK;

/* The model only; a run that ended before its model was known accepts any. */
enum rf_status rf_resume_check_model(const json_t *document,
                                     const struct rf_result_run *run,
                                     const char *folder,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

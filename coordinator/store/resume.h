/* Whether a result folder fits the run that continues in it. */
#ifndef RF_COORDINATOR_STORE_RESUME_H
#define RF_COORDINATOR_STORE_RESUME_H

#include "coordinator/store/result_json.h"

/* "model" of run.json: as in records, with the "digest" of its full
 * description; null while it is not known. A new reference. */
json_t *rf_resume_model(const struct rf_result_run *run);

/* RF_ERR_CONFIG with the place where configuration or model, if that is known,
 * differ from those of run.json (`document`). Warns where only the program
 * does. */
enum rf_status rf_resume_check(const json_t *document,
                               const struct rf_result_run *run,
                               const char *folder,
                               struct rf_err *err) RF_MUST_CHECK;

/* The model alone; a run that ended before it was known takes any. */
enum rf_status rf_resume_check_model(const json_t *document,
                                     const struct rf_result_run *run,
                                     const char *folder,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

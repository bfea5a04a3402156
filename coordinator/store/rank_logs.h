/* The logs of ranks in a result folder. */
#ifndef RF_COORDINATOR_STORE_RANK_LOGS_H
#define RF_COORDINATOR_STORE_RANK_LOGS_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/scenario/attempt.h"

/* Folders of the result folder that hold a log, one in another. */
#define RF_RANK_LOGS_FOLDERS 2

/* The file of a rank's log in the result folder, "logs/one/rank-3.log": NULL if
 * there is nothing to say, that is, the rank has written nothing and no fault
 * is about it, unless `all` ranks are to have one. To be freed. */
char *rf_rank_logs_file(const struct rf_attempt *attempt, const char *scenario,
                        uint32_t rank, bool all);

/* A list of all of them. A new reference. */
json_t *rf_rank_logs_json(const struct rf_attempt *attempt,
                          const char *scenario, bool all);

/* What it holds, of `record`, which was made of the attempt. To be freed. */
char *rf_rank_logs_text(const struct rf_attempt *attempt, const json_t *record,
                        uint32_t rank);

#endif

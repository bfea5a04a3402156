/* Rank logs in a result folder. */
#ifndef RF_COORDINATOR_STORE_RANK_LOGS_H
#define RF_COORDINATOR_STORE_RANK_LOGS_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/scenario/attempt.h"

/* Depth of a log's folder inside the result folder. */
#define RF_RANK_LOGS_FOLDERS 2

/* A rank's log file in the result folder, "logs/one/rank-3.log". NULL if it has
 * none: the rank wrote nothing and no fault is about it. With `all`, every rank
 * has a log. Caller frees. */
char *rf_rank_logs_file(const struct rf_attempt *attempt, const char *scenario,
                        uint32_t rank, bool all);

/* The log files of all ranks. A new reference. */
json_t *rf_rank_logs_json(const struct rf_attempt *attempt,
                          const char *scenario, bool all);

/* A log's text; `record` is the attempt's. Caller frees. */
char *rf_rank_logs_text(const struct rf_attempt *attempt, const json_t *record,
                        uint32_t rank);

#endif

/* START: all that the ranks of an attempt need. */
#ifndef RF_COORDINATOR_RUN_START_H
#define RF_COORDINATOR_RUN_START_H

#include "coordinator/preflight/join.h"
#include "coordinator/scenario/attempt.h"

/* Fills `*out` except the test hooks; rf_msg_free() it. `key` is the secret of
 * the attempt's data connections. */
void rf_run_start_fill(const struct rf_attempt *attempt,
                       const struct rf_preflight_join *join,
                       const uint8_t key[32], struct rf_msg *out);

#endif

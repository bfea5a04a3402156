/*
 * Allgathers among an attempt's ranks: collects all parts under a sequence
 * number, then sends the whole to every node. Parts are opaque and may be
 * secret (NCCL unique IDs): they are never logged and are wiped after use.
 */
#ifndef RF_COORDINATOR_RUN_EXCHANGE_H
#define RF_COORDINATOR_RUN_EXCHANGE_H

#include "coordinator/preflight/verdict.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

struct rf_run_exchange;

/* `scenario` is borrowed. */
struct rf_run_exchange *
rf_run_exchange_create(const struct rf_scenario *scenario);
void rf_run_exchange_destroy(struct rf_run_exchange *exchange); /* or NULL */

/*
 * Takes the parts that a node sent. NEXT: they complete their sequence number,
 * and `*all` is the EXCHANGED for every node (rf_msg_free() it). ABORT: `err`
 * says why they are invalid.
 */
enum rf_verdict rf_run_exchange_take(struct rf_run_exchange *exchange,
                                     uint32_t node,
                                     const struct rf_msg_exchange *parts,
                                     struct rf_msg *all, struct rf_err *err);

#endif

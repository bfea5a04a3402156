/*
 * Data connections that `check` has nodes open to each other: each node to its
 * two neighbours in a ring of those that listen for them. Who is asked for
 * what, and what the answers mean. Pure.
 */
#ifndef RF_COORDINATOR_ADVICE_REACH_PAIRS_H
#define RF_COORDINATOR_ADVICE_REACH_PAIRS_H

#include "coordinator/advice/findings.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

struct rf_reach_pairs;

/* Borrows both; `hellos` has one per node, NULL: it has not joined. What
 * preflight/addresses.h finds without trying is left out. */
struct rf_reach_pairs *
rf_reach_pairs_create(const struct rf_config *config,
                      const struct rf_msg_hello *const *hellos);
void rf_reach_pairs_destroy(struct rf_reach_pairs *pairs); /* or NULL */

/* The REACH for a node, which is awaited then; false: it is not asked.
 * rf_msg_free() it. */
bool rf_reach_pairs_ask(struct rf_reach_pairs *pairs, uint32_t node,
                        struct rf_msg *out);
/* Its answer; NULL: it is lost. What was not asked for is ignored. */
void rf_reach_pairs_take(struct rf_reach_pairs *pairs, uint32_t node,
                         const struct rf_msg_reached *reached);
bool rf_reach_pairs_is_awaited(const struct rf_reach_pairs *pairs);

/* What does not connect is an error where a scenario sends data that way, else
 * a warning. */
void rf_reach_pairs_need(struct rf_reach_pairs *pairs,
                         const struct rf_scenario *scenario);
void rf_reach_pairs_advise(const struct rf_reach_pairs *pairs,
                           struct rf_findings *out);

#endif

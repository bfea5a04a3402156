/*
 * Data connections that `check` has nodes open to each other: each node to its
 * two neighbours in a ring of those that listen for them. Who is asked for
 * what, and what the answers mean. Pure.
 */
#ifndef RF_COORDINATOR_ADVICE_REACH_RING_H
#define RF_COORDINATOR_ADVICE_REACH_RING_H

#include "coordinator/advice/findings.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

struct rf_reach_ring;

/* Borrows both; `hellos` has one per node, NULL: it has not joined. What
 * preflight/addresses.h finds without trying is left out. */
struct rf_reach_ring *
rf_reach_ring_create(const struct rf_config *config,
                     const struct rf_msg_hello *const *hellos);
void rf_reach_ring_destroy(struct rf_reach_ring *ring); /* or NULL */

/* The REACH for a node, which is awaited then; false: it is not asked.
 * rf_msg_free() it. */
bool rf_reach_ring_ask(struct rf_reach_ring *ring, uint32_t node,
                       struct rf_msg *out);
/* Its answer; NULL: it is lost. What was not asked for is ignored. */
void rf_reach_ring_take(struct rf_reach_ring *ring, uint32_t node,
                        const struct rf_msg_reached *reached);
bool rf_reach_ring_is_awaited(const struct rf_reach_ring *ring);

/* What does not connect is an error where a scenario sends data that way, else
 * a warning. */
void rf_reach_ring_need(struct rf_reach_ring *ring,
                        const struct rf_scenario *scenario);
void rf_reach_ring_advise(const struct rf_reach_ring *ring,
                          struct rf_findings *out);

#endif

/*
 * Data connections that `check` has nodes open to each other: whom to ask for
 * which, and the meaning of the answers. Pure.
 *
 * Each listening node tries its two neighbours in a ring of listening nodes,
 * needed by a scenario or not, and the nodes that it sends data to in a
 * scenario that crosses nodes by our TCP (other methods find their own ways).
 * Large clusters stay cheap: a node tries at most RF_REACH_DESTINATIONS of the
 * latter and is tried by at most RF_REACH_SOURCES nodes. If that leaves out
 * pairs, as many nodes as these limits allow try some, different from those of
 * the nodes beside them.
 */
#ifndef RF_COORDINATOR_ADVICE_REACH_PAIRS_H
#define RF_COORDINATOR_ADVICE_REACH_PAIRS_H

#include "coordinator/advice/findings.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* With the two neighbours no more than fit into REACH. */
#define RF_REACH_DESTINATIONS 8
/* With the two neighbours fewer than an agent has guests. */
#define RF_REACH_SOURCES 32

struct rf_reach_pairs;

struct rf_reach_pairs *rf_reach_pairs_create(const struct rf_config *config);
void rf_reach_pairs_destroy(struct rf_reach_pairs *pairs); /* or NULL */

/* A failed connection is an error if a scenario sends data that way, else a
 * warning. Scenarios added after rf_reach_pairs_choose() affect only that
 * level. */
void rf_reach_pairs_need(struct rf_reach_pairs *pairs,
                         const struct rf_scenario *scenario);

/* Call once. `hellos` has one per node, NULL if it has not joined. Skips lost
 * nodes and failures that preflight/addresses.h finds without trying. */
void rf_reach_pairs_choose(struct rf_reach_pairs *pairs,
                           const struct rf_msg_hello *const *hellos);

/* The REACH for a node, which is then awaited; false: not asked. Free with
 * rf_msg_free(). */
bool rf_reach_pairs_ask(struct rf_reach_pairs *pairs, uint32_t node,
                        struct rf_msg *out);
/* Takes its answer; ignores connections not asked for. */
void rf_reach_pairs_take(struct rf_reach_pairs *pairs, uint32_t node,
                         const struct rf_msg_reached *reached);
/* Marks the node as lost, at any time. */
void rf_reach_pairs_lose(struct rf_reach_pairs *pairs, uint32_t node);
bool rf_reach_pairs_is_awaited(const struct rf_reach_pairs *pairs);

/* Reports failed connections, but not to lost nodes. Reports nodes still
 * awaited after `waited_s`, in place of other nodes' failures to reach them. */
void rf_reach_pairs_advise(const struct rf_reach_pairs *pairs,
                           uint32_t waited_s, struct rf_findings *out);

#endif

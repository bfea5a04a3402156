/*
 * Data connections that `check` has nodes open to each other. Who is asked for
 * what, and what the answers mean. Pure.
 *
 * Each node that listens for them tries its two neighbours in a ring of those
 * that do, whether or not a scenario needs them, and nodes that it sends data
 * to in a scenario that crosses nodes by our own TCP (other methods find ways
 * of their own). A large cluster stays cheap: a node tries at most
 * RF_REACH_DESTINATIONS of the latter and is one of at most RF_REACH_SOURCES
 * nodes'. Where that leaves pairs out, as many nodes as these limits let try
 * some, and different ones than the nodes beside them.
 */
#ifndef RF_COORDINATOR_ADVICE_REACH_PAIRS_H
#define RF_COORDINATOR_ADVICE_REACH_PAIRS_H

#include "coordinator/advice/findings.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

#define RF_REACH_DESTINATIONS 8 /* with two neighbours no more than in REACH */
#define RF_REACH_SOURCES 32     /* likewise fewer than an agent has guests */

struct rf_reach_pairs;

struct rf_reach_pairs *rf_reach_pairs_create(const struct rf_config *config);
void rf_reach_pairs_destroy(struct rf_reach_pairs *pairs); /* or NULL */

/* What does not connect is an error where a scenario sends data that way, else
 * a warning. Scenarios that are known only after rf_reach_pairs_choose() make
 * that difference alone. */
void rf_reach_pairs_need(struct rf_reach_pairs *pairs,
                         const struct rf_scenario *scenario);

/* Once. `hellos` has one per node, NULL: it has not joined. Lost nodes and what
 * preflight/addresses.h finds without trying are left out. */
void rf_reach_pairs_choose(struct rf_reach_pairs *pairs,
                           const struct rf_msg_hello *const *hellos);

/* The REACH for a node, which is awaited then; false: it is not asked.
 * rf_msg_free() it. */
bool rf_reach_pairs_ask(struct rf_reach_pairs *pairs, uint32_t node,
                        struct rf_msg *out);
/* Its answer. What was not asked for is ignored. */
void rf_reach_pairs_take(struct rf_reach_pairs *pairs, uint32_t node,
                         const struct rf_msg_reached *reached);
/* The node is lost, before, while or after it is asked. */
void rf_reach_pairs_lose(struct rf_reach_pairs *pairs, uint32_t node);
bool rf_reach_pairs_is_awaited(const struct rf_reach_pairs *pairs);

/* Says what does not connect, but not to nodes that are lost, and names nodes
 * that are still awaited after `waited_s`, in place of what others say of
 * them. */
void rf_reach_pairs_advise(const struct rf_reach_pairs *pairs,
                           uint32_t waited_s, struct rf_findings *out);

#endif

/* What this node is and can do: most of HELLO and of `refit-worker --probe`. */
#ifndef RF_WORKER_HELPER_FACTS_H
#define RF_WORKER_HELPER_FACTS_H

#include "transport/control/message_fields.h"

/* Fills the members that say what the node is to a process with this one's
 * environment, of an initialised `hello`; not those of the agent and of how it
 * joined ("protocol", "node", "control", "candidate", "address", "folders",
 * "pid", "start_ticks"). Never fails: what cannot be found out stays absent.
 * Loads refit-cuda.so, which may take seconds, and whose libraries may print.
 * Methods that are in `untried` are not tried: nothing is said of them.
 */
void rf_facts_collect(const struct rf_texts *untried,
                      struct rf_msg_hello *hello);

#endif

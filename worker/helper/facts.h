/* What this node is and can do: most of HELLO and of `refit-worker --probe`. */
#ifndef RF_WORKER_HELPER_FACTS_H
#define RF_WORKER_HELPER_FACTS_H

#include "transport/control/message_fields.h"

/* Fills the members that say what the node is to a process with this one's
 * environment, of an initialised `hello`; not those of the agent and of how it
 * joined ("protocol", "node", "control", "candidate", "address", "folders",
 * "pid", "start_ticks"). Never fails: what cannot be found out stays absent.
 * Loads refit-cuda.so, which may take seconds, and whose libraries may print.
 */
void rf_facts_collect(struct rf_msg_hello *hello);

#endif

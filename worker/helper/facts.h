/* Facts about this node: most of HELLO and of `refit-worker --probe`. */
#ifndef RF_WORKER_HELPER_FACTS_H
#define RF_WORKER_HELPER_FACTS_H

#include "transport/control/message_fields.h"

/* Fills the members of an initialised `hello` that describe the node to a
 * process with this one's environment; not those of the agent and of
 * joining ("protocol", "node", "control", "candidate", "address", "folders",
 * "pid", "start_ticks"). Never fails: unknown facts stay absent. Loads
 * refit-cuda.so, which may take seconds and whose libraries may print. Leaves
 * out the methods in `untried`. */
void rf_facts_collect(const struct rf_texts *untried,
                      struct rf_msg_hello *hello);

#endif

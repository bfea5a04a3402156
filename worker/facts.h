/* What this node is and can do: HELLO's fields and `refit-worker --probe`. */
#ifndef RF_WORKER_FACTS_H
#define RF_WORKER_FACTS_H

#include "transport/messages.h"

/* Fills the members that say what the node is, of an initialised `hello`; not
 * those that say how it joined ("protocol", "node", "control", "candidate",
 * "address", "folders"). Never fails: what cannot be found out stays absent.
 * Loads refit-cuda.so, which may take a second. */
void rf_facts_collect(struct rf_msg_hello *hello);

#endif

/* Events that nodes report upward. */
#ifndef RF_COORDINATOR_CLUSTER_EVENTS_H
#define RF_COORDINATOR_CLUSTER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "transport/control/message_fields.h"

/* Times from the start of a node's launch, in ns. */
struct rf_node_start {
    int64_t stream_ns; /* its stream was up; 0: it has none */
    int64_t answer_ns; /* the worker's first bytes came on it */
    int64_t hello_ns;
};

struct rf_node_events {
    /* A node's HELLO. The callee may take its contents and then leaves all
     * members of *hello absent. False refuses it; an ERROR may have been sent
     * before. The node may be stopped or dropped meanwhile. */
    bool (*hello)(uint32_t node, struct rf_msg_hello *hello, void *data);
    /* The node could not be started, went away or fell silent. */
    void (*lost)(uint32_t node, const struct rf_err *why, void *data);
    /* Any other message from a node that has joined; borrowed. */
    void (*message)(uint32_t node, const struct rf_msg *message, void *data);
    /* A lease that says how much of a checkpoint the node's ranks have read.
     * NULL: not wanted. */
    void (*reading)(uint32_t node, const struct rf_msg_lease *lease,
                    void *data);
    /* A message that breaks its schema; the node stays. */
    void (*bad_message)(uint32_t node, const struct rf_msg_bad *bad,
                        void *data);
    /* A line of standard error of the agent (rank RF_NONE) or of a rank,
     * already cleaned for display. */
    void (*log)(uint32_t node, uint32_t rank, const char *line, void *data);
};

#endif

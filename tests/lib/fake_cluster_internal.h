/* Private to fake_cluster.c and fake_agent.c. */
#ifndef RF_TESTS_FAKE_CLUSTER_INTERNAL_H
#define RF_TESTS_FAKE_CLUSTER_INTERNAL_H

#include "tests/lib/fake_cluster.h"

enum fake_event_kind {
    EV_HELLO,
    EV_LOST,
    EV_MESSAGE,
    EV_BUILT,
    EV_PLANNED,
    EV_STOPPED
};

struct fake_event {
    int64_t at_ns;
    enum fake_event_kind kind;
    uint32_t node;
    enum rf_msg_type type;
    json_t *payload; /* as on the wire */
    const char *text;
    size_t scenario;
    struct fake_event *next;
};

/* fake_cluster.c: queue an event for event.at_ns, or a message that arrives
 * after `after_ns`. Both take the payload. */
void fake_push(struct fake_cluster *fake, struct fake_event event);
void fake_push_message(struct fake_cluster *fake, int64_t after_ns,
                       uint32_t node, enum rf_msg_type type, json_t *payload);

/* fake_agent.c */
json_t *fake_agent_hello(uint32_t node, const struct fake_fault *fault);
/* Handles STEP at an agent: queues the events that follow. */
void fake_agent_step(struct fake_cluster *fake, uint32_t node,
                     const struct rf_msg_step *step);
/* The same for INSPECT. */
void fake_agent_inspect(struct fake_cluster *fake, uint32_t node,
                        const struct rf_msg_inspect *inspect);
bool fake_agent_answers_abort(const struct fake_cluster *fake, uint32_t node);

#endif

/* What carriers of ops have in common. Internal to carriers. */
#ifndef RF_TRANSPORT_ENGINE_CARRIED_H
#define RF_TRANSPORT_ENGINE_CARRIED_H

#include "transport/engine/engine.h"

/* Sends that may go, a heap: the least leaves first. */
struct rf_carried_heap {
    uint32_t *at; /* as many as there can be at once */
    uint32_t n;
};

void rf_carried_push(struct rf_carried_heap *heap, uint32_t entry);
uint32_t rf_carried_pop(struct rf_carried_heap *heap);

/* Whether this rank carries out an action that sends or receives, and with
 * which other rank. */
bool rf_carried_here(const struct rf_engine *engine, uint32_t action,
                     uint32_t *peer, bool *sends);

/* The receiver admits a send; `admitted` is the generation in which it last
 * did. False where that is not due: once an iteration, of one that waits. */
bool rf_carried_admit(struct rf_flow *flow, uint32_t send, uint32_t *admitted);

#endif

/* Shared by the carriers of ops; internal to them. */
#ifndef RF_TRANSPORT_ENGINE_CARRIED_H
#define RF_TRANSPORT_ENGINE_CARRIED_H

#include "transport/engine/engine.h"

/* Sends that may go: a min-heap. */
struct rf_carried_heap {
    uint32_t *at; /* capacity: the most entries at once */
    uint32_t n;
};

void rf_carried_push(struct rf_carried_heap *heap, uint32_t entry);
uint32_t rf_carried_pop(struct rf_carried_heap *heap);

/* Whether `action` is a send or a receive of this rank; sets the other rank and
 * the direction. */
bool rf_carried_here(const struct rf_engine *engine, uint32_t action,
                     uint32_t *peer, bool *sends);

/* The receiver admits a send; `admitted` is the generation of its last
 * admission. False if none is due: an admission is due once an iteration, and
 * only for a send that needs one. */
bool rf_carried_admit(struct rf_flow *flow, uint32_t send, uint32_t *admitted);

#endif

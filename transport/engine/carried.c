/*
 * Shared by the carriers of ops. See carried.h.
 *
 * A heap never has an entry twice, so room for each op of a link is enough.
 * Nothing here fails: an admission that comes twice or too early is not due,
 * and the carrier reports it.
 */
#include "transport/engine/carried.h"

void rf_carried_push(struct rf_carried_heap *heap, uint32_t entry)
{
    uint32_t at = heap->n++;
    while (at > 0 && heap->at[(at - 1) / 2] > entry) {
        heap->at[at] = heap->at[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->at[at] = entry;
}

uint32_t rf_carried_pop(struct rf_carried_heap *heap)
{
    const uint32_t first = heap->at[0], last = heap->at[--heap->n];
    uint32_t at = 0, child;
    while ((child = 2 * at + 1) < heap->n) {
        if (child + 1 < heap->n && heap->at[child + 1] < heap->at[child]) {
            child++;
        }
        if (last <= heap->at[child]) {
            break;
        }
        heap->at[at] = heap->at[child];
        at = child;
    }
    heap->at[at] = last;
    return first;
}

bool rf_carried_here(const struct rf_engine *engine, uint32_t action,
                     uint32_t *peer, bool *sends)
{
    const struct rf_flow *flow = engine->flow;
    const struct rf_action *of = &flow->actions[action];
    *sends = of->kind == RF_ACTION_SEND;
    /* flow->self is unknown before the ranks have met */
    if (of->owner != flow->slots[engine->env->rank] ||
        (!*sends && of->kind != RF_ACTION_RECV)) {
        return false;
    }
    *peer = *sends ? flow->schedule->ops[of->op].dst
                   : flow->schedule->ops[of->op].src;
    return true;
}

bool rf_carried_admit(struct rf_flow *flow, uint32_t send, uint32_t *admitted)
{
    if (!flow->actions[send].admitted || *admitted == flow->generation) {
        return false;
    }
    *admitted = flow->generation;
    rf_flow_arrive(flow, send);
    return true;
}

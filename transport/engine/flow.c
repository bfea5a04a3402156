/*
 * The shared queues of a node's actions at run time. flow_build.c makes the
 * graph. See flow.h.
 *
 * All shared words are 64-bit counters that only grow, or entries tagged with
 * the iteration's generation in their upper half:
 *   arrivals[a]  reaches generation · n_needs when action a may run;
 *   parts[a]     reaches generation · n_parts when shared copy a is complete;
 *   cursor       (generation, portions claimed so far);
 *   queues       a ticket is taken with fetch_add, then the entry is published
 *                with a release store: a reader that sees the tag sees all
 *                earlier writes.
 * Every action is handed out exactly once an iteration, so a queue with
 * one entry per action never overflows; position = ticket modulo its size.
 * A generation begins only after all ranks have finished the previous one.
 */
#include "transport/engine/flow.h"

#include <stdlib.h>

#include "common/mem.h"

struct rf_flow_shared {
    _Alignas(RF_CACHE_LINE) _Atomic uint64_t cursor;
    _Alignas(RF_CACHE_LINE) _Atomic uint64_t pushed;
    _Alignas(RF_CACHE_LINE) _Atomic uint64_t done;
};

struct shared_tail {
    _Alignas(RF_CACHE_LINE) _Atomic uint64_t pushed;
};

struct rf_flow_queue {
    uint64_t size;
    uint64_t taken; /* by its owner, in private memory */
    struct shared_tail *tail;
    _Atomic uint64_t *entries;
};

static uint64_t tagged(const struct rf_flow *flow, uint64_t value)
{
    return (uint64_t)flow->generation << 32 | value;
}

static bool has_tag(const struct rf_flow *flow, uint64_t word)
{
    return word >> 32 == flow->generation;
}

static uint64_t round_up_words(uint64_t words)
{
    return rf_align_up(words * sizeof(uint64_t), RF_CACHE_LINE);
}

static void queue_sizes(const struct rf_flow *flow, uint64_t *sizes)
{
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        const struct rf_action *action = &flow->actions[i];
        if (action->n_needs > 0 && action->owner != RF_FLOW_ANYONE &&
            action->kind != RF_ACTION_GATE) {
            sizes[action->owner]++;
        }
    }
}

uint64_t rf_flow_shared_bytes(const struct rf_flow *flow)
{
    uint64_t *sizes = rf_xcalloc(flow->n_local, sizeof(*sizes));
    uint64_t bytes = sizeof(struct rf_flow_shared) +
                     2 * round_up_words(flow->n_actions) +
                     round_up_words(flow->n_portions - flow->n_free);
    queue_sizes(flow, sizes);
    for (uint32_t slot = 0; slot < flow->n_local; slot++) {
        bytes += sizeof(struct shared_tail) + round_up_words(sizes[slot]);
    }
    free(sizes);
    return bytes;
}

static _Atomic uint64_t *take_words(uint8_t **at, uint64_t words)
{
    _Atomic uint64_t *place = (_Atomic uint64_t *)(void *)*at;
    *at += round_up_words(words);
    return place;
}

void rf_flow_attach(struct rf_flow *flow, struct rf_node_memory *shm)
{
    uint64_t *sizes = rf_xcalloc(flow->n_local, sizeof(*sizes));
    uint8_t *at = shm->control;
    flow->shm = shm;
    flow->self = shm->self;
    flow->shared = (struct rf_flow_shared *)(void *)at;
    at += sizeof(*flow->shared);
    flow->arrivals = take_words(&at, flow->n_actions);
    flow->parts = take_words(&at, flow->n_actions);
    flow->ready_portions = take_words(&at, flow->n_portions - flow->n_free);
    flow->queues = rf_xcalloc(flow->n_local, sizeof(*flow->queues));
    queue_sizes(flow, sizes);
    for (uint32_t slot = 0; slot < flow->n_local; slot++) {
        struct rf_flow_queue *queue = &flow->queues[slot];
        queue->size = sizes[slot];
        queue->tail = (struct shared_tail *)(void *)at;
        at += sizeof(*queue->tail);
        queue->entries = take_words(&at, queue->size);
    }
    free(sizes);
}

void rf_flow_destroy(struct rf_flow *flow)
{
    if (flow == NULL) {
        return;
    }
    free(flow->actions);
    free(flow->next);
    free(flow->of_op);
    free(flow->slots);
    free(flow->queues);
    free(flow);
}

void rf_flow_start(struct rf_flow *flow)
{
    flow->generation++;
}

/* --- handing out ---------------------------------------------------------- */

static void hand_out_portions(struct rf_flow *flow,
                              const struct rf_action *action)
{
    uint64_t ring = flow->n_portions - flow->n_free;
    for (uint32_t i = 0; i < action->n_portions; i++) {
        uint64_t ticket = atomic_fetch_add(&flow->shared->pushed, 1);
        atomic_store_explicit(&flow->ready_portions[ticket % ring],
                              tagged(flow, action->first_portion + i),
                              memory_order_release);
    }
    rf_node_memory_wake_all(flow->shm);
}

static void hand_to_owner(struct rf_flow *flow, uint32_t index)
{
    uint32_t owner = flow->actions[index].owner;
    struct rf_flow_queue *queue = &flow->queues[owner];
    uint64_t ticket = atomic_fetch_add(&queue->tail->pushed, 1);
    atomic_store_explicit(&queue->entries[ticket % queue->size],
                          tagged(flow, index), memory_order_release);
    rf_node_memory_wake(flow->shm, owner);
}

static bool is_full(struct rf_flow *flow, uint32_t index)
{
    uint64_t arrived = atomic_fetch_add_explicit(&flow->arrivals[index], 1,
                                                 memory_order_acq_rel) +
                       1;
    return arrived == (uint64_t)flow->generation * flow->actions[index].n_needs;
}

static void hand_out(struct rf_flow *flow, uint32_t index)
{
    const struct rf_action *action = &flow->actions[index];
    if (action->owner == RF_FLOW_ANYONE) {
        hand_out_portions(flow, action);
    } else {
        hand_to_owner(flow, index);
    }
}

void rf_flow_arrive(struct rf_flow *flow, uint32_t index)
{
    const struct rf_action *action = &flow->actions[index];
    if (!is_full(flow, index)) {
        return;
    }
    if (action->kind != RF_ACTION_GATE) {
        hand_out(flow, index);
        return;
    }
    /* A successor of a gate is never a gate. */
    for (uint32_t i = 0; i < action->n_next; i++) {
        uint32_t next = flow->next[action->first_next + i];
        if (is_full(flow, next)) {
            hand_out(flow, next);
        }
    }
}

void rf_flow_complete(struct rf_flow *flow, uint32_t index)
{
    const struct rf_action *action = &flow->actions[index];
    for (uint32_t i = 0; i < action->n_next; i++) {
        rf_flow_arrive(flow, flow->next[action->first_next + i]);
    }
}

void rf_flow_part_done(struct rf_flow *flow, uint32_t index)
{
    const struct rf_action *action = &flow->actions[index];
    if (action->n_next == 0) {
        return; /* this copy has no successor */
    }
    if (atomic_fetch_add_explicit(&flow->parts[index], 1,
                                  memory_order_acq_rel) +
            1 ==
        (uint64_t)flow->generation * action->n_parts) {
        rf_flow_complete(flow, index);
    }
}

/* --- taking --------------------------------------------------------------- */

static bool peek(const struct rf_flow *flow, uint32_t *index)
{
    const struct rf_flow_queue *queue = &flow->queues[flow->self];
    uint64_t entry;
    if (queue->taken == queue->size * flow->generation) {
        return false;
    }
    entry = atomic_load_explicit(&queue->entries[queue->taken % queue->size],
                                 memory_order_acquire);
    *index = (uint32_t)entry;
    return has_tag(flow, entry);
}

bool rf_flow_take(struct rf_flow *flow, uint32_t *action)
{
    if (!peek(flow, action)) {
        return false;
    }
    flow->queues[flow->self].taken++;
    return true;
}

/* The portion at the cursor, if ready. */
static bool portion_at(const struct rf_flow *flow, uint64_t cursor,
                       uint32_t *portion)
{
    uint64_t at = has_tag(flow, cursor) ? (uint32_t)cursor : 0;
    uint64_t ring = flow->n_portions - flow->n_free, entry;
    if (at >= flow->n_portions) {
        return false;
    }
    if (at < flow->n_free) {
        *portion = (uint32_t)at;
        return true;
    }
    entry =
        atomic_load_explicit(&flow->ready_portions[(at - flow->n_free) % ring],
                             memory_order_acquire);
    *portion = (uint32_t)entry;
    return has_tag(flow, entry);
}

bool rf_flow_claim_portion(struct rf_flow *flow, uint32_t *portion)
{
    uint64_t cursor = atomic_load(&flow->shared->cursor);
    for (;;) {
        uint64_t at = has_tag(flow, cursor) ? (uint32_t)cursor : 0;
        if (!portion_at(flow, cursor, portion)) {
            return false;
        }
        if (atomic_compare_exchange_weak(&flow->shared->cursor, &cursor,
                                         tagged(flow, at + 1))) {
            return true;
        }
    }
}

void rf_flow_portion_done(struct rf_flow *flow)
{
    atomic_fetch_add_explicit(&flow->shared->done, 1, memory_order_acq_rel);
    if (rf_flow_portions_finished(flow)) {
        rf_node_memory_wake_all(flow->shm);
    }
}

bool rf_flow_portions_finished(const struct rf_flow *flow)
{
    return atomic_load_explicit(&flow->shared->done, memory_order_acquire) >=
           (uint64_t)flow->generation * flow->n_portions;
}

bool rf_flow_has_work(const struct rf_flow *flow)
{
    uint32_t unused;
    return peek(flow, &unused) ||
           portion_at(flow, atomic_load(&flow->shared->cursor), &unused);
}

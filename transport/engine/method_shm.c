/*
 * Method `shm`: only handles move. A destination maps its sources' memory; a
 * piece that one source holds in the same layout is used in place (zero copy),
 * the destination copies all others from the mapping. The host-memory twin of
 * CUDA IPC, also for ranks of one node only.
 *
 * Bytes counted: one handle (process, descriptor, offset, size) per pair of
 * ranks with zero-copy pieces; copies count as in other methods.
 *
 * planner/schedule/in_place.c finds the pieces used in place.
 */
#include "transport/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/system_calls.h"
#include "planner/schedule/in_place.h"

#define HANDLE_BYTES 24

static void mark_nothing(const struct rf_engine *engine, bool *nothing)
{
    const struct rf_schedule *schedule = engine->env->schedule;
    struct rf_in_place_set in_place;
    rf_in_place_find(engine->env->plan, schedule, RF_NONE, &in_place);
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_in_place *cover =
            rf_in_place_of_op(&in_place, &schedule->ops[i]);
        nothing[i] = cover != NULL && cover->usable;
    }
    rf_in_place_free(&in_place);
}

/* Counts one handle for each other rank whose memory this rank uses in place,
 * and one for each that uses this rank's. */
static void count_handles(struct rf_engine *engine)
{
    const struct rf_schedule *schedule = engine->env->schedule;
    uint32_t self = engine->env->rank;
    uint32_t n_ranks = engine->env->plan->world->n_ranks;
    bool *sent = rf_xcalloc(n_ranks, sizeof(*sent));
    bool *received = rf_xcalloc(n_ranks, sizeof(*received));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (!engine->nothing[i] || op->src == op->dst) {
            continue;
        }
        if (op->src == self && !sent[op->dst]) {
            sent[op->dst] = true;
            engine->copied_sent += HANDLE_BYTES;
        }
        if (op->dst == self && !received[op->src]) {
            received[op->src] = true;
            engine->copied_received += HANDLE_BYTES;
        }
    }
    free(sent);
    free(received);
}

static void find_places(struct rf_engine *engine)
{
    const struct rf_method_env *env = engine->env;
    const size_t n_pieces =
        rf_plan_layout(env->plan, RF_INFER, env->rank)->n_pieces;
    struct rf_in_place_set in_place;
    rf_in_place_find(env->plan, env->schedule, env->rank, &in_place);
    engine->places = rf_xcalloc(n_pieces, sizeof(*engine->places));
    for (size_t p = 0; p < n_pieces; p++) {
        const struct rf_in_place *cover =
            in_place.ranks[env->rank].layout != NULL
                ? &in_place.ranks[env->rank].by_piece[p]
                : NULL;
        if (cover != NULL && cover->usable) {
            const struct rf_node_memory_peer *peer =
                &engine->shm
                     ->peers[rf_node_memory_slot(engine->shm, cover->src)];
            engine->places[p].base =
                (const uint8_t *)peer->arena[RF_MEM_TRAIN] + cover->offset;
            memcpy(engine->places[p].stride, cover->stride,
                   sizeof(cover->stride));
        }
    }
    rf_in_place_free(&in_place);
}

static enum rf_status open_shm(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    static const struct rf_copy_engine_policy policy = {
        .inside = RF_ROUTE_OWN,
        .near = RF_ROUTE_OWN,
        .far = RF_ROUTE_OWN,
        .mark_nothing = mark_nothing,
    };
    RF_TRY(rf_engine_open(env, &policy, state, err));
    count_handles(*state);
    find_places(*state);
    return RF_OK;
}

static const void *base_of(const struct rf_piece *piece,
                           uint64_t stride[RF_BOX_DIMS], void *state)
{
    const struct rf_engine *engine = state;
    const struct rf_rank_layout *layout =
        rf_plan_layout(engine->env->plan, RF_INFER, engine->env->rank);
    const struct rf_engine_place *place =
        &engine->places[piece - layout->pieces];
    if (place->base != NULL) {
        memcpy(stride, place->stride, sizeof(place->stride));
    }
    return place->base;
}

const struct rf_method_ops rf_method_shm = {
    .info = &rf_method_infos[RF_METHOD_SHM],
    .calls = RF_CALLS_OF_NODE,
    .open = open_shm,
    .base_of = base_of,
    RF_ENGINE_HOOKS,
};

/*
 * Method `shm`: only handles move. A destination maps its sources' memory; a
 * piece that one source holds with the same layout is used where it is (zero
 * copy), all others are copied from the mapping by the destination. The twin of
 * CUDA IPC in host memory, and like it for ranks of one node only.
 *
 * Bytes: a zero-copy piece costs one handle (process, descriptor, offset, size)
 * for each pair of ranks; copies count as everywhere.
 *
 * Which pieces are used in place is found in planner/schedule/in_place.c.
 */
#include "transport/engine/engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/system_calls.h"
#include "planner/schedule/in_place.h"

#define HANDLE_BYTES 24

/* Where a destination piece of this rank lives. */
struct piece_place {
    const uint8_t *base; /* NULL: in the arena */
    uint64_t stride[RF_BOX_DIMS];
};

struct shm_state {
    struct rf_engine *engine;
    const struct rf_rank_layout *layout; /* of the inference side */
    struct piece_place *places;          /* by piece */
};

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

/* A handle for every other rank whose memory this one uses in place, and for
 * every other rank that uses this one's. */
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

static void find_places(struct shm_state *shm)
{
    const struct rf_engine *engine = shm->engine;
    const struct rf_method_env *env = engine->env;
    struct rf_in_place_set in_place;
    rf_in_place_find(env->plan, env->schedule, env->rank, &in_place);
    shm->layout = rf_plan_layout(env->plan, RF_INFER, env->rank);
    shm->places = rf_xcalloc(shm->layout->n_pieces, sizeof(*shm->places));
    for (size_t p = 0; p < shm->layout->n_pieces; p++) {
        const struct rf_in_place *cover =
            in_place.ranks[env->rank].layout != NULL
                ? &in_place.ranks[env->rank].by_piece[p]
                : NULL;
        if (cover != NULL && cover->usable) {
            const struct rf_node_memory_peer *peer =
                &engine->shm
                     ->peers[rf_node_memory_slot(engine->shm, cover->src)];
            shm->places[p].base =
                (const uint8_t *)peer->arena[RF_MEM_TRAIN] + cover->offset;
            memcpy(shm->places[p].stride, cover->stride, sizeof(cover->stride));
        }
    }
    rf_in_place_free(&in_place);
}

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)op;
    (void)same_node;
    return RF_ROUTE_OWN;
}

static const struct rf_copy_engine_policy policy = {
    .route = route,
    .mark_nothing = mark_nothing,
    .carrier = &rf_carrier_none,
};

static enum rf_status probe_shm(struct rf_err *err)
{
    return rf_system_calls_try(RF_CALLS_OF_NODE, err);
}

static enum rf_status check_node(const struct rf_method_env *env,
                                 struct rf_err *err)
{
    const struct rf_rank *ranks = env->plan->world->ranks;
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        const struct rf_op *op = &env->schedule->ops[i];
        if (ranks[op->src].node != ranks[op->dst].node) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "method shm cannot move data from rank %" PRIu32
                              " to rank %" PRIu32 " on another node",
                              op->src, op->dst);
        }
    }
    return RF_OK;
}

static enum rf_status open_shm(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    struct shm_state *shm;
    void *engine;
    enum rf_status status = check_node(env, err);
    RF_THEN(status, rf_engine_open(env, &policy, &engine, err));
    if (status != RF_OK) {
        return status;
    }
    shm = rf_xcalloc(1, sizeof(*shm));
    shm->engine = engine;
    count_handles(shm->engine);
    find_places(shm);
    *state = shm;
    return RF_OK;
}

static enum rf_status start(void *state, uint64_t iteration, struct rf_err *err)
{
    struct shm_state *shm = state;
    return rf_engine_start(shm->engine, iteration, err);
}

static enum rf_status progress(void *state, bool *done, struct rf_err *err)
{
    struct shm_state *shm = state;
    return rf_engine_progress(shm->engine, done, err);
}

static void timing(void *state, struct rf_phase_times *out)
{
    struct shm_state *shm = state;
    rf_engine_timing(shm->engine, out);
}

static const void *base_of(const struct rf_piece *piece,
                           uint64_t stride[RF_BOX_DIMS], void *state)
{
    const struct shm_state *shm = state;
    const struct piece_place *place = &shm->places[piece - shm->layout->pieces];
    if (place->base != NULL) {
        memcpy(stride, place->stride, sizeof(place->stride));
    }
    return place->base;
}

static bool leaves(size_t op, const void *state)
{
    const struct shm_state *shm = state;
    return rf_engine_leaves(op, shm->engine);
}

static void abort_shm(void *state)
{
    struct shm_state *shm = state;
    rf_engine_abort(shm == NULL ? NULL : shm->engine);
}

static void close_shm(void *state)
{
    struct shm_state *shm = state;
    if (shm != NULL) {
        rf_engine_close(shm->engine);
        free(shm->places);
        free(shm);
    }
}

const struct rf_method_ops rf_method_shm = {
    .info = &rf_method_infos[RF_METHOD_SHM],
    .probe = probe_shm,
    .open = open_shm,
    .start = start,
    .progress = progress,
    .timing = timing,
    .ways = rf_method_one_way,
    .base_of = base_of,
    .leaves = leaves,
    .abort = abort_shm,
    .close = close_shm,
};

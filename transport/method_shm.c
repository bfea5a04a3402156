/*
 * Method `shm`: only handles move. A destination maps its sources' memory; a
 * piece that one source holds with the same layout is used where it is (zero
 * copy), all others are copied from the mapping by the destination. The twin of
 * CUDA IPC in host memory, and like it for ranks of one node only.
 *
 * Bytes: a zero-copy piece costs one handle (process, descriptor, offset, size)
 * for each pair of ranks; copies count as everywhere.
 *
 * A piece is used in place when ops from one rank's training memory cover it,
 * without casts, every element sits where the piece's own strides would put it
 * (layers and experts, which are parameters of their own, may be anywhere), and
 * nobody forwards it.
 */
#include "transport/engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define HANDLE_BYTES 24

/* Where a destination piece of this rank lives. */
struct place {
    const uint8_t *base; /* NULL: in the arena */
    uint64_t stride[RF_BOX_DIMS];
};

struct shm_state {
    struct rf_engine *engine;
    const struct rf_rank_layout *layout; /* of the inference side */
    struct place *places;                /* by piece */
};

/* What is known of a piece while its ops are looked at. */
struct cover {
    uint32_t src;
    bool usable;
    uint64_t elements; /* covered so far */
    uint64_t offset;   /* of the piece's first element in the source's arena */
    uint64_t stride[RF_BOX_DIMS];
};

static uint64_t elements_of(const struct rf_box *box)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        n *= box->extent[d];
    }
    return n;
}

/* Whether `op` writes into `piece`, and how far from its first element that is
 * at the source. */
static bool is_inside(const struct rf_op *op, const struct rf_piece *piece,
                      uint64_t *src_distance)
{
    uint64_t at = piece->offset;
    *src_distance = 0;
    if (op->family != piece->family) {
        return false;
    }
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t from = op->box.start[d] - piece->box.start[d];
        if (op->box.start[d] < piece->box.start[d] ||
            from + op->box.extent[d] > piece->box.extent[d]) {
            return false;
        }
        at += from * piece->stride[d];
        *src_distance += from * op->src_stride[d];
    }
    return at == op->dst_offset;
}

static bool has_same_strides(const struct rf_op *op,
                             const struct rf_piece *piece)
{
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        if (piece->box.extent[d] > 1 && op->src_stride[d] != piece->stride[d]) {
            return false;
        }
    }
    return true;
}

static void add_to_cover(struct cover *cover, const struct rf_op *op,
                         const struct rf_piece *piece, uint64_t distance,
                         bool forwarded)
{
    bool first = cover->elements == 0;
    if (first) {
        cover->src = op->src;
        cover->offset = op->src_offset - distance;
        memcpy(cover->stride, op->src_stride, sizeof(cover->stride));
        cover->usable = true;
    }
    cover->elements += elements_of(&op->box);
    cover->usable =
        cover->usable && !forwarded && op->dep == RF_NO_OP &&
        op->src_mem == RF_MEM_TRAIN && op->cast == RF_CAST_NONE &&
        op->src == cover->src && op->src_offset - distance == cover->offset &&
        memcmp(cover->stride, op->src_stride, sizeof(cover->stride)) == 0 &&
        has_same_strides(op, piece);
}

static bool *find_forwarded(const struct rf_flow *flow)
{
    const struct rf_schedule *schedule = flow->schedule;
    bool *forwarded = rf_xcalloc(schedule->n_ops, sizeof(*forwarded));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        uint32_t copy = flow->of_op[i].copy;
        const struct rf_action *action = &flow->actions[copy];
        for (uint32_t n = 0; n < action->n_next; n++) {
            uint32_t next = flow->next[action->first_next + n];
            forwarded[i] |= flow->actions[next].kind != RF_ACTION_GATE;
        }
    }
    return forwarded;
}

/* Looks at all ops that end in one piece of rank `rank`; marks them when the
 * piece can be used in place. */
static bool cover_piece(const struct rf_engine *engine, uint32_t rank,
                        const struct rf_piece *piece, const bool *forwarded,
                        bool *nothing, struct cover *cover)
{
    const struct rf_schedule *schedule = engine->env->schedule;
    uint64_t distance;
    memset(cover, 0, sizeof(*cover));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->dst == rank && op->dst_mem == RF_MEM_INFER &&
            is_inside(op, piece, &distance)) {
            add_to_cover(cover, op, piece, distance, forwarded[i]);
        }
    }
    if (!cover->usable || cover->elements != elements_of(&piece->box)) {
        return false;
    }
    for (size_t i = 0; i < schedule->n_ops && nothing != NULL; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->dst == rank && op->dst_mem == RF_MEM_INFER &&
            is_inside(op, piece, &distance)) {
            nothing[i] = true;
        }
    }
    return true;
}

static void mark_nothing(const struct rf_engine *engine, bool *nothing)
{
    const struct rf_world *world = engine->env->plan->world;
    bool *forwarded = find_forwarded(engine->flow);
    for (uint32_t rank = 0; rank < world->n_ranks; rank++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(engine->env->plan, RF_INFER, rank);
        for (size_t p = 0;
             p < layout->n_pieces && engine->flow->slots[rank] != RF_NONE;
             p++) {
            struct cover cover;
            (void)cover_piece(engine, rank, &layout->pieces[p], forwarded,
                              nothing, &cover);
        }
    }
    free(forwarded);
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
    bool *forwarded = find_forwarded(engine->flow);
    shm->layout =
        rf_plan_layout(engine->env->plan, RF_INFER, engine->env->rank);
    shm->places = rf_xcalloc(shm->layout->n_pieces, sizeof(*shm->places));
    for (size_t p = 0; p < shm->layout->n_pieces; p++) {
        struct cover cover;
        if (cover_piece(engine, engine->env->rank, &shm->layout->pieces[p],
                        forwarded, NULL, &cover)) {
            const struct rf_nodeshm_peer *peer =
                &engine->shm->peers[rf_nodeshm_slot(engine->shm, cover.src)];
            shm->places[p].base =
                (const uint8_t *)peer->arena[RF_MEM_TRAIN] + cover.offset;
            memcpy(shm->places[p].stride, cover.stride, sizeof(cover.stride));
        }
    }
    free(forwarded);
}

static enum rf_route route(const struct rf_method_env *env,
                           const struct rf_op *op, bool same_node)
{
    (void)env;
    (void)op;
    (void)same_node;
    return RF_ROUTE_OWN;
}

static const struct rf_engine_policy policy = {
    .route = route,
    .mark_nothing = mark_nothing,
    .carrier = &rf_carrier_none,
};

static enum rf_status check_node(const struct rf_method_env *env,
                                 struct rf_err *err)
{
    const struct rf_rank *ranks = env->plan->world->ranks;
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        const struct rf_op *op = &env->schedule->ops[i];
        if (ranks[op->src].node != ranks[op->dst].node) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "method shm cannot go from rank %" PRIu32
                              " to rank %" PRIu32 " on another node",
                              op->src, op->dst);
        }
    }
    return RF_OK;
}

static enum rf_status probe(struct rf_err *err)
{
    (void)err;
    return RF_OK;
}

static enum rf_status open_shm(const struct rf_method_env *env, void **state,
                               struct rf_err *err)
{
    struct shm_state *shm;
    struct rf_engine *engine;
    enum rf_status status = check_node(env, err);
    if (status == RF_OK) {
        status = rf_engine_open(env, &policy, &engine, err);
    }
    if (status != RF_OK) {
        return status;
    }
    shm = rf_xcalloc(1, sizeof(*shm));
    shm->engine = engine;
    count_handles(engine);
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
    for (size_t p = 0; p < shm->layout->n_pieces; p++) {
        if (piece == &shm->layout->pieces[p] && shm->places[p].base != NULL) {
            memcpy(stride, shm->places[p].stride,
                   sizeof(shm->places[p].stride));
            return shm->places[p].base;
        }
    }
    return NULL;
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
    .probe = probe,
    .open = open_shm,
    .start = start,
    .progress = progress,
    .timing = timing,
    .base_of = base_of,
    .abort = abort_shm,
    .close = close_shm,
};

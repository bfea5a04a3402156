/*
 * Builds a plan: layouts of both sides, shards and their matches, a source for
 * each match and receiver; then totals and digest of the transfers.
 *
 * Everything up to the choice of sources works on classes of ranks and on
 * families. Transfers, which differ from rank to rank, are not stored; a walk
 * lists them (plan_walk.h). Nothing is kept when a step fails.
 */
#include "planner/plan/plan.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_convert.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/plan_prove.h"
#include "planner/plan/plan_walk.h"

#define TRANSFER_WORDS (2 + 2 * RF_BOX_DIMS)

/* The contribution to totals and digest of a transfer of a whole match, the
 * same for all ranks of one source layout. */
struct repeat {
    uint32_t layout; /* the sources' layout + 1; 0: none yet */
    uint64_t tensors, piece_word;
    struct rf_hash_tail box;
};

/* State used only while a plan is made. */
struct plan_making {
    struct rf_plan *plan;
    uint64_t *match_bytes;
    struct repeat *repeats; /* by match */
    struct rf_assign_bounds bounds;
    uint64_t *send, *recv, *node_send, *node_recv; /* one allocation */
};

/* Elements of every match, and its bytes at the destination's dtype. */
static void weigh_matches(struct plan_making *making)
{
    struct rf_plan_private *priv = making->plan->priv;
    const struct rf_matches *matches = &priv->matches;
    making->match_bytes = rf_xcalloc(matches->n, sizeof(uint64_t));
    priv->match_elements = rf_xcalloc(matches->n, sizeof(uint64_t));
    for (uint32_t t = 0; t < priv->target.n_shards; t++) {
        const struct rf_shard *target = &priv->target.shards[t];
        uint64_t item =
            rf_form_item(rf_plan_form(making->plan, RF_INFER, target->family));
        for (size_t m = matches->first[t]; m < matches->first[t + 1]; m++) {
            struct rf_box both = target->box;
            rf_box_intersect(&priv->source.shards[matches->source[m]].box,
                             &target->box, &both);
            priv->match_elements[m] = rf_box_elements(&both);
            making->match_bytes[m] = priv->match_elements[m] * item;
        }
    }
}

static enum rf_status build_shards(const struct rf_plan *plan,
                                   enum rf_side side, struct rf_shards *out,
                                   struct rf_err *err)
{
    return rf_shards_build(plan->model, plan->world, &plan->priv->layouts[side],
                           side, out, err);
}

/* The layouts of what moves. */
static enum rf_status make_layouts(struct rf_plan *plan, struct rf_err *err)
{
    for (int side = 0; side < RF_SIDES; side++) {
        RF_TRY(rf_layouts_build(plan->model, plan->world, plan->spec,
                                (enum rf_side)side, &plan->priv->layouts[side],
                                err));
    }
    return plan->converted[RF_TRAIN] != NULL ? rf_plan_convert(plan, err)
                                             : RF_OK;
}

static enum rf_status choose_sources(struct plan_making *making,
                                     struct rf_err *err)
{
    const struct rf_plan *plan = making->plan;
    struct rf_plan_private *priv = plan->priv;
    RF_TRY(rf_link_weights_build(plan->world, plan->spec, &priv->weights, err));
    const struct rf_assign_input input = {
        .world = plan->world,
        .balance = plan->spec->balance,
        .source_layouts = &priv->layouts[RF_TRAIN],
        .target_layouts = &priv->layouts[RF_INFER],
        .source = &priv->source,
        .target = &priv->target,
        .matches = &priv->matches,
        .match_bytes = making->match_bytes,
        .weights = &priv->weights,
    };
    return rf_assign_build(&input, &priv->assign, &making->bounds, err);
}

/* Makes everything except the transfers; after a failure, rf_plan_build() frees
 * what is there. */
static enum rf_status prepare(struct plan_making *making, struct rf_err *err)
{
    struct rf_plan_private *priv = making->plan->priv;
    RF_TRY(make_layouts(making->plan, err));
    RF_TRY(build_shards(making->plan, RF_TRAIN, &priv->source, err));
    RF_TRY(build_shards(making->plan, RF_INFER, &priv->target, err));
    RF_TRY(rf_plan_prove_layouts(making->plan, err));
    rf_matches_build(&priv->source, &priv->target, &priv->matches);
    RF_TRY(rf_memory_admit(priv->matches.n *
                               (2 * sizeof(uint64_t) + sizeof(struct repeat)),
                           "matches of the layouts' pieces", err));
    weigh_matches(making);
    return choose_sources(making, err);
}

static void hash_layouts(struct rf_hash *hash, const struct rf_layouts *layouts)
{
    for (uint32_t i = 0; i < layouts->n_indices; i++) {
        rf_hash_u64(hash, layouts->of_index[i]);
    }
    for (uint32_t l = 0; l < layouts->n_layouts; l++) {
        const struct rf_rank_layout *layout = &layouts->layouts[l];
        rf_hash_u64(hash, layout->arena_bytes);
        rf_hash_u64(hash, layout->n_pieces);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            rf_hash_u64(hash, piece->family);
            rf_hash_u64(hash, piece->offset);
            for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
                rf_hash_u64(hash, piece->box.start[d]);
                rf_hash_u64(hash, piece->box.extent[d]);
                rf_hash_u64(hash, piece->stride[d]);
            }
        }
    }
}

/* Starts the digest: everything except the transfers. */
static void hash_world(struct rf_plan *plan)
{
    struct rf_hash *hash = &plan->digest;
    rf_hash_init(hash);
    hash_layouts(hash, &plan->priv->layouts[RF_TRAIN]);
    hash_layouts(hash, &plan->priv->layouts[RF_INFER]);
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        const struct rf_rank *rank = &plan->world->ranks[r];
        rf_hash_u64(hash, (uint64_t)rank->node << 32 | rank->slot);
        rf_hash_u64(hash, (uint64_t)rank->index[0] << 32 | rank->index[1]);
    }
}

/* Addresses follow from the layouts, so ranks, piece and box identify a
 * transfer. */
static void transfer_words(const struct rf_transfer *t,
                           uint64_t words[TRANSFER_WORDS])
{
    words[0] = (uint64_t)t->src << 32 | t->dst;
    words[1] = (uint64_t)t->family << 32 | t->src_piece;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        words[2 + 2 * d] = t->box.start[d];
        words[3 + 2 * d] = t->box.extent[d];
    }
}

static void count_bytes(struct plan_making *making, uint32_t src, uint32_t dst,
                        uint64_t tensors, uint64_t bytes)
{
    struct rf_plan *plan = making->plan;
    struct rf_plan_totals *totals = &plan->totals;
    uint32_t from = plan->world->ranks[src].node;
    uint32_t to = plan->world->ranks[dst].node;
    plan->n_transfers++;
    totals->transfers += tensors;
    totals->bytes_total += bytes;
    if (src == dst) {
        totals->bytes_local += bytes;
        return;
    }
    making->send[src] += bytes;
    making->recv[dst] += bytes;
    if (from == to) {
        totals->bytes_intra_node += bytes;
    } else {
        totals->bytes_inter_node += bytes;
        making->node_send[from] += bytes;
        making->node_recv[to] += bytes;
    }
}

static uint32_t source_layout(const struct rf_plan_walk *walk)
{
    const struct rf_plan *plan = walk->plan;
    return plan->priv->layouts[RF_TRAIN]
        .of_index[plan->world->ranks[walk->src].index[RF_TRAIN]];
}

/* Adds the current transfer of `walk`, which repeats the pieces and box of an
 * earlier one, to totals and digest. */
static void count_repeat(struct plan_making *making,
                         const struct rf_plan_walk *walk)
{
    const struct repeat *repeat = &making->repeats[walk->match];
    const uint64_t words[2] = {(uint64_t)walk->src << 32 | walk->dst,
                               repeat->piece_word};
    count_bytes(making, walk->src, walk->dst, repeat->tensors,
                walk->elements * walk->item);
    rf_hash_record_with(&making->plan->digest, words, 2, &repeat->box,
                        TRANSFER_WORDS);
}

/* The same for a transfer that is not a repeat; prepares its repeats. */
static void count_transfer(struct plan_making *making,
                           const struct rf_plan_walk *walk,
                           const struct rf_transfer *t)
{
    uint64_t words[TRANSFER_WORDS];
    uint64_t tensors =
        t->box.extent[RF_DIM_LAYER] * t->box.extent[RF_DIM_EXPERT];
    transfer_words(t, words);
    count_bytes(making, t->src, t->dst, tensors,
                rf_box_elements(&t->box) * walk->item);
    rf_hash_record(&making->plan->digest, words, TRANSFER_WORDS);
    if (walk->whole) {
        making->repeats[walk->match] = (struct repeat){
            .layout = source_layout(walk) + 1,
            .tensors = tensors,
            .piece_word = words[1],
            .box = rf_hash_tail_of(words, 2, TRANSFER_WORDS),
        };
    }
}

static uint64_t most(const uint64_t *values, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        most = RF_MAX(most, values[i]);
    }
    return most;
}

static void set_extremes(const struct plan_making *making)
{
    const struct rf_world *world = making->plan->world;
    struct rf_plan_totals *totals = &making->plan->totals;
    totals->max_send_bytes = most(making->send, world->n_ranks);
    totals->max_recv_bytes = most(making->recv, world->n_ranks);
    totals->max_node_send_bytes = most(making->node_send, world->n_nodes);
    totals->max_node_recv_bytes = most(making->node_recv, world->n_nodes);
    totals->bound_send_bytes = making->bounds.send;
    totals->bound_recv_bytes = making->bounds.recv;
    totals->bound_node_send_bytes = making->bounds.node_send;
    totals->bound_node_recv_bytes = making->bounds.node_recv;
}

/* Computes totals and digest in one walk. */
static void take_stock(struct plan_making *making)
{
    struct rf_plan *plan = making->plan;
    uint32_t ranks = plan->world->n_ranks, nodes = plan->world->n_nodes;
    struct rf_plan_walk walk;
    making->send =
        rf_xcalloc(2 * ((size_t)ranks + nodes) + 1, sizeof(uint64_t));
    making->repeats =
        rf_xcalloc(plan->priv->matches.n, sizeof(*making->repeats));
    making->recv = making->send + ranks;
    making->node_send = making->recv + ranks;
    making->node_recv = making->node_send + nodes;
    hash_world(plan);
    rf_plan_walk_start(&walk, plan);
    while (rf_plan_walk_step(&walk)) {
        if (walk.whole &&
            making->repeats[walk.match].layout == source_layout(&walk) + 1) {
            count_repeat(making, &walk);
        } else {
            count_transfer(making, &walk, rf_plan_walk_transfer(&walk));
        }
    }
    set_extremes(making);
    rf_plan_walk_end(&walk);
    free(making->send);
    free(making->repeats);
}

enum rf_status rf_plan_build(const struct rf_model *model,
                             const struct rf_world *world,
                             const struct rf_spec *spec, struct rf_plan **out,
                             struct rf_err *err)
{
    int64_t started = rf_now_ns();
    struct rf_plan *plan = rf_xcalloc(1, sizeof(*plan));
    struct plan_making making = {.plan = plan};
    enum rf_status status;
    plan->model = model;
    plan->world = world;
    plan->spec = spec;
    plan->weights = plan;
    for (uint32_t i = RF_INFER; i < spec->n_sides; i++) {
        const struct rf_quantize_spec *quantize = &spec->side[i].quantize;
        const uint32_t by = quantize->at_sender ? RF_TRAIN : i;
        if (quantize->format != NULL && plan->converted[by] == NULL) {
            plan->converted[by] = rf_converted_make(model, quantize->format);
        }
    }
    plan->priv = rf_xcalloc(1, sizeof(*plan->priv));
    status = prepare(&making, err);
    free(making.match_bytes);
    if (status != RF_OK) {
        rf_plan_destroy(plan);
        return status;
    }
    take_stock(&making);
    plan->plan_ns = rf_now_ns() - started;
    *out = plan;
    return RF_OK;
}

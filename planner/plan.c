/*
 * The plan: layouts of both sides, shards and their matches, a source for each
 * match and receiver, transfers, totals, digest, proof.
 *
 * Everything up to the choice of sources works on classes of ranks and on
 * families; only the transfers themselves are one a rank. Nothing is kept when
 * a step fails.
 */
#include "planner/plan.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/assign.h"
#include "planner/box.h"
#include "planner/plan_private.h"

/* What is needed only while a plan is made. */
struct making {
    struct rf_plan *plan;
    struct rf_shards source, target;
    struct rf_matches matches;
    uint64_t *match_bytes;
    struct rf_assign *assign;
    struct rf_assign_bounds bounds;
    size_t cap; /* of plan->transfers */
};

void rf_plan_destroy(struct rf_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    if (plan->priv != NULL) {
        rf_layouts_free(&plan->priv->layouts[RF_TRAIN]);
        rf_layouts_free(&plan->priv->layouts[RF_INFER]);
        free(plan->priv);
    }
    free(plan->transfers);
    free(plan);
}

const struct rf_rank_layout *rf_plan_layout(const struct rf_plan *plan,
                                            enum rf_side side, uint32_t rank)
{
    static const struct rf_rank_layout nothing = {.n_pieces = 0};
    const struct rf_layouts *layouts = &plan->priv->layouts[side];
    uint32_t index = plan->world->ranks[rank].index[side];
    return index == RF_NONE ? &nothing
                            : &layouts->layouts[layouts->of_index[index]];
}

uint32_t rf_plan_item_bytes(const struct rf_plan *plan, enum rf_side side,
                            uint32_t family)
{
    const struct rf_side_spec *spec =
        side == RF_TRAIN ? &plan->spec->train : &plan->spec->infer;
    return rf_dtype_bytes(
        spec->dtype_given ? spec->dtype : plan->model->families[family].dtype);
}

static void free_making(struct making *making)
{
    rf_shards_free(&making->source);
    rf_shards_free(&making->target);
    rf_matches_free(&making->matches);
    rf_assign_destroy(making->assign);
    free(making->match_bytes);
}

/* Bytes of every match at the destination's dtype. */
static enum rf_status weigh_matches(struct making *making, struct rf_err *err)
{
    const struct rf_matches *matches = &making->matches;
    making->match_bytes = rf_calloc(matches->n, sizeof(uint64_t));
    if (making->match_bytes == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no memory for %zu matches",
                          matches->n);
    }
    for (uint32_t t = 0; t < making->target.n_shards; t++) {
        const struct rf_shard *target = &making->target.shards[t];
        uint64_t item =
            rf_plan_item_bytes(making->plan, RF_INFER, target->family);
        for (size_t m = matches->first[t]; m < matches->first[t + 1]; m++) {
            struct rf_box both = target->box;
            rf_box_intersect(&making->source.shards[matches->source[m]].box,
                             &target->box, &both);
            making->match_bytes[m] = rf_box_elements(&both) * item;
        }
    }
    return RF_OK;
}

static enum rf_status prepare(struct making *making, struct rf_err *err)
{
    struct rf_plan *plan = making->plan;
    struct rf_layouts *layouts = plan->priv->layouts;
    struct rf_shards *shards[] = {
        [RF_TRAIN] = &making->source, [RF_INFER] = &making->target};
    enum rf_status status = RF_OK;
    for (unsigned side = 0; side < RF_SIDES && status == RF_OK; side++) {
        status = rf_layouts_build(plan->model, plan->world, plan->spec,
                                  (enum rf_side)side, &layouts[side], err);
        if (status == RF_OK) {
            status = rf_shards_build(plan->model, plan->world, &layouts[side],
                                     (enum rf_side)side, shards[side], err);
        }
    }
    if (status == RF_OK) {
        status = rf_matches_build(&making->source, &making->target,
                                  &making->matches, err);
    }
    if (status == RF_OK) {
        status = weigh_matches(making, err);
    }
    if (status == RF_OK) {
        struct rf_assign_input input = {
            .world = plan->world,
            .balance = plan->spec->balance,
            .source_layouts = &layouts[RF_TRAIN],
            .target_layouts = &layouts[RF_INFER],
            .source = &making->source,
            .target = &making->target,
            .matches = &making->matches,
            .match_bytes = making->match_bytes,
        };
        status = rf_assign_build(&input, &making->assign, &making->bounds, err);
    }
    return status;
}

static enum rf_status grow(struct making *making, size_t cap,
                           struct rf_err *err)
{
    struct rf_plan *plan = making->plan;
    struct rf_transfer *larger = NULL;
    if (cap <= SIZE_MAX / sizeof(*larger)) {
        larger = realloc(plan->transfers, RF_MAX(cap, 1) * sizeof(*larger));
    }
    if (larger == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no memory for %zu transfers",
                          cap);
    }
    plan->transfers = larger;
    making->cap = cap;
    return RF_OK;
}

/* Transfers without cuts: what is allocated at first. */
static size_t count_transfers(const struct making *making)
{
    const struct rf_world *world = making->plan->world;
    const struct rf_layouts *layouts = &making->plan->priv->layouts[RF_INFER];
    size_t n = 0;
    for (uint32_t i = 0; i < world->size[RF_INFER]; i++) {
        uint32_t layout = layouts->of_index[i];
        for (size_t p = making->target.piece_first[layout];
             p < making->target.piece_first[layout + 1]; p++) {
            uint32_t t = making->target.of_piece[p];
            n += making->matches.first[t + 1] - making->matches.first[t];
        }
    }
    return n;
}

static void fill_transfer(const struct making *making,
                          const struct rf_piece *to, uint32_t shard,
                          uint32_t src, uint32_t dst, const struct rf_box *box,
                          struct rf_transfer *out)
{
    const struct rf_plan *plan = making->plan;
    const struct rf_layouts *layouts = &plan->priv->layouts[RF_TRAIN];
    uint32_t layout =
        layouts->of_index[plan->world->ranks[src].index[RF_TRAIN]];
    size_t number = rf_layout_piece(&making->source, layout, shard);
    const struct rf_piece *from = &layouts->layouts[layout].pieces[number];
    *out = (struct rf_transfer){
        .family = to->family,
        .src = src,
        .dst = dst,
        .src_piece = (uint32_t)number,
        .box = *box,
        .src_offset = rf_piece_offset(from, box->start),
        .dst_offset = rf_piece_offset(to, box->start),
    };
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        out->src_stride[d] = from->stride[d];
        out->dst_stride[d] = to->stride[d];
    }
}

/* The transfers of what `to` (a piece of rank `dst`) and source shard `shard`
 * have in common. */
static enum rf_status add_match(struct making *making,
                                const struct rf_piece *to, uint32_t shard,
                                uint32_t dst, struct rf_err *err)
{
    struct rf_plan *plan = making->plan;
    struct rf_box both = to->box, boxes[RF_BOX_RANGE_MAX];
    uint32_t item = rf_plan_item_bytes(plan, RF_INFER, to->family);
    uint64_t elements, done = 0, count;
    rf_box_intersect(&making->source.shards[shard].box, &to->box, &both);
    elements = rf_box_elements(&both);
    while (done < elements) {
        uint32_t src = rf_assign_next(making->assign, shard, &both, elements,
                                      done, item, &count);
        size_t n = 1;
        if (count == elements) {
            boxes[0] = both;
        } else {
            n = rf_box_range(&both, done, done + count, boxes);
        }
        if (plan->n_transfers + n > making->cap) {
            enum rf_status status =
                grow(making, making->cap + making->cap / 4 + n, err);
            if (status != RF_OK) {
                return status;
            }
        }
        for (size_t i = 0; i < n; i++) {
            fill_transfer(making, to, shard, src, dst, &boxes[i],
                          &plan->transfers[plan->n_transfers++]);
        }
        done += count;
    }
    return RF_OK;
}

static enum rf_status list_transfers(struct making *making, struct rf_err *err)
{
    struct rf_plan *plan = making->plan;
    const struct rf_layouts *layouts = &plan->priv->layouts[RF_INFER];
    enum rf_status status = grow(making, count_transfers(making), err);
    for (uint32_t r = 0; r < plan->world->n_ranks && status == RF_OK; r++) {
        uint32_t index = plan->world->ranks[r].index[RF_INFER];
        if (index == RF_NONE) {
            continue;
        }
        uint32_t layout = layouts->of_index[index];
        const struct rf_rank_layout *pieces = &layouts->layouts[layout];
        size_t first = making->target.piece_first[layout];
        rf_assign_receiver(making->assign, r);
        for (size_t p = 0; p < pieces->n_pieces; p++) {
            uint32_t t = making->target.of_piece[first + p];
            for (size_t m = making->matches.first[t];
                 m < making->matches.first[t + 1] && status == RF_OK; m++) {
                status = add_match(making, &pieces->pieces[p],
                                   making->matches.source[m], r, err);
            }
        }
    }
    return status;
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

/* Addresses follow from the layouts, so a transfer's ranks, piece and box say
 * all of it. */
static void hash_plan(struct rf_plan *plan)
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
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const struct rf_transfer *t = &plan->transfers[i];
        uint32_t dims = rf_family_ndim(&plan->model->families[t->family]);
        rf_hash_u64(hash, (uint64_t)t->src << 32 | t->dst);
        rf_hash_u64(hash, (uint64_t)t->family << 32 | t->src_piece);
        for (uint32_t d = 0; d < dims; d++) {
            rf_hash_u64(hash, t->box.start[d]);
            rf_hash_u64(hash, t->box.extent[d]);
        }
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

static enum rf_status add_totals(struct rf_plan *plan,
                                 const struct rf_assign_bounds *bounds,
                                 struct rf_err *err)
{
    const struct rf_world *world = plan->world;
    struct rf_plan_totals *totals = &plan->totals;
    uint32_t ranks = world->n_ranks, nodes = world->n_nodes;
    uint64_t *load = rf_calloc(2 * ((size_t)ranks + nodes) + 1, sizeof(*load));
    if (load == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no memory for %u ranks", ranks);
    }
    uint64_t *recv = load + ranks, *node_send = recv + ranks;
    uint64_t *node_recv = node_send + nodes;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const struct rf_transfer *t = &plan->transfers[i];
        uint64_t bytes = rf_box_elements(&t->box) *
                         rf_plan_item_bytes(plan, RF_INFER, t->family);
        uint32_t from = world->ranks[t->src].node;
        uint32_t to = world->ranks[t->dst].node;
        totals->transfers +=
            t->box.extent[RF_DIM_LAYER] * t->box.extent[RF_DIM_EXPERT];
        totals->bytes_total += bytes;
        if (t->src == t->dst) {
            totals->bytes_local += bytes;
            continue;
        }
        load[t->src] += bytes;
        recv[t->dst] += bytes;
        if (from == to) {
            totals->bytes_intra_node += bytes;
        } else {
            totals->bytes_inter_node += bytes;
            node_send[from] += bytes;
            node_recv[to] += bytes;
        }
    }
    totals->max_send_bytes = most(load, ranks);
    totals->max_recv_bytes = most(recv, ranks);
    totals->max_node_send_bytes = most(node_send, nodes);
    totals->max_node_recv_bytes = most(node_recv, nodes);
    totals->bound_send_bytes = bounds->send;
    totals->bound_recv_bytes = bounds->recv;
    totals->bound_node_send_bytes = bounds->node_send;
    totals->bound_node_recv_bytes = bounds->node_recv;
    free(load);
    return RF_OK;
}

enum rf_status rf_plan_build(const struct rf_model *model,
                             const struct rf_world *world,
                             const struct rf_spec *spec, struct rf_plan **out,
                             struct rf_err *err)
{
    int64_t started = rf_now_ns();
    struct rf_plan *plan = rf_xcalloc(1, sizeof(*plan));
    struct making making = {.plan = plan};
    enum rf_status status;
    plan->model = model;
    plan->world = world;
    plan->spec = spec;
    plan->priv = rf_xcalloc(1, sizeof(*plan->priv));
    status = prepare(&making, err);
    if (status == RF_OK) {
        status = list_transfers(&making, err);
    }
    if (status == RF_OK) {
        status = add_totals(plan, &making.bounds, err);
    }
    free_making(&making);
    if (status == RF_OK) {
        hash_plan(plan);
        status = rf_plan_prove(plan, err);
    }
    if (status != RF_OK) {
        rf_plan_destroy(plan);
        return status;
    }
    plan->plan_ns = rf_now_ns() - started;
    *out = plan;
    return RF_OK;
}

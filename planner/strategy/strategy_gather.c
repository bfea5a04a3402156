/*
 * gather_broadcast: the method of many frameworks. Full tensors are gathered, a
 * bucket at a time, in the staging memory of one training rank (the root), sent
 * from there to the staging memory of every inference rank, and each inference
 * rank copies its slices out of it. It moves every byte to every inference rank
 * and serves as a baseline.
 *
 * A bucket is filled with *slabs*: whole tensors (of several layers or experts
 * where they fit), each row-major; only a tensor larger than a bucket is cut.
 * Bucket b lies in slot b % RF_STAGE_SLOTS at the same offset on every rank. A
 * *chunk* is the part of a slab inside one unit task, of bounded size: one op
 * gathers it, a chain across nodes with a fan-out inside them broadcasts it,
 * and one op on every rank that needs it takes it out.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"
#include "planner/schedule/bcast.h"
#include "planner/strategy/bcast_build.h"

#define SLAB_ALIGN 64
#define CHUNK_BYTES_MIN 65536
#define CHUNKS_A_BUCKET 32

struct slab {
    uint32_t family, bucket;
    struct rf_box box;
    uint64_t offset; /* in its slot */
    uint64_t stride[RF_BOX_DIMS];
};

struct chunk {
    struct rf_op op; /* gathers it; a copy, since a node's schedule may lack
                        it */
    uint32_t at;     /* its index in `ops` of the world's schedule */
    uint32_t unit;
};

struct gather {
    struct rf_builder *builder;
    struct rf_bcast_template *tmpl; /* the tree and the unit tasks */
    struct rf_bcast_build build;
    struct slab *slabs;
    size_t n_slabs, slabs_capacity;
    struct chunk *chunks; /* of the current bucket */
    size_t n_chunks, chunks_capacity;
    uint64_t slot_bytes, *load; /* load: bytes gathered from each rank */
    uint32_t root;
    bool has_chain;      /* of heads, after the root */
    uint32_t next_bcast; /* first round in which the chain takes another
                            chunk */
    uint32_t slot_end[RF_STAGE_SLOTS]; /* first round after the slot's reads */
};

/* The largest box from `at` on, in row-major order, of at most `room` elements;
 * advances `at` past it. False when not even one tensor (with `cut`: one
 * element) fits. */
static bool take_box(const struct rf_box *whole, uint64_t *at, uint64_t room,
                     bool cut, struct rf_box *out)
{
    uint32_t dim = RF_BOX_DIMS - 1;
    while (dim > 0 && at[dim] == 0 && rf_box_step(whole, dim - 1) <= room) {
        dim--;
    }
    uint64_t step = rf_box_step(whole, dim);
    if (step > room || (!cut && dim >= RF_DIM_TENSOR)) {
        return false;
    }
    *out = *whole;
    for (uint32_t d = 0; d < dim; d++) {
        out->start[d] = at[d];
        out->extent[d] = 1;
    }
    out->start[dim] = at[dim];
    out->extent[dim] = RF_MIN(whole->extent[dim] - at[dim], room / step);
    at[dim] += out->extent[dim];
    while (dim > 0 && at[dim] == whole->extent[dim]) {
        at[dim--] = 0;
        at[dim]++;
    }
    return true;
}

/* Packs a whole family into buckets, from (*bucket, *used) on. */
static void pack_family(struct gather *gather, uint32_t family,
                        uint32_t *bucket, uint64_t *used)
{
    uint64_t capacity = gather->builder->spec->bucket_bytes;
    const uint32_t item =
        rf_form_item(rf_plan_wire(gather->builder->plan, family));
    struct rf_box whole =
        rf_box_whole(&gather->builder->plan->model->families[family]);
    bool cut = rf_box_step(&whole, RF_DIM_TENSOR - 1) > capacity / item;
    uint64_t at[RF_BOX_DIMS] = {0};
    while (at[0] < whole.extent[0]) {
        struct slab slab = {.family = family, .offset = *used};
        uint64_t room = *used < capacity ? (capacity - *used) / item : 0;
        if (!take_box(&whole, at, room, cut, &slab.box)) {
            ++*bucket;
            *used = 0;
            continue;
        }
        slab.bucket = *bucket;
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            slab.stride[d] = rf_box_step(&slab.box, d) * item;
        }
        uint64_t end = *used + rf_box_elements(&slab.box) * item;
        gather->slot_bytes = RF_MAX(gather->slot_bytes, end);
        *used = rf_align_up(end, SLAB_ALIGN);
        RF_PUSH(gather->slabs, gather->n_slabs, gather->slabs_capacity, slab);
    }
}

/* Packs all that the inference side needs; returns the bucket count. */
static uint32_t pack(struct gather *gather)
{
    uint32_t bucket = 0;
    uint64_t used = 0;
    for (size_t u = 0; u < gather->tmpl->units.n; u++) {
        uint32_t family = gather->tmpl->units.of[u].family;
        if (u == 0 || family != gather->tmpl->units.of[u - 1].family) {
            pack_family(gather, family, &bucket, &used);
        }
    }
    gather->slot_bytes = rf_align_up(gather->slot_bytes, SLAB_ALIGN);
    return gather->n_slabs > 0 ? bucket + 1 : 0;
}

static uint32_t node_of(const struct gather *gather, uint32_t rank)
{
    return gather->builder->world->ranks[rank].node;
}

/* Root first; then one head for every other node of the inference side, in
 * order from the root's, each a child of the previous head; then all others as
 * children of their node's head. */
static void build_tree(struct gather *gather)
{
    const struct rf_world *world = gather->builder->world;
    struct rf_bcast_template *tmpl = gather->tmpl;
    uint32_t *head = rf_xmalloc(world->n_nodes * sizeof(*head));
    uint32_t *first = rf_xmalloc(world->n_nodes * sizeof(*first));
    uint32_t root_node = node_of(gather, gather->root), parent = 0;
    rf_bcast_template_add_hop(tmpl, 0, gather->root);
    memset(first, 0xff, world->n_nodes * sizeof(*first));
    for (uint32_t r = world->n_ranks; r-- > 0;) {
        if (world->ranks[r].index[RF_INFER] != RF_NONE) {
            first[world->ranks[r].node] = r;
        }
    }
    head[root_node] = 0;
    for (uint32_t step = 1; step < world->n_nodes; step++) {
        uint32_t node = (root_node + step) % world->n_nodes;
        if (first[node] != RF_NONE) {
            rf_bcast_template_add_hop(tmpl, parent, first[node]);
            parent = head[node] = tmpl->place[first[node]];
            gather->has_chain = true;
        }
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (world->ranks[r].index[RF_INFER] != RF_NONE &&
            tmpl->place[r] == RF_NONE) {
            rf_bcast_template_add_hop(tmpl, head[world->ranks[r].node], r);
        }
    }
    free(head);
    free(first);
}

static struct rf_op_end stage_view(const struct gather *gather,
                                   const struct slab *slab)
{
    return (struct rf_op_end){
        .rank = gather->root,
        .mem = RF_MEM_STAGE,
        .form = rf_plan_wire(gather->builder->plan, slab->family),
        .piece = RF_NONE,
        .offset =
            slab->bucket % RF_STAGE_SLOTS * gather->slot_bytes + slab->offset,
        .start = slab->box.start,
        .stride = slab->stride,
    };
}

/* Whether rank `a` would be less loaded than `b` with `bytes` more; a rank
 * `near` the root uses no link. */
static bool less_loaded(const struct gather *gather, uint32_t a, uint32_t b,
                        bool near, uint64_t bytes)
{
    const uint32_t *weights = gather->builder->plan->priv->weights.rank;
    return rf_link_weights_less(near ? NULL : weights, a,
                                gather->load[a] + bytes, b,
                                gather->load[b] + bytes);
}

/* The holder that gives a chunk to the root: the root itself, else with balance
 * none the first holder, else one on the root's node, else the least loaded. */
static const struct rf_holder *choose_source(const struct gather *gather,
                                             const struct rf_unit_task *unit,
                                             uint64_t bytes)
{
    const struct rf_holder *from =
        gather->tmpl->units.holders + unit->first_src;
    const struct rf_holder *best = &from[0];
    if (gather->builder->spec->balance == RF_BALANCE_NONE) {
        return best;
    }
    uint32_t root_node = node_of(gather, gather->root);
    for (uint32_t i = 0; i < unit->n_src; i++) {
        bool near = node_of(gather, from[i].rank) == root_node;
        bool best_near = node_of(gather, best->rank) == root_node;
        if (from[i].rank == gather->root) {
            return &from[i];
        }
        if (near != best_near
                ? near
                : less_loaded(gather, from[i].rank, best->rank, near, bytes)) {
            best = &from[i];
        }
    }
    return best;
}

/* Gathers the part of a slab inside a unit task, a chunk at a time. */
static uint32_t gather_part(struct gather *gather, const struct slab *slab,
                            uint32_t unit_task_index, const struct rf_box *part,
                            uint32_t first_round)
{
    struct rf_builder *builder = gather->builder;
    const uint64_t part_bytes =
        rf_form_bytes(rf_plan_wire(builder->plan, slab->family), part);
    const struct rf_holder *source = choose_source(
        gather, &gather->tmpl->units.of[unit_task_index], part_bytes);
    struct rf_op_end from =
        rf_op_end_of_piece(gather->builder, source, RF_MEM_TRAIN);
    struct rf_op_end to = stage_view(gather, slab);
    uint64_t bytes = builder->chunk_bytes;
    uint32_t end = first_round;
    if (bytes == 0) {
        bytes = RF_MAX(gather->slot_bytes / CHUNKS_A_BUCKET, CHUNK_BYTES_MIN);
    }
    struct rf_chunking chunking = rf_box_chunking(
        part, rf_builder_elements(builder, slab->family, bytes));
    for (uint64_t k = 0; k < chunking.count; k++) {
        uint32_t round = rf_builder_round(builder, source->rank, gather->root);
        struct rf_op_draft step = {.family = slab->family,
                                   .box = rf_box_chunk(part, &chunking, k),
                                   .dep = RF_NO_OP,
                                   .bucket = slab->bucket,
                                   .round = RF_MAX(round, first_round),
                                   .task = builder->next_task++};
        struct chunk chunk = {.unit = unit_task_index,
                              .at = (uint32_t)builder->schedule->n_ops};
        rf_builder_make(builder, &step, &from, &to, &chunk.op);
        rf_builder_add(builder, &chunk.op);
        end = RF_MAX(end, step.round + 1);
        RF_PUSH(gather->chunks, gather->n_chunks, gather->chunks_capacity,
                chunk);
    }
    gather->load[source->rank] += part_bytes;
    return end;
}

/* The first round, from `round` on, in which all ranks of the tree are free;
 * unless serialised, the first in which no link of its chain carries another
 * chunk. */
static uint32_t bcast_round(const struct gather *gather, uint32_t round)
{
    const struct rf_builder *builder = gather->builder;
    const struct rf_bcast_template *tmpl = gather->tmpl;
    for (uint32_t i = 0; builder->spec->serialize && i < tmpl->n_hops; i++) {
        round = RF_MAX(round, builder->next_round[tmpl->hops[i].rank]);
    }
    return RF_MAX(round, gather->next_bcast);
}

/* Called after the last broadcast of a bucket, which began in `round`. */
static void occupy_tree(const struct gather *gather, uint32_t round)
{
    struct rf_builder *builder = gather->builder;
    const struct rf_bcast_template *tmpl = gather->tmpl;
    for (uint32_t i = 0; builder->spec->serialize && i < tmpl->n_hops; i++) {
        uint32_t *next = &builder->next_round[tmpl->hops[i].rank], first, end;
        rf_bcast_template_rounds(tmpl, i, &first, &end);
        *next = end > first ? RF_MAX(*next, round + end) : *next;
    }
}

/* Broadcasts a chunk from `round` on and takes the slices out. */
static void bcast_chunk(struct gather *gather, const struct chunk *chunk,
                        uint32_t task, uint32_t round)
{
    const struct rf_builder *builder = gather->builder;
    const uint32_t family = chunk->op.family;
    struct rf_bcast bcast = {
        .gathered = chunk->at,
        .task = task,
        .round = round,
        .unit = chunk->unit,
        .take_round = round + gather->tmpl->height,
        .take = rf_plan_form(builder->plan, RF_INFER, family),
    };
    rf_bcast_build_add(&gather->build, &bcast, &chunk->op);
}

/* Broadcasts all chunks of a bucket, one after another from `round` on. */
static void bcast_bucket(struct gather *gather, uint32_t slot, uint32_t round)
{
    const struct rf_bcast_template *tmpl = gather->tmpl;
    uint32_t task = gather->builder->next_task++, at = round;
    round = bcast_round(gather, round);
    for (size_t p = 0; p < gather->n_chunks; p++) {
        at = round;
        bcast_chunk(gather, &gather->chunks[p], task, at);
        if (gather->builder->spec->serialize) {
            round += tmpl->height;
        } else if (gather->has_chain) {
            round++;
        }
    }
    if (gather->n_chunks > 0) {
        gather->slot_end[slot] = at + tmpl->height + 1;
        gather->next_bcast = gather->has_chain ? at + 1 : 0;
        occupy_tree(gather, at);
    }
}

/* Moves one bucket: the slabs [first, end). */
static void move_bucket(struct gather *gather, size_t first, size_t end)
{
    uint32_t slot = gather->slabs[first].bucket % RF_STAGE_SLOTS;
    uint32_t start = gather->slot_end[slot], gathered = start;
    size_t u = 0;
    gather->n_chunks = 0;
    for (size_t s = first; s < end; s++) {
        const struct slab *slab = &gather->slabs[s];
        const struct rf_unit_task *units = gather->tmpl->units.of;
        while (u > 0 && units[u - 1].family >= slab->family) {
            u--;
        }
        while (u < gather->tmpl->units.n && units[u].family < slab->family) {
            u++;
        }
        for (; u < gather->tmpl->units.n && units[u].family == slab->family;
             u++) {
            struct rf_box part;
            if (rf_box_intersect(&slab->box, &units[u].box, &part)) {
                uint32_t done =
                    gather_part(gather, slab, (uint32_t)u, &part, start);
                gathered = RF_MAX(gathered, done);
            }
        }
    }
    bcast_bucket(gather, slot, gathered);
}

static void set_stage_bytes(struct gather *gather, uint32_t buckets)
{
    struct rf_schedule *schedule = gather->builder->schedule;
    uint32_t slots = RF_MIN(buckets, RF_STAGE_SLOTS);
    schedule->stage_bytes =
        rf_xcalloc(gather->builder->world->n_ranks, sizeof(uint64_t));
    for (uint32_t i = 0; i < gather->tmpl->n_hops; i++) {
        schedule->stage_bytes[gather->tmpl->hops[i].rank] =
            gather->slot_bytes * slots;
    }
}

void rf_strategy_gather(struct rf_builder *builder)
{
    const struct rf_world *world = builder->world;
    struct gather gather = {.builder = builder};
    enum rf_status status;
    if (builder->spec->bucket_bytes < SLAB_ALIGN) {
        rf_builder_fail(builder, RF_ERR_CONFIG,
                        "strategy gather_broadcast needs bucket_bytes of at "
                        "least 64");
        return;
    }
    gather.tmpl = rf_bcast_template_create(world->n_ranks);
    status =
        rf_unit_tasks_build(builder->plan, &gather.tmpl->units, builder->err);
    if (status != RF_OK) {
        rf_bcast_template_destroy(gather.tmpl);
        builder->status = status;
        return;
    }
    gather.root = world->rank_of[RF_TRAIN][0];
    gather.load = rf_xcalloc(world->n_ranks, sizeof(*gather.load));
    uint32_t buckets = pack(&gather);
    build_tree(&gather);
    set_stage_bytes(&gather, buckets);
    rf_bcast_build_start(&gather.build, builder, gather.tmpl);
    for (size_t first = 0, end; first < gather.n_slabs; first = end) {
        end = first;
        while (end < gather.n_slabs &&
               gather.slabs[end].bucket == gather.slabs[first].bucket) {
            end++;
        }
        move_bucket(&gather, first, end);
    }
    rf_bcast_build_end(&gather.build);
    free(gather.slabs);
    free(gather.chunks);
    free(gather.load);
}

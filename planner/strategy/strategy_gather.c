/*
 * gather_broadcast: the method of many frameworks. Full tensors are gathered, a
 * group at a time, in the staging memory of one training rank (the root), sent
 * from there to the staging memory of every inference rank, and each inference
 * rank copies its slices out of it. It moves every byte to every inference rank
 * and serves as a baseline.
 *
 * A group is filled with *slabs*: whole tensors (of several layers or experts
 * where they fit), each row-major; only a tensor larger than a group is cut.
 * Group g lies in slot g % in_flight at the same offset on every rank. A
 * *chunk* is the part of a slab inside one unit task, of bounded size: one op
 * gathers it, a chain across nodes with a fan-out inside them broadcasts it,
 * and one op on every rank that needs it takes it out.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"
#include "planner/strategy/strategy.h"

#define SLAB_ALIGN 64
#define CHUNK_BYTES_MIN 65536
#define CHUNKS_A_GROUP 32

struct slab {
    uint32_t family, group;
    struct rf_box box;
    uint64_t offset; /* in its slot */
    uint64_t stride[RF_BOX_DIMS];
};

/* The part of a slab inside a unit task, on its way to the root. */
struct part {
    struct rf_delivery gathered;
    uint32_t unit;
};

struct gather {
    struct rf_builder *builder;
    struct rf_unit_tasks units;
    struct slab *slabs;
    size_t n_slabs, slabs_capacity;
    struct part *parts; /* of the current group */
    size_t n_parts, parts_capacity;
    uint64_t slot_bytes, *load; /* load: bytes gathered from each rank */
    uint32_t root, height;      /* height: of the tree */
    uint32_t tree, *takes;      /* routes; takes: by unit task */
    uint32_t *to_root;          /* by rank: the route from there to the root */
    bool has_chain;             /* of heads, after the root */
    uint32_t next_bcast;        /* first round in which the chain takes another
                                   chunk */
    uint32_t slot_end[RF_IN_FLIGHT_MAX]; /* first round after its last group */
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

/* Adds a slab to its group, which has `used` bytes so far; returns the new
 * number. */
static uint64_t add_slab(struct gather *gather, const struct slab *of,
                         uint64_t used)
{
    const uint32_t item =
        rf_form_item(rf_plan_wire(gather->builder->plan, of->family));
    struct slab slab = *of;
    slab.offset = used;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        slab.stride[d] = rf_box_step(&slab.box, d) * item;
    }
    used += rf_box_elements(&slab.box) * item;
    gather->slot_bytes = RF_MAX(gather->slot_bytes, used);
    RF_PUSH(gather->slabs, gather->n_slabs, gather->slabs_capacity, slab);
    return rf_align_up(used, SLAB_ALIGN);
}

/* Packs a whole family into groups, from (*group, *used) on. */
static void pack_family(struct gather *gather, uint32_t family, uint32_t *group,
                        uint64_t *used)
{
    uint64_t capacity = gather->builder->spec->bucket_bytes;
    const uint32_t item =
        rf_form_item(rf_plan_wire(gather->builder->plan, family));
    struct rf_box whole =
        rf_box_whole(&gather->builder->plan->model->families[family]);
    bool cut = rf_box_step(&whole, RF_DIM_TENSOR - 1) > capacity / item;
    uint64_t at[RF_BOX_DIMS] = {0};
    while (at[0] < whole.extent[0]) {
        struct slab slab = {.family = family};
        uint64_t room = *used < capacity ? (capacity - *used) / item : 0;
        if (!take_box(&whole, at, room, cut, &slab.box)) {
            ++*group;
            *used = 0;
            continue;
        }
        slab.group = *group;
        *used = add_slab(gather, &slab, *used);
    }
}

/* Packs the scenario's groups, or else forms groups of at most bucket_bytes. */
static void pack_families(struct gather *gather, const bool *needed)
{
    const struct rf_tensor_groups *groups = gather->builder->groups;
    const uint32_t n_families = gather->builder->plan->model->n_families;
    uint32_t group = 0;
    uint64_t used = 0;
    for (size_t i = 0; i < groups->n_slices; i++) {
        const struct rf_group_slice *slice = &groups->slices[i];
        const struct slab slab = {
            .family = slice->family, .group = slice->group, .box = slice->box};
        if (needed[slab.family]) {
            used = add_slab(gather, &slab, slab.group == group ? used : 0);
            group = slab.group;
        }
    }
    for (uint32_t f = 0; f < n_families && groups->n == 0; f++) {
        if (needed[f]) {
            pack_family(gather, f, &group, &used);
        }
    }
}

/* Packs all that the inference side needs; returns the number of groups. */
static uint32_t pack(struct gather *gather)
{
    bool *needed =
        rf_xcalloc(gather->builder->plan->model->n_families, sizeof(*needed));
    for (size_t u = 0; u < gather->units.n; u++) {
        needed[gather->units.of[u].family] = true;
    }
    pack_families(gather, needed);
    free(needed);
    gather->slot_bytes = rf_align_up(gather->slot_bytes, SLAB_ALIGN);
    return gather->n_slabs > 0 ? gather->slabs[gather->n_slabs - 1].group + 1
                               : 0;
}

static uint32_t slot_of(const struct gather *gather, uint32_t group)
{
    return group % gather->builder->schedule->in_flight;
}

static uint32_t node_of(const struct gather *gather, uint32_t rank)
{
    return gather->builder->world->ranks[rank].node;
}

static struct rf_holder stage_of(uint32_t rank)
{
    return (struct rf_holder){.rank = rank, .number = RF_NONE};
}

/* The tree from the root: one head for every other node of the inference side,
 * in order from the root's, each a child of the previous head; then all others
 * as children of their node's head. Sets place[r] to the stop of rank r. */
static void build_tree(struct gather *gather, uint32_t *place)
{
    const struct rf_world *world = gather->builder->world;
    uint32_t *head = rf_xmalloc(world->n_nodes * sizeof(*head));
    uint32_t *first = rf_xmalloc(world->n_nodes * sizeof(*first));
    uint32_t root_node = node_of(gather, gather->root), parent = RF_NONE;
    gather->tree = rf_builder_begin_route(
        gather->builder, &(struct rf_delivery_route){.kind = RF_ROUTE_TREE,
                                                     .from = gather->root});
    memset(first, 0xff, world->n_nodes * sizeof(*first));
    for (uint32_t r = world->n_ranks; r-- > 0;) {
        if (world->ranks[r].index[RF_INFER] != RF_NONE) {
            first[world->ranks[r].node] = r;
        }
    }
    head[root_node] = RF_NONE;
    for (uint32_t step = 1; step < world->n_nodes; step++) {
        uint32_t node = (root_node + step) % world->n_nodes;
        if (first[node] != RF_NONE) {
            const struct rf_holder to = stage_of(first[node]);
            parent = rf_builder_stop(gather->builder, &to, parent);
            place[first[node]] = head[node] = parent;
            gather->has_chain = true;
        }
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (world->ranks[r].index[RF_INFER] != RF_NONE && r != gather->root &&
            place[r] == RF_NONE) {
            const struct rf_holder to = stage_of(r);
            place[r] = rf_builder_stop(gather->builder, &to,
                                       head[world->ranks[r].node]);
        }
    }
    gather->height =
        gather->builder->schedule->deliveries->routes[gather->tree].height;
    free(head);
    free(first);
}

/* Makes the routes by which the receivers of each unit task take it out. */
static void build_takes(struct gather *gather, const uint32_t *place)
{
    for (size_t u = 0; u < gather->units.n; u++) {
        const struct rf_unit_task *unit = &gather->units.of[u];
        gather->takes[u] = rf_builder_begin_route(
            gather->builder, &(struct rf_delivery_route){.kind = RF_ROUTE_TAKES,
                                                         .from = gather->tree,
                                                         .family = unit->family,
                                                         .box = unit->box});
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            const struct rf_holder *to =
                &gather->units.holders[unit->first_dst + i];
            rf_builder_stop(gather->builder, to, place[to->rank]);
        }
    }
}

/* The route from a rank's training memory to the root's staging memory. */
static uint32_t route_to_root(struct gather *gather, uint32_t rank)
{
    if (gather->to_root[rank] == RF_NONE) {
        const struct rf_holder root = stage_of(gather->root);
        gather->to_root[rank] = rf_builder_begin_route(
            gather->builder,
            &(struct rf_delivery_route){.kind = RF_ROUTE_TREE, .from = rank});
        rf_builder_stop(gather->builder, &root, RF_NONE);
    }
    return gather->to_root[rank];
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
            slot_of(gather, slab->group) * gather->slot_bytes + slab->offset,
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
    const struct rf_holder *from = gather->units.holders + unit->first_src;
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

/* Gathers the part of a slab inside a unit task, chunk by chunk, each a task of
 * its own. Returns the round after the last. */
static uint32_t gather_part(struct gather *gather, const struct slab *slab,
                            uint32_t unit, const struct rf_box *box,
                            uint32_t first_round)
{
    struct rf_builder *builder = gather->builder;
    const uint64_t part_bytes =
        rf_form_bytes(rf_plan_wire(builder->plan, slab->family), box);
    const struct rf_holder *source =
        choose_source(gather, &gather->units.of[unit], part_bytes);
    const struct rf_op_end from =
        rf_op_end_of_piece(builder, source, RF_MEM_TRAIN);
    const struct rf_op_end to = stage_view(gather, slab);
    const uint32_t round =
        rf_builder_round(builder, source->rank, gather->root);
    const struct rf_op_draft step = {.family = slab->family,
                                     .box = *box,
                                     .dep = RF_NO_OP,
                                     .round = RF_MAX(round, first_round),
                                     .task = builder->next_task};
    struct part part = {
        .unit = unit,
        .gathered = {.route = route_to_root(gather, source->rank),
                     .takes = RF_NONE,
                     .tasks = 1,
                     .pace = builder->spec->serialize &&
                             source->rank != gather->root}};
    uint64_t bytes = builder->chunk_bytes;
    if (bytes == 0) {
        bytes = RF_MAX(gather->slot_bytes / CHUNKS_A_GROUP, CHUNK_BYTES_MIN);
    }
    rf_builder_make(builder, &step, &from, &to, &part.gathered.op);
    rf_delivery_cut(&part.gathered, 1,
                    rf_builder_elements(builder, slab->family, bytes));
    builder->next_task += (uint32_t)rf_delivery_chunks(&part.gathered);
    rf_builder_deliver(builder, &part.gathered);
    rf_builder_occupy_route(builder, &part.gathered);
    RF_PUSH(gather->parts, gather->n_parts, gather->parts_capacity, part);
    gather->load[source->rank] += part_bytes;
    return step.round + (uint32_t)rf_delivery_rounds(
                            builder->schedule->deliveries, &part.gathered);
}

/* The first round, from `round` on, in which all ranks of the tree are free;
 * unless serialised, the first in which no link of its chain carries another
 * chunk. */
static uint32_t bcast_round(const struct gather *gather, uint32_t round)
{
    round =
        RF_MAX(round, rf_builder_route_round(gather->builder, gather->tree));
    return RF_MAX(round, gather->next_bcast);
}

/* The delivery of a gathered part to all staging memories, and out of them. */
static struct rf_delivery spread(const struct gather *gather,
                                 const struct part *part, uint32_t task,
                                 uint32_t round)
{
    const struct rf_op *gathered = &part->gathered.op;
    struct rf_delivery delivery = part->gathered;
    struct rf_op *op = &delivery.op;
    delivery.route = gather->tree;
    delivery.takes = gather->takes[part->unit];
    delivery.take =
        rf_plan_form(gather->builder->plan, RF_INFER, gathered->family);
    delivery.tasks = 0;
    delivery.pace =
        gather->builder->spec->serialize ? gather->height : gather->has_chain;
    op->dep = gathered->id;
    op->task = task;
    op->round = round;
    op->src = gathered->dst;
    op->src_mem = gathered->dst_mem;
    op->from = op->wire = gathered->to;
    op->src_offset = gathered->dst_offset;
    memcpy(op->src_stride, gathered->dst_stride, sizeof(op->src_stride));
    return delivery;
}

/* Broadcasts all parts of a group, one after another from `round` on. */
static void bcast_group(struct gather *gather, uint32_t slot, uint32_t round)
{
    struct rf_builder *builder = gather->builder;
    const uint32_t task = builder->next_task++;
    struct rf_delivery delivery;
    uint32_t last = 0; /* round in which the last chunk begins */
    round = bcast_round(gather, round);
    for (size_t p = 0; p < gather->n_parts; p++) {
        const uint64_t chunks = rf_delivery_chunks(&gather->parts[p].gathered);
        delivery = spread(gather, &gather->parts[p], task, round);
        rf_builder_deliver(builder, &delivery);
        last = round + (uint32_t)(chunks - 1) * delivery.pace;
        round += (uint32_t)chunks * delivery.pace;
    }
    if (gather->n_parts > 0) {
        gather->slot_end[slot] = last + gather->height + 1;
        gather->next_bcast = gather->has_chain ? last + 1 : 0;
        rf_builder_occupy_route(builder, &delivery);
    }
}

/* Moves one group: the slabs [first, end). */
static void move_group(struct gather *gather, size_t first, size_t end)
{
    uint32_t slot = slot_of(gather, gather->slabs[first].group);
    uint32_t start = gather->slot_end[slot], gathered = start;
    size_t u = 0;
    gather->builder->group = gather->slabs[first].group;
    gather->n_parts = 0;
    for (size_t s = first; s < end; s++) {
        const struct slab *slab = &gather->slabs[s];
        const struct rf_unit_task *units = gather->units.of;
        while (u > 0 && units[u - 1].family >= slab->family) {
            u--;
        }
        while (u < gather->units.n && units[u].family < slab->family) {
            u++;
        }
        for (; u < gather->units.n && units[u].family == slab->family; u++) {
            struct rf_box part;
            if (rf_box_intersect(&slab->box, &units[u].box, &part)) {
                uint32_t done =
                    gather_part(gather, slab, (uint32_t)u, &part, start);
                gathered = RF_MAX(gathered, done);
            }
        }
    }
    bcast_group(gather, slot, gathered);
}

static void set_stage_bytes(struct gather *gather, uint32_t groups)
{
    struct rf_schedule *schedule = gather->builder->schedule;
    const struct rf_world *world = gather->builder->world;
    uint32_t slots = RF_MIN(groups, schedule->in_flight);
    schedule->stage_bytes = rf_xcalloc(world->n_ranks, sizeof(uint64_t));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (r == gather->root || world->ranks[r].index[RF_INFER] != RF_NONE) {
            schedule->stage_bytes[r] = gather->slot_bytes * slots;
        }
    }
}

static void build_routes(struct gather *gather)
{
    const uint32_t n_ranks = gather->builder->world->n_ranks;
    uint32_t *place = rf_xmalloc(n_ranks * sizeof(*place));
    gather->takes =
        rf_xcalloc(RF_MAX(gather->units.n, 1), sizeof(*gather->takes));
    gather->to_root = rf_xmalloc(n_ranks * sizeof(*gather->to_root));
    memset(place, 0xff, n_ranks * sizeof(*place));
    memset(gather->to_root, 0xff, n_ranks * sizeof(*gather->to_root));
    build_tree(gather, place);
    build_takes(gather, place);
    free(place);
}

static void end_routes(struct rf_builder *builder)
{
    for (size_t i = builder->schedule->deliveries->n_routes; i-- > 0;) {
        rf_builder_end_route(builder, (uint32_t)i);
    }
}

void rf_strategy_gather(struct rf_builder *builder)
{
    const struct rf_world *world = builder->world;
    struct gather gather = {.builder = builder};
    if (builder->spec->bucket_bytes < SLAB_ALIGN) {
        rf_builder_fail(builder, RF_ERR_CONFIG,
                        "strategy gather_broadcast needs bucket_bytes of at "
                        "least 64");
        return;
    }
    builder->status =
        rf_unit_tasks_build(builder->plan, &gather.units, builder->err);
    if (builder->status != RF_OK) {
        return;
    }
    gather.root = world->rank_of[RF_TRAIN][0];
    gather.load = rf_xcalloc(world->n_ranks, sizeof(*gather.load));
    set_stage_bytes(&gather, pack(&gather));
    build_routes(&gather);
    for (size_t first = 0, end; first < gather.n_slabs; first = end) {
        end = first;
        while (end < gather.n_slabs &&
               gather.slabs[end].group == gather.slabs[first].group) {
            end++;
        }
        move_group(&gather, first, end);
    }
    end_routes(builder);
    rf_unit_tasks_free(&gather.units);
    free(gather.slabs);
    free(gather.parts);
    free(gather.load);
    free(gather.takes);
    free(gather.to_root);
}

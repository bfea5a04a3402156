/*
 * The strategies that send a replica only once over a slow link:
 *
 *   broadcast         a unit task goes along a chain of nodes, in chunks; in
 *                     each node one receiver (the head) takes it from the
 *                     chain, the others read it from the head
 *   hierarchical      as broadcast, but a unit task is divided among the
 *                     receivers of a node: one chain per receiver of a node
 *   allgather         every node gets a unit task from its source, divided
 *                     among the node's receivers, which complete each other
 *   allgather_global  divided among all receivers of all nodes, completed
 *                     around a ring of all of them, in chunks
 *
 * Receivers that hold the unit task themselves copy it; receivers with a holder
 * on their node read it there (with balance none only the first holder counts).
 * Only the rest, the *far* receivers, are served over links between nodes, and
 * relays read their own inference memory. Parts need not be equal.
 */
#include <assert.h>
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"
#include "planner/strategy/order.h"
#include "planner/strategy/strategy.h"

/* A unit task has at most one part per so many bytes, rounded up. */
#define PART_BYTES 16384
/* A chunk is 1 / CHUNK_SHARE of a link's bytes, divided by the longest chain
 * and the works on the link, but at least CHUNK_BYTES_MIN: filling the chain
 * then costs about 1 % in total, ... */
#define CHUNK_BYTES_MIN 65536
#define CHUNK_SHARE 96
#define CHUNK_STREAMS_MAX 8
/* ... but larger if that makes more ops in total than this: long chains of
 * nodes. */
#define CHUNK_OPS_MAX 1048576

/* A receiver and its node, for sorting. */
struct placed_receiver {
    uint32_t node;
    struct rf_holder holder;
};

struct replication {
    struct rf_builder *builder;
    struct rf_unit_tasks units;
    struct rf_works works;
    struct placed_receiver *far; /* of the current unit task */
    size_t n_far, far_capacity;
    uint64_t *node_bytes; /* received over each node's link */
    double far_bytes;     /* to all far receivers */
    uint32_t *node_works;
    uint32_t longest; /* chain, in nodes */
    uint32_t first;   /* number of the first unit task, over all groups */
    uint64_t *loads;  /* of all groups so far */
};

static uint32_t node_of(const struct replication *maker, uint32_t rank)
{
    return maker->builder->world->ranks[rank].node;
}

static size_t push(struct replication *maker, const struct rf_holder *holders,
                   uint32_t n)
{
    struct rf_works *works = &maker->works;
    size_t first = works->n_pool;
    for (uint32_t i = 0; i < n; i++) {
        RF_PUSH(works->pool, works->n_pool, works->pool_capacity, holders[i]);
    }
    return first;
}

static uint32_t family_of(const struct replication *maker,
                          const struct rf_work *work)
{
    return maker->units.of[work->unit].family;
}

static struct rf_box box_of(const struct replication *maker,
                            const struct rf_work *work)
{
    return rf_box_part(&maker->units.of[work->unit].box, &work->split,
                       work->part);
}

/* Adds part `work->part` of a unit task that is cut by `work->split`. */
static void add_work(struct replication *maker, struct rf_work work)
{
    struct rf_box box = box_of(maker, &work);
    work.bytes = rf_form_bytes(
        rf_plan_wire(maker->builder->plan, family_of(maker, &work)), &box);
    RF_PUSH(maker->works.works, maker->works.n, maker->works.capacity, work);
}

/* Places a receiver: served inside its node, or far. */
static void place_receiver(struct replication *maker, uint32_t index,
                           const struct rf_holder *sources, uint32_t n_sources,
                           const struct rf_holder *receiver)
{
    uint32_t node = node_of(maker, receiver->rank), near = 0;
    size_t first = maker->works.n_pool;
    for (uint32_t i = 0; i < n_sources; i++) {
        if (sources[i].rank == receiver->rank) {
            maker->works.n_pool = first;
            push(maker, &sources[i], 1);
            near = 1;
            break;
        }
        if (node_of(maker, sources[i].rank) == node) {
            push(maker, &sources[i], 1);
            near++;
        }
    }
    if (near == 0) {
        RF_PUSH(maker->far, maker->n_far, maker->far_capacity,
                ((struct placed_receiver){.node = node, .holder = *receiver}));
        return;
    }
    struct rf_work work = {.unit = index,
                           .split = {.parts = 1},
                           .sources = first,
                           .n_sources = near,
                           .receivers = push(maker, receiver, 1),
                           .n_receivers = 1};
    add_work(maker, work);
}

static int by_node(const void *a, const void *b)
{
    const struct placed_receiver *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->node, y->node),
                      RF_COMPARE(x->holder.rank, y->holder.rank));
}

/* The number of parts of a unit task: at most `parts`, and at most one per
 * PART_BYTES. */
static uint32_t parts_of(const struct replication *maker,
                         const struct rf_unit_task *unit, uint32_t parts)
{
    uint64_t bytes = rf_form_bytes(
        rf_plan_form(maker->builder->plan, RF_TRAIN, unit->family), &unit->box);
    uint64_t most = rf_div_up(bytes, PART_BYTES);
    return (uint32_t)RF_MIN(parts, most);
}

/* Adds works that divide a unit task into at most `parts` parts: the first as
 * in `model`, each next one a turn later. */
static void add_parts(struct replication *maker, uint32_t parts,
                      const struct rf_work *model)
{
    const struct rf_unit_task *unit = &maker->units.of[model->unit];
    struct rf_work work = *model;
    work.split = rf_box_split(&unit->box, parts_of(maker, unit, parts));
    for (; work.part < work.split.parts; work.part++, work.turn++) {
        add_work(maker, work);
    }
}

/* Counts one node's far receivers, [first, first + n) of maker->far; adds their
 * works with allgather. */
static void serve_node(struct replication *maker, const struct rf_work *model,
                       size_t first, uint32_t n)
{
    const struct rf_unit_task *unit = &maker->units.of[model->unit];
    uint32_t node = maker->far[first].node;
    maker->node_bytes[node] += rf_form_bytes(
        rf_plan_form(maker->builder->plan, RF_TRAIN, unit->family), &unit->box);
    maker->node_works[node]++;
    if (maker->builder->spec->strategy == RF_ALLGATHER) {
        struct rf_work work = *model;
        work.receivers += first;
        work.n_receivers = n;
        add_parts(maker, n, &work);
    }
}

static void serve_far(struct replication *maker, uint32_t index,
                      const struct rf_holder *sources, uint32_t n_sources)
{
    enum rf_strategy strategy = maker->builder->spec->strategy;
    struct rf_work work = {.unit = index,
                           .split = {.parts = 1},
                           .sources = push(maker, sources, n_sources),
                           .n_sources = n_sources,
                           .whole = strategy == RF_BROADCAST,
                           .turn = maker->first + index,
                           .n_receivers = (uint32_t)maker->n_far};
    uint32_t nodes = 0, widest = 0;
    qsort(maker->far, maker->n_far, sizeof(*maker->far), by_node);
    work.receivers = maker->works.n_pool;
    for (size_t i = 0; i < maker->n_far; i++) {
        push(maker, &maker->far[i].holder, 1);
    }
    for (size_t first = 0, end; first < maker->n_far; first = end) {
        end = first;
        while (end < maker->n_far &&
               maker->far[end].node == maker->far[first].node) {
            end++;
        }
        serve_node(maker, &work, first, (uint32_t)(end - first));
        widest = RF_MAX(widest, (uint32_t)(end - first));
        nodes++;
    }
    maker->longest = RF_MAX(maker->longest, nodes);
    maker->far_bytes +=
        (double)rf_form_bytes(rf_plan_form(maker->builder->plan, RF_TRAIN,
                                           maker->units.of[index].family),
                              &maker->units.of[index].box) *
        (double)maker->n_far;
    if (strategy == RF_BROADCAST || strategy == RF_ALLGATHER_GLOBAL) {
        add_work(maker, work);
    } else if (strategy == RF_HIERARCHICAL) {
        add_parts(maker, widest, &work);
    }
}

/* The i-th parts of all unit tasks precede the (i+1)-th of any: a receiver that
 * does one thing at a time must not wait for a later part of one unit task
 * while it could have an early part of another. */
static int by_part(const void *a, const void *b)
{
    const struct rf_work *x = a, *y = b;
    int order = RF_COMPARE(x->part, y->part);
    order = RF_THEN_BY(order, RF_COMPARE(x->unit, y->unit));
    return RF_THEN_BY(order, RF_COMPARE(x->receivers, y->receivers));
}

static void make_works(struct replication *maker)
{
    bool first_only = maker->builder->spec->balance == RF_BALANCE_NONE;
    for (uint32_t u = 0; u < maker->units.n; u++) {
        const struct rf_unit_task *unit = &maker->units.of[u];
        const struct rf_holder *sources =
            maker->units.holders + unit->first_src;
        uint32_t n_sources = first_only ? 1 : unit->n_src;
        maker->n_far = 0;
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            place_receiver(maker, u, sources, n_sources,
                           &maker->units.holders[unit->first_dst + i]);
        }
        if (maker->n_far > 0) {
            serve_far(maker, u, sources, n_sources);
        }
    }
    if (maker->builder->spec->strategy == RF_ALLGATHER && maker->works.n > 0) {
        qsort(maker->works.works, maker->works.n, sizeof(*maker->works.works),
              by_part);
    }
}

/* Small enough that a chunk travelling along the longest chain, beside those of
 * other unit tasks, is a small part of a link's traffic. */
static uint64_t chunk_bytes(const struct replication *maker)
{
    const struct rf_builder *builder = maker->builder;
    enum rf_strategy strategy = builder->spec->strategy;
    uint64_t chunk = UINT64_MAX;
    if (builder->chunk_bytes > 0) {
        return builder->chunk_bytes;
    }
    if (strategy == RF_ALLGATHER) {
        return chunk; /* whole parts: no forwarding between nodes */
    }
    for (uint32_t i = 0; i < builder->world->n_nodes; i++) {
        uint32_t streams = RF_MIN(maker->node_works[i], CHUNK_STREAMS_MAX);
        if (streams > 0) {
            uint64_t share = maker->node_bytes[i] /
                             ((uint64_t)CHUNK_SHARE * maker->longest * streams);
            chunk = RF_MIN(chunk, share);
        }
    }
    uint64_t least = (uint64_t)(maker->far_bytes * rf_builder_groups(builder) /
                                CHUNK_OPS_MAX);
    return RF_MAX(chunk, RF_MAX(least, CHUNK_BYTES_MIN));
}

/* Receivers [first, end) of a work, all on one node. */
struct node_group {
    uint32_t first, end;
};

/* The receiver of a group whose turn it is to take a work for the others. */
static uint32_t head_of(const struct rf_work *work, struct node_group group)
{
    const uint32_t n = group.end - group.first;
    assert(n > 0);
    return group.first + work->turn % n;
}

static const struct rf_holder *source_of(const struct replication *maker,
                                         const struct rf_work *work)
{
    return &maker->works.pool[work->sources + work->source];
}

static const struct rf_holder *receiver_of(const struct replication *maker,
                                           const struct rf_work *work,
                                           uint32_t receiver)
{
    return &maker->works.pool[work->receivers + receiver];
}

/* Begins a route for a work. */
static uint32_t begin_route(const struct replication *maker,
                            const struct rf_work *work, enum rf_route_kind kind,
                            uint32_t from)
{
    return rf_builder_begin_route(
        maker->builder,
        &(struct rf_delivery_route){.kind = kind,
                                    .from = from,
                                    .family = family_of(maker, work),
                                    .box = box_of(maker, work)});
}

/* Adds the other receivers of a group as children of their existing head. */
static void add_others(const struct replication *maker,
                       const struct rf_work *work, uint32_t parent,
                       struct node_group group)
{
    uint32_t head = head_of(work, group);
    for (uint32_t i = group.first; i < group.end; i++) {
        if (i != head) {
            rf_builder_stop(maker->builder, receiver_of(maker, work, i),
                            parent);
        }
    }
}

/* The group of receivers that begins with `first`. */
static struct node_group group_at(const struct replication *maker,
                                  const struct rf_work *work, uint32_t first)
{
    const struct rf_holder *to = maker->works.pool + work->receivers;
    struct node_group group = {.first = first, .end = first + 1};
    while (group.end < work->n_receivers &&
           node_of(maker, to[group.end].rank) ==
               node_of(maker, to[first].rank)) {
        group.end++;
    }
    return group;
}

/* One head per node along the chain, which starts after the source's node and
 * wraps around; the nodes' other receivers are children of their head. Returns
 * the number of heads, which come first. */
static uint32_t build_chain(const struct replication *maker,
                            const struct rf_work *work)
{
    const struct rf_holder *to = maker->works.pool + work->receivers;
    uint32_t from = node_of(maker, source_of(maker, work)->rank);
    uint32_t n = work->n_receivers, turn_point = 0, n_groups = 0;
    uint32_t head = RF_NONE;
    struct node_group *groups = rf_xcalloc(n, sizeof(*groups));
    while (turn_point < n && node_of(maker, to[turn_point].rank) < from) {
        turn_point++;
    }
    for (uint32_t passed = 0; passed < n;) {
        groups[n_groups] = group_at(maker, work, (turn_point + passed) % n);
        passed += groups[n_groups].end - groups[n_groups].first;
        n_groups++;
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        head = rf_builder_stop(
            maker->builder, receiver_of(maker, work, head_of(work, groups[g])),
            head);
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        add_others(maker, work, g, groups[g]);
    }
    free(groups);
    return n_groups;
}

/* Makes the delivery of a work from `from` over a route that has its stops. The
 * place at the receiver is any; each op has its own. */
static struct rf_delivery make_delivery(const struct replication *maker,
                                        const struct rf_work *work,
                                        uint32_t route,
                                        const struct rf_op_end *from)
{
    struct rf_builder *builder = maker->builder;
    const struct rf_op_end to =
        rf_op_end_of_piece(builder, receiver_of(maker, work, 0), RF_MEM_INFER);
    const struct rf_op_draft step = {.family = family_of(maker, work),
                                     .box = box_of(maker, work),
                                     .dep = RF_NO_OP,
                                     .round =
                                         rf_builder_route_round(builder, route),
                                     .task = builder->next_task++};
    struct rf_delivery delivery = {.route = route, .takes = RF_NONE, .pace = 1};
    rf_builder_make(builder, &step, from, &to, &delivery.op);
    return delivery;
}

/* Adds a delivery that is cut, and ends its route. */
static void deliver(const struct replication *maker,
                    struct rf_delivery *delivery)
{
    rf_builder_deliver(maker->builder, delivery);
    rf_builder_occupy_route(maker->builder, delivery);
    rf_builder_end_route(maker->builder, delivery->route);
}

/* Rounds of chains that are not serialised: chunk k takes hop i in round base +
 * k + i, so in every round each link of a chain carries one chunk; base is the
 * first round in which no sender of the chain is busy with an earlier one. */
static void keep_pace(const struct replication *maker,
                      struct rf_delivery *delivery, uint32_t n_heads)
{
    const struct rf_deliveries *all = maker->builder->schedule->deliveries;
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const struct rf_stop *stops = rf_route_stops(all, route);
    const uint32_t chunks = (uint32_t)rf_delivery_chunks(delivery);
    uint32_t *next = maker->builder->next_round;
    uint32_t from = route->from, base = maker->builder->first_round;
    for (uint32_t i = 0; i < n_heads; from = stops[i++].at.rank) {
        base = RF_MAX(base, next[from] > i ? next[from] - i : 0);
    }
    from = route->from;
    for (uint32_t i = 0; i < n_heads; from = stops[i++].at.rank) {
        next[from] = base + chunks + i;
    }
    delivery->op.round = base;
}

static void emit_chain(const struct replication *maker,
                       const struct rf_work *work, uint64_t max_elements,
                       bool paced)
{
    const struct rf_holder *source = source_of(maker, work);
    const struct rf_op_end from =
        rf_op_end_of_piece(maker->builder, source, RF_MEM_TRAIN);
    const uint32_t route =
        begin_route(maker, work, RF_ROUTE_TREE, source->rank);
    const uint32_t n_heads = build_chain(maker, work);
    struct rf_delivery delivery = make_delivery(maker, work, route, &from);
    rf_delivery_cut(&delivery, 1, max_elements);
    if (paced && !maker->builder->spec->serialize &&
        maker->builder->status == RF_OK) {
        keep_pace(maker, &delivery, n_heads);
    }
    deliver(maker, &delivery);
}

/* allgather_global: so that the source's link and the receivers' links carry
 * bytes at the same time. Of S bytes to n receivers on A nodes, a node's link
 * takes in S / A from the source and (n - 1) / n · S from the ring together,
 * not one after the other. */
static void emit_ring(const struct replication *maker,
                      const struct rf_work *work, uint64_t max_elements)
{
    const struct rf_holder *source = source_of(maker, work);
    const struct rf_op_end from =
        rf_op_end_of_piece(maker->builder, source, RF_MEM_TRAIN);
    const uint32_t route =
        begin_route(maker, work, RF_ROUTE_RING, source->rank);
    struct rf_delivery delivery;
    assert(work->n_receivers > 0);
    for (uint32_t i = 0; i < work->n_receivers; i++) {
        rf_builder_stop(maker->builder, receiver_of(maker, work, i), RF_NONE);
    }
    delivery = make_delivery(maker, work, route, &from);
    delivery.turn = work->turn % work->n_receivers;
    rf_delivery_cut(
        &delivery,
        parts_of(maker, &maker->units.of[work->unit], work->n_receivers),
        max_elements);
    deliver(maker, &delivery);
}

/* The first op that brought a part of allgather, and the round after the last.
 */
struct arrived {
    uint32_t op, round;
};

/* allgather: a part goes to the receiver whose turn it is … */
static struct arrived emit_part(const struct replication *maker,
                                const struct rf_work *work,
                                uint64_t max_elements)
{
    const struct rf_holder *source = source_of(maker, work);
    const struct rf_op_end from =
        rf_op_end_of_piece(maker->builder, source, RF_MEM_TRAIN);
    const struct node_group group = {0, work->n_receivers};
    const uint32_t route =
        begin_route(maker, work, RF_ROUTE_TREE, source->rank);
    struct rf_delivery delivery;
    rf_builder_stop(maker->builder,
                    receiver_of(maker, work, head_of(work, group)), RF_NONE);
    delivery = make_delivery(maker, work, route, &from);
    rf_delivery_cut(&delivery, 1, max_elements);
    deliver(maker, &delivery);
    return (struct arrived){delivery.op.id,
                            delivery.op.round +
                                (uint32_t)rf_delivery_chunks(&delivery)};
}

/* … and, once all parts are on their way, from it to the others. */
static void complete_part(const struct replication *maker,
                          const struct rf_work *work, uint64_t max_elements,
                          const struct arrived *part)
{
    const struct node_group group = {0, work->n_receivers};
    const struct rf_holder *head =
        receiver_of(maker, work, head_of(work, group));
    const struct rf_op_end from =
        rf_op_end_of_piece(maker->builder, head, RF_MEM_INFER);
    struct rf_delivery delivery;
    uint32_t route;
    if (work->n_receivers == 1) {
        return;
    }
    route = begin_route(maker, work, RF_ROUTE_TREE, head->rank);
    add_others(maker, work, RF_NONE, group);
    delivery = make_delivery(maker, work, route, &from);
    delivery.op.dep = part->op;
    delivery.op.round = RF_MAX(delivery.op.round, part->round);
    rf_delivery_cut(&delivery, 1, max_elements);
    deliver(maker, &delivery);
}

static void emit_works(struct replication *maker, const uint32_t *order)
{
    struct rf_builder *builder = maker->builder;
    enum rf_strategy strategy = builder->spec->strategy;
    uint64_t chunk = chunk_bytes(maker);
    struct arrived *parts = rf_xcalloc(maker->works.n, sizeof(*parts));
    size_t far = 0; /* works that cross nodes come first */
    for (size_t i = 0; i < maker->works.n && builder->status == RF_OK; i++) {
        const struct rf_work *work = &maker->works.works[order[i]];
        uint32_t from = maker->works.pool[work->sources + work->source].rank;
        uint32_t to = maker->works.pool[work->receivers].rank;
        uint64_t elements =
            rf_builder_elements(builder, family_of(maker, work), chunk);
        if (node_of(maker, from) == node_of(maker, to)) {
            break;
        }
        far++;
        if (strategy == RF_ALLGATHER) {
            parts[i] = emit_part(maker, work, elements);
        } else if (strategy == RF_ALLGATHER_GLOBAL) {
            emit_ring(maker, work, elements);
        } else {
            emit_chain(maker, work, elements, true);
        }
    }
    for (size_t i = 0;
         i < far && strategy == RF_ALLGATHER && builder->status == RF_OK; i++) {
        const struct rf_work *work = &maker->works.works[order[i]];
        complete_part(
            maker, work,
            rf_builder_elements(builder, family_of(maker, work), chunk),
            &parts[i]);
    }
    for (size_t i = far; i < maker->works.n && builder->status == RF_OK; i++) {
        emit_chain(maker, &maker->works.works[order[i]], UINT64_MAX, false);
    }
    free(parts);
}

/* Serves all unit tasks of `maker`. */
static void serve(struct replication *maker)
{
    struct rf_builder *builder = maker->builder;
    maker->node_bytes = rf_xcalloc(builder->world->n_nodes, sizeof(uint64_t));
    maker->node_works = rf_xcalloc(builder->world->n_nodes, sizeof(uint32_t));
    make_works(maker);
    uint32_t *order = rf_xcalloc(maker->works.n, sizeof(*order));
    rf_order_choose(builder->world, builder->spec->balance,
                    &builder->plan->priv->weights, builder->spec->serialize,
                    &maker->works, maker->loads, order);
    emit_works(maker, order);
    free(order);
    free(maker->far);
    free(maker->node_bytes);
    free(maker->node_works);
    rf_works_free(&maker->works);
}

/* The parts of unit tasks that are in the builder's group; holders are shared.
 */
static struct rf_unit_tasks units_of_group(const struct rf_builder *builder,
                                           const struct rf_unit_tasks *all)
{
    struct rf_unit_tasks parts = {.holders = all->holders,
                                  .n_holders = all->n_holders};
    for (size_t u = 0; u < all->n; u++) {
        struct rf_unit_task part = all->of[u];
        size_t at = 0;
        while (rf_builder_part(builder, part.family, &all->of[u].box, &at,
                               &part.box)) {
            RF_PUSH(parts.of, parts.n, parts.capacity, part);
        }
    }
    return parts;
}

void rf_strategy_replicate(struct rf_builder *builder)
{
    struct rf_unit_tasks all;
    enum rf_status status =
        rf_unit_tasks_build(builder->plan, &all, builder->err);
    if (status != RF_OK) {
        builder->status = status;
        return;
    }
    uint64_t *loads = rf_order_loads(builder->world);
    uint32_t first = 0;
    for (uint32_t g = 0;
         g < rf_builder_groups(builder) && builder->status == RF_OK; g++) {
        struct replication maker = {
            .builder = builder, .units = all, .first = first, .loads = loads};
        rf_builder_begin_group(builder, g);
        if (builder->group != RF_NO_GROUP) {
            maker.units = units_of_group(builder, &all);
        }
        first += (uint32_t)maker.units.n;
        serve(&maker);
        if (builder->group != RF_NO_GROUP) {
            free(maker.units.of);
        }
    }
    free(loads);
    rf_unit_tasks_free(&all);
}

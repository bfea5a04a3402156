/*
 * Adds deliveries (delivery.h) to a schedule.
 *
 * A schedule of the world keeps deliveries whole, a node's keeps the ops that
 * touch the node and forgets a route once it has ended. Both count and digest
 * deliveries as a whole. All deliveries over one tree are counted together, at
 * its end; their digest covers what defines their ops, and the route's.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/strategy/strategy.h"

struct rf_built_route {
    struct rf_hash hash;
    size_t near, near_end; /* in rf_builder.near; of rings: none */
    bool ready;            /* the above is set */
};

/* --- Routes --------------------------------------------------------------- */

uint32_t rf_builder_begin_route(struct rf_builder *builder,
                                const struct rf_delivery_route *route)
{
    struct rf_deliveries *all = builder->schedule->deliveries;
    if (all == NULL) {
        all = builder->schedule->deliveries = rf_xcalloc(1, sizeof(*all));
    }
    RF_PUSH(all->routes, all->n_routes, all->routes_capacity, *route);
    all->routes[all->n_routes - 1].first = all->n_stops;
    RF_PUSH(builder->routes, builder->n_routes, builder->routes_capacity,
            (struct rf_built_route){.ready = false});
    return (uint32_t)all->n_routes - 1;
}

uint32_t rf_builder_stop(struct rf_builder *builder, const struct rf_holder *at,
                         uint32_t parent)
{
    struct rf_deliveries *all = builder->schedule->deliveries;
    struct rf_delivery_route *route = &all->routes[all->n_routes - 1];
    struct rf_stop stop = {.at = *at, .parent = parent, .depth = 1};
    if (builder->status != RF_OK ||
        !rf_builder_grow(builder, (void **)&all->stops, all->n_stops,
                         &all->stops_capacity, sizeof(stop))) {
        return RF_NONE;
    }
    if (parent != RF_NONE && route->kind == RF_ROUTE_TREE) {
        stop.depth = all->stops[route->first + parent].depth + 1;
        all->stops[route->first + parent].sends = true;
    }
    route->height = RF_MAX(route->height, stop.depth);
    all->stops[all->n_stops++] = stop;
    return route->n++;
}

static void count_link(uint32_t src, uint32_t dst, uint64_t n_ops,
                       uint64_t bytes, uint64_t written, void *data)
{
    const struct rf_builder *builder = data;
    rf_schedule_count(builder->schedule, builder->world, src, dst, n_ops, bytes,
                      written);
}

void rf_builder_end_route(struct rf_builder *builder, uint32_t route)
{
    struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_delivery_route *ended = &all->routes[route];
    if (ended->kind != RF_ROUTE_RING && builder->status == RF_OK) {
        rf_route_links(all, ended, count_link, builder);
    }
    if (builder->node != RF_NONE && route + 1 == all->n_routes) {
        all->n_stops = ended->first;
        all->n_routes--;
        builder->n_routes--;
        if (builder->routes[route].ready) {
            builder->n_near = builder->routes[route].near;
        }
    }
}

static bool is_near(const struct rf_builder *builder, uint32_t rank)
{
    return builder->world->ranks[rank].node == builder->node;
}

static void find_near_stops(struct rf_builder *builder,
                            const struct rf_delivery_route *route)
{
    const struct rf_stop *stops =
        rf_route_stops(builder->schedule->deliveries, route);
    for (uint32_t i = 0; i < route->n; i++) {
        uint32_t from = stops[i].at.rank;
        if (route->kind == RF_ROUTE_TREE) {
            from = stops[i].parent == RF_NONE ? route->from
                                              : stops[stops[i].parent].at.rank;
        }
        if (is_near(builder, stops[i].at.rank) || is_near(builder, from)) {
            RF_PUSH(builder->near, builder->n_near, builder->near_capacity, i);
        }
    }
}

static void hash_route(const struct rf_deliveries *all,
                       const struct rf_delivery_route *route,
                       struct rf_hash *hash)
{
    const struct rf_stop *stops = rf_route_stops(all, route);
    const bool takes = route->kind == RF_ROUTE_TAKES;
    rf_hash_init(hash);
    rf_hash_u64(hash, (uint64_t)route->kind << 32 | (takes ? 0 : route->from));
    for (uint32_t i = 0; i < route->n; i++) {
        const struct rf_piece *piece = stops[i].at.piece;
        uint64_t words[3 + RF_BOX_DIMS] = {
            (uint64_t)stops[i].at.rank << 32 | stops[i].parent,
            stops[i].at.number, piece != NULL ? piece->offset : 0};
        for (uint32_t d = 0; piece != NULL && d < RF_BOX_DIMS; d++) {
            words[3 + d] = piece->stride[d];
        }
        rf_hash_record(hash, words, RF_ARRAY_SIZE(words));
    }
}

/* What is known of a route that has all its stops. */
static const struct rf_built_route *built(struct rf_builder *builder,
                                          uint32_t number)
{
    const struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_delivery_route *route = &all->routes[number];
    struct rf_built_route *of = &builder->routes[number];
    if (!of->ready) {
        hash_route(all, route, &of->hash);
        of->near = builder->n_near;
        if (builder->node != RF_NONE && route->kind != RF_ROUTE_RING) {
            find_near_stops(builder, route);
        }
        of->near_end = builder->n_near;
        of->ready = true;
    }
    return of;
}

/* --- Rounds --------------------------------------------------------------- */

uint32_t rf_builder_route_round(const struct rf_builder *builder,
                                uint32_t route)
{
    const struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_delivery_route *of = &all->routes[route];
    const struct rf_stop *stops = rf_route_stops(all, of);
    uint32_t round = builder->first_round;
    if (builder->spec->serialize) {
        round = RF_MAX(round, builder->next_round[of->from]);
        for (uint32_t i = 0; i < of->n; i++) {
            round = RF_MAX(round, builder->next_round[stops[i].at.rank]);
        }
    }
    return round;
}

static void occupy_until(struct rf_builder *builder, uint32_t rank,
                         uint64_t end)
{
    uint32_t *next = &builder->next_round[rank];
    *next = RF_MAX(*next, (uint32_t)end);
}

void rf_builder_occupy_route(struct rf_builder *builder,
                             const struct rf_delivery *delivery)
{
    const struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const struct rf_stop *stops = rf_route_stops(all, route);
    const uint64_t begin = delivery->op.round;
    if (!builder->spec->serialize || rf_route_is_local(all, route)) {
        return;
    }
    for (uint32_t i = 0; i < route->n; i++) {
        uint64_t first, end;
        rf_delivery_busy(all, delivery, i, &first, &end);
        occupy_until(builder, stops[i].at.rank, begin + end);
    }
    occupy_until(builder, route->from,
                 begin + 1 +
                     (rf_delivery_chunks(delivery) - 1) * delivery->pace);
}

/* --- Deliveries ----------------------------------------------------------- */

static void add_to_route(struct rf_builder *builder,
                         const struct rf_delivery *delivery)
{
    struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_op *op = &delivery->op;
    struct rf_delivery_route *route = &all->routes[delivery->route];
    if (route->kind == RF_ROUTE_RING) {
        rf_delivery_ring_links(all, delivery, count_link, builder);
        return;
    }
    route->chunks += rf_delivery_boxes(delivery);
    route->first_bytes += rf_form_bytes(op->wire, &op->box);
    route->bytes += rf_form_bytes(op->to, &op->box);
    if (delivery->takes != RF_NONE) {
        route = &all->routes[delivery->takes];
        route->chunks += rf_delivery_boxes(delivery);
        route->first_bytes += rf_form_bytes(op->to, &op->box);
        route->bytes += rf_form_bytes(delivery->take, &op->box);
    }
}

static void hash_delivery(struct rf_builder *builder,
                          const struct rf_delivery *delivery)
{
    static const struct rf_hash none;
    struct rf_hash hash, *digest = &builder->schedule->digest;
    const struct rf_op *op = &delivery->op;
    const bool has_takes = delivery->takes != RF_NONE;
    const struct rf_hash route = built(builder, delivery->route)->hash;
    const struct rf_hash takes =
        has_takes ? built(builder, delivery->takes)->hash : none;
    uint64_t words[16 + 4 * RF_BOX_DIMS] = {
        (uint64_t)op->id << 32 | op->task,
        (uint64_t)op->round << 32 | op->src,
        (uint64_t)op->dep << 32 | op->group,
        (uint64_t)op->family << 32 | (uint64_t)op->src_mem << 24 |
            (uint64_t)op->dst_mem << 16 | (uint64_t)rf_op_cast(op) << 8 |
            rf_op_casts_at_source(op),
        op->src_offset,
        op->dst_mem == RF_MEM_STAGE ? op->dst_offset : 0,
        (uint64_t)delivery->turn << 32 | delivery->pace << 1 | delivery->tasks,
        (uint64_t)delivery->split.dim << 32 | delivery->split.parts,
        (uint64_t)delivery->chunking[0].dim << 32 | delivery->chunking[1].dim,
        delivery->chunking[0].step,
        delivery->chunking[1].step,
        has_takes ? rf_form_cast(op->to, delivery->take) : 0,
        route.a,
        route.b,
        takes.a,
        takes.b,
    };
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t *at = words + 16 + (size_t)4 * d;
        at[0] = op->box.start[d];
        at[1] = op->box.extent[d];
        at[2] = op->src_stride[d];
        at[3] = op->dst_mem == RF_MEM_STAGE ? op->dst_stride[d] : 0;
    }
    rf_hash_init(&hash);
    rf_hash_record(&hash, words, RF_ARRAY_SIZE(words));
    digest->a += hash.a;
    digest->b += hash.b;
    digest->length += rf_delivery_ops(builder->schedule->deliveries, delivery);
}

/* What readers of a delivery visit: of a ring its stops and boxes; of a tree
 * its ops, except where those that follow staging are summed up. */
static uint64_t visits_of(const struct rf_deliveries *all,
                          const struct rf_delivery *delivery)
{
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    if (route->kind == RF_ROUTE_RING) {
        return rf_delivery_boxes(delivery) + route->n;
    }
    return delivery->takes != RF_NONE ? 0 : rf_delivery_ops(all, delivery);
}

static void keep_whole(struct rf_builder *builder,
                       const struct rf_delivery *delivery)
{
    struct rf_deliveries *all = builder->schedule->deliveries;
    if (rf_builder_has_room(builder, visits_of(all, delivery)) &&
        rf_builder_grow(builder, (void **)&all->of, all->n, &all->capacity,
                        sizeof(*delivery))) {
        all->of[all->n++] = *delivery;
    }
}

static void keep_step(struct rf_builder *builder,
                      const struct rf_delivery *delivery,
                      const struct rf_delivery_step *step)
{
    struct rf_op op;
    rf_delivery_op(builder->schedule->deliveries, delivery, step, &op);
    rf_builder_keep(builder, &op);
}

static void keep_near_stops(struct rf_builder *builder,
                            const struct rf_delivery *delivery)
{
    const struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_built_route *route = &builder->routes[delivery->route];
    const struct rf_built_route *takes =
        delivery->takes != RF_NONE ? &builder->routes[delivery->takes] : NULL;
    const uint32_t n = rf_route_of(all, delivery)->n;
    const uint64_t chunks = rf_delivery_chunks(delivery);
    for (uint64_t k = 0; k < chunks && builder->status == RF_OK; k++) {
        for (size_t i = route->near; i < route->near_end; i++) {
            keep_step(builder, delivery,
                      &(struct rf_delivery_step){k, builder->near[i], 0});
        }
        for (size_t i = takes ? takes->near : 0; takes && i < takes->near_end;
             i++) {
            keep_step(builder, delivery,
                      &(struct rf_delivery_step){k, n + builder->near[i], 0});
        }
    }
}

/* --- Rings near a node ---------------------------------------------------- */

/* Hops of parts, as hop << 32 | part. */
struct near_hops {
    uint64_t *of;
    size_t n, capacity;
};

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return RF_COMPARE(x, y);
}

/* Adds the hops of all parts to the stop at distance `at` from the first part's
 * first stop, and those onward from there. */
static void add_hops(const struct rf_delivery *delivery, uint32_t n,
                     uint32_t at, struct near_hops *out)
{
    for (uint32_t part = 0; part < delivery->split.parts; part++) {
        const uint32_t hop = (at + n - part % n) % n;
        RF_PUSH(out->of, out->n, out->capacity, (uint64_t)hop << 32 | part);
        if (hop + 1 < n) {
            RF_PUSH(out->of, out->n, out->capacity,
                    (uint64_t)(hop + 1) << 32 | part);
        }
    }
}

/* Finds the hops of parts that touch the builder's node. */
static void find_near_hops(const struct rf_builder *builder,
                           const struct rf_delivery *delivery,
                           struct near_hops *out)
{
    const struct rf_deliveries *all = builder->schedule->deliveries;
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    size_t n = 0;
    for (uint32_t part = 0;
         is_near(builder, route->from) && part < delivery->split.parts;
         part++) {
        RF_PUSH(out->of, out->n, out->capacity, part);
    }
    for (uint32_t i = 0; i < route->n; i++) {
        const uint32_t at = rf_delivery_ring_stop(all, delivery, 0, i);
        if (is_near(builder, rf_route_stops(all, route)[at].at.rank)) {
            add_hops(delivery, route->n, i, out);
        }
    }
    if (out->n == 0) {
        return;
    }
    qsort(out->of, out->n, sizeof(*out->of), by_value);
    for (size_t i = 0; i < out->n; i++) {
        if (i == 0 || out->of[i] != out->of[i - 1]) {
            out->of[n++] = out->of[i];
        }
    }
    out->n = n;
}

static void keep_near_hops(struct rf_builder *builder,
                           const struct rf_delivery *delivery)
{
    struct near_hops near = {.n = 0};
    const uint64_t chunks = rf_delivery_chunks(delivery);
    find_near_hops(builder, delivery, &near);
    for (uint64_t k = 0; near.n > 0 && k < chunks; k++) {
        for (size_t i = 0; i < near.n && builder->status == RF_OK; i++) {
            const struct rf_delivery_step step = {
                .chunk = k,
                .hop = (uint32_t)(near.of[i] >> 32),
                .part = (uint32_t)near.of[i]};
            if (k < rf_delivery_part_chunks(delivery, step.part)) {
                keep_step(builder, delivery, &step);
            }
        }
    }
    free(near.of);
}

void rf_builder_deliver(struct rf_builder *builder,
                        struct rf_delivery *delivery)
{
    struct rf_schedule *schedule = builder->schedule;
    struct rf_deliveries *all = schedule->deliveries;
    const uint64_t rounds = rf_delivery_rounds(all, delivery);
    delivery->op.id = RF_NO_OP;
    if (!rf_builder_number(builder, rf_delivery_ops(all, delivery),
                           &delivery->op.id)) {
        return;
    }
    schedule->n_rounds =
        RF_MAX(schedule->n_rounds, delivery->op.round + (uint32_t)rounds);
    add_to_route(builder, delivery);
    hash_delivery(builder, delivery);
    if (builder->node == RF_NONE) {
        keep_whole(builder, delivery);
    } else if (rf_route_of(all, delivery)->kind == RF_ROUTE_RING) {
        keep_near_hops(builder, delivery);
    } else {
        keep_near_stops(builder, delivery);
    }
}

/*
 * Walks over a schedule's ops, and sums over them. Deliveries (delivery.h) are
 * expanded into ops one at a time.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/schedule/delivery.h"
#include "planner/schedule/schedule.h"

void rf_schedule_walk_start(struct rf_schedule_walk *walk,
                            const struct rf_schedule *schedule)
{
    *walk = (struct rf_schedule_walk){.schedule = schedule};
}

static void make_op(const struct rf_deliveries *all,
                    const struct rf_delivery *delivery, uint64_t index,
                    struct rf_op *out)
{
    const struct rf_delivery_step step =
        rf_delivery_step_at(all, delivery, index);
    rf_delivery_op(all, delivery, &step, out);
}

const struct rf_op *rf_schedule_walk_next(struct rf_schedule_walk *walk)
{
    const struct rf_schedule *schedule = walk->schedule;
    const struct rf_deliveries *all = schedule->deliveries;
    if (all == NULL) {
        return walk->next < schedule->n_ops ? &schedule->ops[walk->next++]
                                            : NULL;
    }
    if (walk->next == all->n) {
        return NULL;
    }
    make_op(all, &all->of[walk->next], walk->at++, &walk->made);
    if (walk->at == rf_delivery_ops(all, &all->of[walk->next])) {
        walk->next++;
        walk->at = 0;
    }
    return &walk->made;
}

static int compare_op(const void *id, const void *op)
{
    const uint32_t wanted = *(const uint32_t *)id;
    const uint32_t found = ((const struct rf_op *)op)->id;
    return RF_COMPARE(wanted, found);
}

size_t rf_schedule_index(const struct rf_schedule *schedule, uint32_t id)
{
    const struct rf_op *op = schedule->n_ops > 0
                                 ? bsearch(&id, schedule->ops, schedule->n_ops,
                                           sizeof(*op), compare_op)
                                 : NULL;
    return op != NULL ? (size_t)(op - schedule->ops) : schedule->n_ops;
}

bool rf_schedule_find(const struct rf_schedule *schedule, uint32_t id,
                      struct rf_op *out)
{
    const struct rf_deliveries *all = schedule->deliveries;
    const struct rf_delivery *delivery =
        all != NULL ? rf_delivery_find(all, id) : NULL;
    const size_t at = rf_schedule_index(schedule, id);
    if (delivery != NULL) {
        make_op(all, delivery, id - delivery->op.id, out);
    } else if (at < schedule->n_ops) {
        *out = schedule->ops[at];
    }
    return delivery != NULL || at < schedule->n_ops;
}

/* Arguments for listing the ops between ranks. */
struct pairs {
    rf_schedule_pair_fn each;
    void *data;
};

static void list_link(uint32_t src, uint32_t dst, uint64_t n_ops,
                      uint64_t bytes, uint64_t written, void *data)
{
    const struct pairs *pairs = data;
    (void)written;
    if (src != dst) {
        pairs->each(src, dst, n_ops, bytes, pairs->data);
    }
}

void rf_schedule_pairs(const struct rf_schedule *schedule,
                       rf_schedule_pair_fn each, void *data)
{
    const struct rf_deliveries *all = schedule->deliveries;
    struct pairs pairs = {each, data};
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        list_link(op->src, op->dst, 1, rf_op_bytes(op), 0, &pairs);
    }
    for (size_t i = 0; all != NULL && i < all->n_routes; i++) {
        if (all->routes[i].kind != RF_ROUTE_RING) {
            rf_route_links(all, &all->routes[i], list_link, &pairs);
        }
    }
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        if (rf_route_of(all, &all->of[i])->kind == RF_ROUTE_RING) {
            rf_delivery_ring_links(all, &all->of[i], list_link, &pairs);
        }
    }
}

/* The hops of a route between ranks. */
struct hops {
    uint32_t from_source, others;
};

static struct hops *count_hops(const struct rf_deliveries *all)
{
    struct hops *hops = rf_xcalloc(all->n_routes, sizeof(*hops));
    for (size_t i = 0; i < all->n_routes; i++) {
        const struct rf_delivery_route *route = &all->routes[i];
        const struct rf_stop *stops = rf_route_stops(all, route);
        if (route->kind == RF_ROUTE_RING) {
            hops[i] = (struct hops){1, route->n - 1};
        }
        for (uint32_t k = 0; k < route->n && route->kind == RF_ROUTE_TREE;
             k++) {
            hops[i].from_source +=
                stops[k].parent == RF_NONE && stops[k].at.rank != route->from;
            hops[i].others += stops[k].parent != RF_NONE;
        }
    }
    return hops;
}

/* Calls `each` for every box: on its first hops, and on the others. */
static void size_delivery(const struct rf_delivery *delivery, struct hops hops,
                          rf_schedule_size_fn each, void *data)
{
    for (uint32_t p = 0; p < delivery->split.parts; p++) {
        const uint64_t chunks = rf_delivery_part_chunks(delivery, p);
        for (uint64_t k = 0; k < chunks; k++) {
            const struct rf_box box = rf_delivery_box(delivery, p, k);
            if (hops.from_source > 0) {
                each(rf_form_bytes(delivery->op.wire, &box), hops.from_source,
                     data);
            }
            if (hops.others > 0) {
                each(rf_form_bytes(delivery->op.to, &box), hops.others, data);
            }
        }
    }
}

void rf_schedule_sizes(const struct rf_schedule *schedule,
                       rf_schedule_size_fn each, void *data)
{
    const struct rf_deliveries *all = schedule->deliveries;
    struct hops *hops = all != NULL ? count_hops(all) : NULL;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src != op->dst) {
            each(rf_op_bytes(op), 1, data);
        }
    }
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        size_delivery(&all->of[i], hops[all->of[i].route], each, data);
    }
    free(hops);
}

uint64_t rf_schedule_memory(const struct rf_schedule *schedule)
{
    const struct rf_deliveries *all = schedule->deliveries;
    uint64_t bytes = schedule->n_ops * sizeof(*schedule->ops);
    if (all != NULL) {
        bytes += all->n * sizeof(*all->of) +
                 all->n_routes * sizeof(*all->routes) +
                 all->n_stops * sizeof(*all->stops);
    }
    return 2 * bytes;
}

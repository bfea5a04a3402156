/*
 * Makes the ops of deliveries, and sums them up without listing.
 *
 * The parts of a box have one of two sizes, the larger first, so parts form at
 * most two rows of equal chunk counts. All formulae for op numbers use these
 * rows; a tree has one part.
 */
#include "planner/schedule/delivery.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"

void rf_deliveries_destroy(struct rf_deliveries *all)
{
    if (all == NULL) {
        return;
    }
    free(all->of);
    free(all->routes);
    free(all->stops);
    free(all);
}

const struct rf_delivery_route *rf_route_of(const struct rf_deliveries *all,
                                            const struct rf_delivery *delivery)
{
    return &all->routes[delivery->route];
}

const struct rf_delivery_route *rf_takes_of(const struct rf_deliveries *all,
                                            const struct rf_delivery *delivery)
{
    return delivery->takes != RF_NONE ? &all->routes[delivery->takes] : NULL;
}

const struct rf_stop *rf_route_stops(const struct rf_deliveries *all,
                                     const struct rf_delivery_route *route)
{
    return &all->stops[route->first];
}

bool rf_route_is_local(const struct rf_deliveries *all,
                       const struct rf_delivery_route *route)
{
    return route->n == 0 ||
           (route->n == 1 && all->stops[route->first].at.rank == route->from);
}

/* --- Parts and chunks ----------------------------------------------------- */

void rf_delivery_cut(struct rf_delivery *delivery, uint32_t parts,
                     uint64_t max_elements)
{
    const struct rf_box *box = &delivery->op.box;
    struct rf_box part;
    delivery->split = rf_box_split(box, parts);
    delivery->larger =
        (uint32_t)(box->extent[delivery->split.dim] % delivery->split.parts);
    for (uint32_t i = 0; i < 2; i++) {
        part = rf_delivery_part(delivery, i == 0 ? 0 : delivery->larger);
        delivery->chunking[i] = rf_box_chunking(&part, max_elements);
    }
}

/* The number of parts in one of the two rows. */
static uint32_t row(const struct rf_delivery *delivery, uint32_t which)
{
    return which == 0 ? delivery->larger
                      : delivery->split.parts - delivery->larger;
}

static uint32_t width(const struct rf_delivery *delivery, uint64_t chunk)
{
    uint32_t parts = 0;
    for (uint32_t i = 0; i < 2; i++) {
        parts += chunk < delivery->chunking[i].count ? row(delivery, i) : 0;
    }
    return parts;
}

uint64_t rf_delivery_part_chunks(const struct rf_delivery *delivery,
                                 uint32_t part)
{
    return delivery->chunking[part < delivery->larger ? 0 : 1].count;
}

uint64_t rf_delivery_chunks(const struct rf_delivery *delivery)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < 2; i++) {
        most = RF_MAX(most,
                      row(delivery, i) > 0 ? delivery->chunking[i].count : 0);
    }
    return most;
}

uint64_t rf_delivery_boxes(const struct rf_delivery *delivery)
{
    uint64_t first, second, both;
    return rf_mul_u64(row(delivery, 0), delivery->chunking[0].count, &first) &&
                   rf_mul_u64(row(delivery, 1), delivery->chunking[1].count,
                              &second) &&
                   rf_add_u64(first, second, &both)
               ? both
               : UINT64_MAX;
}

struct rf_box rf_delivery_part(const struct rf_delivery *delivery,
                               uint32_t part)
{
    return rf_box_part(&delivery->op.box, &delivery->split, part);
}

struct rf_box rf_delivery_box(const struct rf_delivery *delivery, uint32_t part,
                              uint64_t chunk)
{
    const struct rf_box box = rf_delivery_part(delivery, part);
    return rf_box_chunk(
        &box, &delivery->chunking[part < delivery->larger ? 0 : 1], chunk);
}

/* --- Steps ---------------------------------------------------------------- */

/* Ops of one chunk of one part. */
static uint32_t hops_of(const struct rf_deliveries *all,
                        const struct rf_delivery *delivery)
{
    const struct rf_delivery_route *takes = rf_takes_of(all, delivery);
    return rf_route_of(all, delivery)->n + (takes ? takes->n : 0);
}

uint64_t rf_delivery_ops(const struct rf_deliveries *all,
                         const struct rf_delivery *delivery)
{
    uint64_t ops;
    return rf_mul_u64(rf_delivery_boxes(delivery), hops_of(all, delivery), &ops)
               ? ops
               : UINT64_MAX;
}

/* The number of boxes in all chunks before `chunk`. */
static uint64_t boxes_before(const struct rf_delivery *delivery, uint64_t chunk)
{
    uint64_t boxes = 0;
    for (uint32_t i = 0; i < 2; i++) {
        boxes += row(delivery, i) * RF_MIN(chunk, delivery->chunking[i].count);
    }
    return boxes;
}

/* The first part that has a chunk `chunk`. */
static uint32_t first_part(const struct rf_delivery *delivery, uint64_t chunk)
{
    return chunk < delivery->chunking[0].count ? 0 : delivery->larger;
}

/* The index of a step in the order of the delivery's ops. */
static uint64_t index_of(const struct rf_deliveries *all,
                         const struct rf_delivery *delivery,
                         const struct rf_delivery_step *step)
{
    return boxes_before(delivery, step->chunk) * hops_of(all, delivery) +
           (uint64_t)step->hop * width(delivery, step->chunk) + step->part -
           first_part(delivery, step->chunk);
}

struct rf_delivery_step rf_delivery_step_at(const struct rf_deliveries *all,
                                            const struct rf_delivery *delivery,
                                            uint64_t index)
{
    struct rf_delivery_step step;
    const uint32_t hops = hops_of(all, delivery);
    const uint64_t both =
        RF_MIN(delivery->chunking[0].count, delivery->chunking[1].count);
    const uint64_t first =
        index < boxes_before(delivery, both) * hops ? 0 : both;
    const uint32_t parts = width(delivery, first);
    const uint64_t rest = index - boxes_before(delivery, first) * hops;
    assert(parts > 0 && hops > 0);
    step.chunk = first + rest / ((uint64_t)parts * hops);
    step.hop = (uint32_t)(rest / parts % hops);
    step.part = (uint32_t)(rest % parts) + first_part(delivery, step.chunk);
    return step;
}

uint32_t rf_delivery_ring_stop(const struct rf_deliveries *all,
                               const struct rf_delivery *delivery,
                               uint32_t part, uint32_t hop)
{
    return (uint32_t)(((uint64_t)delivery->turn + part + hop) %
                      rf_route_of(all, delivery)->n);
}

/* --- Rounds --------------------------------------------------------------- */

uint64_t rf_delivery_rounds(const struct rf_deliveries *all,
                            const struct rf_delivery *delivery)
{
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const uint64_t before = (rf_delivery_chunks(delivery) - 1) * delivery->pace;
    return before + (route->kind == RF_ROUTE_RING ? route->n : route->height) +
           (delivery->takes != RF_NONE);
}

/* The last hop that takes a part of [first, end) to the stop at distance `at`
 * from the first part's first stop. */
static uint32_t last_hop(uint32_t n, uint32_t at, uint32_t first, uint32_t end)
{
    return at >= first && at + 1 < end ? n - 1 : (at + n - first) % n;
}

static uint64_t ring_busy(const struct rf_delivery *delivery, uint32_t n,
                          uint32_t stop)
{
    const uint32_t at = (stop + n - delivery->turn) % n;
    const uint32_t bounds[] = {0, delivery->larger, delivery->split.parts};
    uint64_t end = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (bounds[i] < bounds[i + 1]) {
            uint32_t hop = last_hop(n, at, bounds[i], bounds[i + 1]);
            hop = RF_MIN(hop + 1, n - 1); /* also forwards it */
            end = RF_MAX(end, delivery->chunking[i].count + hop);
        }
    }
    return end;
}

void rf_delivery_busy(const struct rf_deliveries *all,
                      const struct rf_delivery *delivery, uint32_t stop,
                      uint64_t *first, uint64_t *end)
{
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const struct rf_stop *at = &rf_route_stops(all, route)[stop];
    if (route->kind == RF_ROUTE_RING) {
        *first = 0;
        *end = ring_busy(delivery, route->n, stop);
        return;
    }
    *first = at->depth - 1;
    *end = at->depth + at->sends +
           (rf_delivery_chunks(delivery) - 1) * delivery->pace;
}

/* --- Ops ------------------------------------------------------------------ */

/* Makes the op read its box where an earlier one put it. */
static void read_at(const struct rf_op *common, const struct rf_stop *stop,
                    struct rf_op *op)
{
    const struct rf_piece *piece = stop->at.piece;
    const uint64_t *stride = piece != NULL ? piece->stride : common->dst_stride;
    op->src = stop->at.rank;
    op->src_mem = common->dst_mem;
    op->from = op->wire = common->to;
    op->src_offset = piece != NULL
                         ? rf_piece_offset(piece, op->box.start)
                         : rf_box_offset(common->box.start, common->dst_offset,
                                         stride, op->box.start);
    memcpy(op->src_stride, stride, sizeof(op->src_stride));
}

/* Makes the op write its box into a piece. */
static void write_to(const struct rf_holder *to, struct rf_op *op)
{
    op->dst_piece = to->number;
    op->dst_offset = rf_piece_offset(to->piece, op->box.start);
    memcpy(op->dst_stride, to->piece->stride, sizeof(op->dst_stride));
}

/* Finds the stop that the op of a step writes to. Sets *earlier to the hop that
 * brought the chunk, or RF_NONE: the op reads it at the source. */
static const struct rf_stop *stop_of(const struct rf_deliveries *all,
                                     const struct rf_delivery *delivery,
                                     const struct rf_delivery_step *step,
                                     uint32_t *earlier)
{
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const struct rf_stop *stops = rf_route_stops(all, route), *stop;
    if (route->kind == RF_ROUTE_RING) {
        *earlier = step->hop > 0 ? step->hop - 1 : RF_NONE;
        return &stops[rf_delivery_ring_stop(all, delivery, step->part,
                                            step->hop)];
    }
    stop = step->hop < route->n
               ? &stops[step->hop]
               : &rf_route_stops(
                     all, rf_takes_of(all, delivery))[step->hop - route->n];
    *earlier = stop->parent;
    return stop;
}

void rf_delivery_op(const struct rf_deliveries *all,
                    const struct rf_delivery *delivery,
                    const struct rf_delivery_step *step, struct rf_op *out)
{
    const struct rf_op *common = &delivery->op;
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    struct rf_delivery_step before = *step;
    uint32_t depth = step->hop;
    const struct rf_stop *stop = stop_of(all, delivery, step, &before.hop);
    *out = *common;
    out->id += (uint32_t)index_of(all, delivery, step);
    out->task += (uint32_t)step->chunk * delivery->tasks;
    out->box = rf_delivery_box(delivery, step->part, step->chunk);
    out->dst = stop->at.rank;
    out->dst_offset = rf_box_offset(common->box.start, common->dst_offset,
                                    common->dst_stride, out->box.start);
    if (before.hop != RF_NONE) {
        const uint32_t at =
            route->kind == RF_ROUTE_RING
                ? rf_delivery_ring_stop(all, delivery, step->part, before.hop)
                : before.hop;
        out->dep = common->id + (uint32_t)index_of(all, delivery, &before);
        read_at(common, &rf_route_stops(all, route)[at], out);
    } else {
        out->dep = common->dep != RF_NO_OP ? common->dep + (uint32_t)step->chunk
                                           : RF_NO_OP;
        out->src_offset = rf_box_offset(common->box.start, common->src_offset,
                                        common->src_stride, out->box.start);
    }
    if (step->hop >= route->n) { /* out of staging memory, at the source, too */
        depth = route->height;
        out->src = out->dst;
        out->dst_mem = RF_MEM_INFER;
        out->to = delivery->take;
    } else if (route->kind != RF_ROUTE_RING) {
        depth = stop->depth - 1;
    }
    out->round += (uint32_t)step->chunk * delivery->pace + depth;
    if (stop->at.piece != NULL) {
        write_to(&stop->at, out);
    }
}

const struct rf_delivery *rf_delivery_find(const struct rf_deliveries *all,
                                           uint32_t id)
{
    size_t first = 0, n = all->n;
    while (n > 0) {
        const struct rf_delivery *middle = &all->of[first + n / 2];
        if (id < middle->op.id) {
            n /= 2;
        } else if (id - middle->op.id >= rf_delivery_ops(all, middle)) {
            first += n / 2 + 1;
            n -= n / 2 + 1;
        } else {
            return middle;
        }
    }
    return NULL;
}

/* --- Sums ----------------------------------------------------------------- */

void rf_route_links(const struct rf_deliveries *all,
                    const struct rf_delivery_route *route, rf_link_fn each,
                    void *data)
{
    const struct rf_stop *stops = rf_route_stops(all, route);
    for (uint32_t i = 0; i < route->n && route->chunks > 0; i++) {
        const uint32_t dst = stops[i].at.rank, parent = stops[i].parent;
        if (route->kind == RF_ROUTE_TAKES) {
            each(dst, dst, route->chunks, route->first_bytes, route->bytes,
                 data);
        } else if (parent == RF_NONE) {
            each(route->from, dst, route->chunks, route->first_bytes,
                 route->bytes, data);
        } else {
            each(stops[parent].at.rank, dst, route->chunks, route->bytes,
                 route->bytes, data);
        }
    }
}

void rf_delivery_ring_links(const struct rf_deliveries *all,
                            const struct rf_delivery *delivery, rf_link_fn each,
                            void *data)
{
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const struct rf_stop *stops = rf_route_stops(all, route);
    const uint64_t boxes = rf_delivery_boxes(delivery);
    const uint64_t elements = rf_box_elements(&delivery->op.box);
    const uint64_t on_wire = rf_form_item(delivery->op.wire);
    const uint64_t item = rf_form_item(delivery->op.to);
    for (uint32_t i = 0; i < route->n; i++) {
        const uint32_t at = rf_delivery_ring_stop(all, delivery, 0, i);
        uint64_t own = 0, own_elements = 0;
        if (i < delivery->split.parts) {
            const struct rf_box part = rf_delivery_part(delivery, i);
            own = rf_delivery_part_chunks(delivery, i);
            own_elements = rf_box_elements(&part);
            each(route->from, stops[at].at.rank, own, own_elements * on_wire,
                 own_elements * item, data);
        }
        if (boxes > own) {
            const uint64_t bytes = (elements - own_elements) * item;
            each(stops[(at + route->n - 1) % route->n].at.rank,
                 stops[at].at.rank, boxes - own, bytes, bytes, data);
        }
    }
}

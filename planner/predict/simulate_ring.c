/*
 * Rings (planner/schedule/delivery.h): those with the same receivers, of one
 * turn and, unless those are too many, from one source, form a *circle*.
 * Everything that starts at one receiver of a circle makes the same hops, so
 * there is one flow per first hop (an *entry*) and one per later hop, which
 * forwards the flow of the hop before. In large worlds several successive hops
 * from one receiver to the next form one flow (a *band*), which forwards the
 * band of as many receivers before. See simulate.h.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/predict/simulation.h"

/* The approximate maximum of bands, shared equally among circles. */
#define MAX_BANDS (UINT64_C(1) << 17)

/* Bytes that start their way around at one receiver. */
struct start {
    uint64_t bytes, n_ops; /* of each hop after the first */
    uint64_t placed;       /* of those bytes */
};

struct rf_circle {
    uint32_t n; /* receivers */
    const struct rf_stop *to;
    uint32_t turn;
    struct start *starts; /* by receiver */
    uint32_t width;       /* hops of a band */
    size_t first_band;    /* the flow of the first band to receiver 0 */
};

/* A ring: which circle it belongs to, and what tells circles apart. */
struct ring {
    size_t item, circle;
    uint32_t turn, source;
    struct rf_hash to; /* its receivers */
};

struct rf_ring_flows {
    struct ring *rings; /* by circle, each circle's in their order */
    size_t n_rings, rings_capacity;
    struct rf_circle *circles;
    size_t n_circles, circles_capacity;
};

/* --- Circles ------------------------------------------------------------- */

static int by_circle(const void *a, const void *b)
{
    const struct ring *x = a, *y = b;
    int order = RF_COMPARE(x->turn, y->turn);
    order = RF_THEN_BY(order, RF_COMPARE(x->source, y->source));
    order = RF_THEN_BY(order, RF_COMPARE(x->to.a, y->to.a));
    return RF_THEN_BY(order, RF_COMPARE(x->to.b, y->to.b));
}

static int by_circle_and_item(const void *a, const void *b)
{
    const struct ring *x = a, *y = b;
    return RF_THEN_BY(by_circle(a, b), RF_COMPARE(x->item, y->item));
}

static void list_rings(const struct rf_simulation *b,
                       struct rf_ring_flows *flows)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        const struct rf_delivery_route *route = rf_route_of(all, &all->of[i]);
        struct ring ring = {.item = i,
                            .turn = rf_simulation_turn(b, &all->of[i].op)};
        rf_hash_init(&ring.to);
        for (uint32_t s = 0; s < route->n && route->kind == RF_ROUTE_RING;
             s++) {
            rf_hash_u64(&ring.to, rf_route_stops(all, route)[s].at.rank);
        }
        if (route->kind == RF_ROUTE_RING) {
            RF_PUSH(flows->rings, flows->n_rings, flows->rings_capacity, ring);
        }
    }
}

/* Returns the hops of all circles together. */
static uint64_t find_circles(const struct rf_simulation *b, bool by_source,
                             struct rf_ring_flows *flows)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    uint64_t hops = 0;
    for (size_t i = 0; i < flows->n_rings; i++) {
        struct ring *ring = &flows->rings[i];
        ring->source = by_source ? all->of[ring->item].op.src : 0;
    }
    qsort(flows->rings, flows->n_rings, sizeof(*flows->rings),
          by_circle_and_item);
    flows->n_circles = 0;
    for (size_t i = 0; i < flows->n_rings; i++) {
        struct ring *ring = &flows->rings[i];
        if (i == 0 || by_circle(ring, ring - 1) != 0) {
            const struct rf_delivery_route *route =
                rf_route_of(all, &all->of[ring->item]);
            RF_PUSH(flows->circles, flows->n_circles, flows->circles_capacity,
                    (struct rf_circle){.n = route->n,
                                       .to = rf_route_stops(all, route),
                                       .turn = ring->turn});
            hops += (uint64_t)route->n * route->n;
        }
        ring->circle = flows->n_circles - 1;
    }
    return hops;
}

/* --- Flows --------------------------------------------------------------- */

/* A part of a ring. */
struct ring_part {
    struct rf_circle *circle;
    const struct rf_delivery *ring;
    uint32_t number, start;
    uint64_t first_bytes, bytes; /* of its first hop and of each other */
    uint64_t n_ops;              /* of each hop */
};

/* Calls `each` with the parts of all rings, each ring's by the receiver where
 * they start. */
static void for_each_part(struct rf_simulation *b,
                          void (*each)(struct rf_simulation *,
                                       const struct ring_part *))
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    for (size_t i = 0; i < b->rings->n_rings; i++) {
        const struct ring *of = &b->rings->rings[i];
        const struct rf_delivery *ring = &all->of[of->item];
        struct rf_circle *circle = &b->rings->circles[of->circle];
        for (uint32_t at = 0; at < circle->n; at++) {
            const uint32_t p = (at + circle->n - ring->turn) % circle->n;
            if (p < ring->split.parts) {
                const struct rf_box box = rf_delivery_part(ring, p);
                const struct ring_part part = {
                    .circle = circle,
                    .ring = ring,
                    .number = p,
                    .start = at,
                    .first_bytes = rf_form_bytes(ring->op.wire, &box),
                    .bytes = rf_form_bytes(ring->op.to, &box),
                    .n_ops = rf_delivery_part_chunks(ring, p)};
                each(b, &part);
            }
        }
    }
}

static const struct rf_holder *receiver(const struct rf_circle *circle,
                                        uint64_t at)
{
    return &circle->to[at % circle->n].at;
}

/* Whether a receiver forwards to another node. */
static bool goes_on(const struct rf_simulation *b,
                    const struct rf_circle *circle, uint32_t at)
{
    return rf_simulation_crosses(b, receiver(circle, at)->rank,
                                 receiver(circle, (uint64_t)at + 1)->rank);
}

/* Its key has the circle in place of a flow that it forwards. */
static struct rf_simulated_flow *entry_of(struct rf_simulation *b,
                                          const struct ring_part *part)
{
    const struct rf_simulated_flow key = {
        .src = part->ring->op.src,
        .dst = receiver(part->circle, part->start)->rank,
        .after =
            RF_AFTER_STAGE - 1 - (uint32_t)(part->circle - b->rings->circles),
        .turn = part->circle->turn,
        .forwarded = goes_on(b, part->circle, part->start)};
    const uint32_t flow = rf_simulation_flow(b, &key);
    return &b->flows[flow];
}

static void add_part(struct rf_simulation *b, const struct ring_part *part)
{
    struct rf_simulated_flow *entry = entry_of(b, part);
    struct start *start = &part->circle->starts[part->start];
    start->bytes += part->bytes;
    start->n_ops += part->n_ops;
    entry->bytes += part->first_bytes;
    entry->n_ops += part->n_ops;
}

/* Sets the hops [*first, *end) of a band; false: none. */
static bool hops_of(const struct rf_circle *circle, uint32_t band,
                    uint32_t *first, uint32_t *end)
{
    const uint32_t n = circle->n;
    *first = 1 + band * circle->width;
    *end = *first < n ? *first + RF_MIN(circle->width, n - *first) : n;
    return *first < n;
}

/* The start at the receiver `hop` hops before `at`. */
static struct start *start_of(const struct rf_circle *circle, uint32_t at,
                              uint32_t hop)
{
    const uint32_t n = circle->n;
    return &circle->starts[(at + n - hop) % n];
}

static void add_bands(struct rf_simulation *b, struct rf_circle *circle)
{
    const uint32_t n = circle->n;
    uint32_t first, end;
    circle->first_band = b->n_flows;
    for (uint32_t band = 0; hops_of(circle, band, &first, &end); band++) {
        for (uint32_t at = 0; at < n; at++) {
            struct rf_simulated_flow flow = {
                .src = receiver(circle, (uint64_t)at + n - 1)->rank,
                .dst = receiver(circle, at)->rank,
                .turn = circle->turn,
                .forwarded = end < n && goes_on(b, circle, at)};
            for (uint32_t hop = first; hop < end; hop++) {
                flow.bytes += start_of(circle, at, hop)->bytes;
                flow.n_ops += start_of(circle, at, hop)->n_ops;
            }
            rf_simulation_add_flow(b, &flow);
        }
    }
}

void rf_simulation_find_rings(struct rf_simulation *b)
{
    struct rf_ring_flows *flows = b->rings = rf_xcalloc(1, sizeof(*flows));
    list_rings(b, flows);
    if (flows->n_rings == 0) {
        return;
    }
    if (find_circles(b, true, flows) > MAX_BANDS) {
        find_circles(b, false, flows);
    }
    for (size_t i = 0; i < flows->n_circles; i++) {
        struct rf_circle *circle = &flows->circles[i];
        circle->starts = rf_xcalloc(circle->n, sizeof(*circle->starts));
    }
    for_each_part(b, add_part);
    for (size_t i = 0; i < flows->n_circles; i++) {
        struct rf_circle *circle = &flows->circles[i];
        const uint64_t n = circle->n;
        circle->width =
            (uint32_t)rf_div_up(n * n * flows->n_circles, MAX_BANDS);
        circle->width = RF_MIN(circle->width, circle->n);
        add_bands(b, circle);
    }
}

/* --- Dependencies -------------------------------------------------------- */

/* The chunks of a first hop continue with the first hop of the first band, and
 * with the band's last hop, which the next band forwards. In a band the bytes
 * from each receiver are spread evenly. */
static void place_part(struct rf_simulation *b, const struct ring_part *part)
{
    const struct rf_circle *circle = part->circle;
    struct start *start = &circle->starts[part->start];
    struct rf_simulated_flow *entry = entry_of(b, part);
    const struct rf_track from = {.flow = entry,
                                  .start = (double)entry->placed,
                                  .scale = (double)part->first_bytes /
                                           (double)part->bytes};
    struct rf_cuts cuts = {.n = 0};
    RF_PUSH(cuts.at, cuts.n, cuts.capacity, 0);
    rf_simulation_cut(&cuts, part->ring, part->number);
    for (uint32_t i = 0; i < 2 && circle->n > 1; i++) {
        const uint32_t hop = i == 0 ? 1 : RF_MIN(circle->width, circle->n - 1);
        struct rf_track to = {.flow =
                                  &b->flows[circle->first_band +
                                            (part->start + hop) % circle->n]};
        to.scale = (double)to.flow->bytes / (double)start->bytes;
        to.start = (double)start->placed * to.scale;
        if (i == 0 || hop > 1) {
            rf_simulation_forward(b, &to, &from, cuts.at, cuts.n - 1);
        }
    }
    free(cuts.at);
    entry->placed += part->first_bytes;
    start->placed += part->bytes;
}

/* A flow moves the bytes of `before`; by op, or by job if those are fewer. */
static void forward_all(struct rf_simulation *b,
                        const struct rf_simulated_flow *flow,
                        const struct rf_simulated_flow *before)
{
    const uint64_t n = RF_MIN(flow->n_ops, flow->n_jobs);
    const struct rf_track to = {flow, 0, (double)flow->bytes};
    const struct rf_track from = {before, 0, (double)before->bytes};
    for (uint64_t i = 0; i < n; i++) {
        const double cuts[] = {(double)i / (double)n,
                               (double)(i + 1) / (double)n};
        rf_simulation_forward(b, &to, &from, cuts, 1);
    }
}

static void place_bands(struct rf_simulation *b, const struct rf_circle *circle)
{
    const uint32_t n = circle->n;
    uint32_t first, end;
    for (uint32_t band = 0; hops_of(circle, band, &first, &end); band++) {
        struct rf_simulated_flow *flows =
            &b->flows[circle->first_band + (size_t)band * n];
        for (uint32_t at = 0; at < n; at++) {
            flows[at].latency_ms *= end - first;
            if (band > 0) {
                const uint32_t from = (at + n - circle->width) % n;
                forward_all(b, &flows[at], &(flows - n)[from]);
            }
        }
    }
}

void rf_simulation_place_rings(struct rf_simulation *b)
{
    for_each_part(b, place_part);
    for (size_t i = 0; i < b->rings->n_circles; i++) {
        place_bands(b, &b->rings->circles[i]);
    }
}

void rf_simulation_free_rings(struct rf_simulation *b)
{
    for (size_t i = 0; i < b->rings->n_circles; i++) {
        free(b->rings->circles[i].starts);
    }
    free(b->rings->circles);
    free(b->rings->rings);
    free(b->rings);
}

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
    uint64_t done;         /* of those bytes: in rings already placed */
};

struct rf_circle {
    const struct rf_delivery *first; /* represents the others */
    uint32_t n;                      /* receivers */
    const struct rf_stop *to;
    struct start *starts; /* by receiver */
    uint32_t width;       /* hops of a band */
    size_t first_band;    /* the flow of the first band to receiver 0 */
};

/* A part of a ring, and the flow of its first hop. */
struct ring_part {
    size_t circle, ring;
    uint32_t source, start, part;
    size_t flow;
};

/* Simulations of the rings of one schedule. */
struct rf_ring_flows {
    const struct rf_deliveries *all;
    const struct rf_delivery **rings;
    size_t n_rings, rings_capacity;
    struct rf_circle *circles;
    size_t n_circles, circles_capacity;
    size_t *circle_of;       /* per ring */
    struct ring_part *parts; /* of all rings, one after another */
    size_t n_parts, parts_capacity;
};

/* --- Circles ------------------------------------------------------------- */

struct ring_key {
    size_t ring;
    uint32_t turn, source;
    struct rf_hash of; /* of its receivers */
};

static int by_key(const void *a, const void *b)
{
    const struct ring_key *x = a, *y = b;
    int order = RF_COMPARE(x->turn, y->turn);
    order = RF_THEN_BY(order, RF_COMPARE(x->source, y->source));
    order = RF_THEN_BY(order, RF_COMPARE(x->of.a, y->of.a));
    order = RF_THEN_BY(order, RF_COMPARE(x->of.b, y->of.b));
    return RF_THEN_BY(order, RF_COMPARE(x->ring, y->ring));
}

static bool same_circle(const struct ring_key *a, const struct ring_key *b)
{
    return a->turn == b->turn && a->source == b->source && a->of.a == b->of.a &&
           a->of.b == b->of.b && a->of.length == b->of.length;
}

static struct ring_key *list_keys(const struct rf_simulation *b, bool by_source,
                                  const struct rf_ring_flows *flows)
{
    struct ring_key *keys = rf_xcalloc(flows->n_rings, sizeof(*keys));
    for (size_t i = 0; i < flows->n_rings; i++) {
        const struct rf_delivery *ring = flows->rings[i];
        const struct rf_delivery_route *route = rf_route_of(flows->all, ring);
        keys[i].ring = i;
        keys[i].source = by_source ? ring->op.src : 0;
        keys[i].turn = rf_simulation_turn(b, ring->op.task);
        rf_hash_init(&keys[i].of);
        for (uint32_t k = 0; k < route->n; k++) {
            rf_hash_u64(&keys[i].of,
                        rf_route_stops(flows->all, route)[k].at.rank);
        }
    }
    qsort(keys, flows->n_rings, sizeof(*keys), by_key);
    return keys;
}

static void free_circles(struct rf_ring_flows *flows)
{
    for (size_t i = 0; i < flows->n_circles; i++) {
        free(flows->circles[i].starts);
    }
    free(flows->circles);
    free(flows->circle_of);
    flows->circles = NULL;
    flows->circle_of = NULL;
    flows->n_circles = flows->circles_capacity = 0;
}

/* Returns the hops of all circles together. */
static uint64_t find_circles(const struct rf_simulation *b, bool by_source,
                             struct rf_ring_flows *flows)
{
    uint64_t hops = 0;
    struct ring_key *keys = list_keys(b, by_source, flows);
    flows->circle_of = rf_xcalloc(flows->n_rings, sizeof(*flows->circle_of));
    for (size_t i = 0; i < flows->n_rings; i++) {
        if (i == 0 || !same_circle(&keys[i - 1], &keys[i])) {
            const struct rf_delivery *ring = flows->rings[keys[i].ring];
            const struct rf_delivery_route *route =
                rf_route_of(flows->all, ring);
            struct rf_circle circle = {.first = ring,
                                       .n = route->n,
                                       .to = rf_route_stops(flows->all, route)};
            circle.starts = rf_xcalloc(route->n, sizeof(*circle.starts));
            RF_PUSH(flows->circles, flows->n_circles, flows->circles_capacity,
                    circle);
            hops += (uint64_t)route->n * route->n;
        }
        flows->circle_of[keys[i].ring] = flows->n_circles - 1;
    }
    free(keys);
    return hops;
}

/* --- Flows --------------------------------------------------------------- */

static void find_parts(struct rf_ring_flows *flows)
{
    for (size_t i = 0; i < flows->n_rings; i++) {
        const struct rf_delivery *ring = flows->rings[i];
        for (uint32_t p = 0; p < ring->split.parts; p++) {
            const struct ring_part part = {
                .circle = flows->circle_of[i],
                .ring = i,
                .source = ring->op.src,
                .start = rf_delivery_ring_stop(flows->all, ring, p, 0),
                .part = p};
            const struct rf_box box = rf_delivery_part(ring, p);
            struct start *start =
                &flows->circles[part.circle].starts[part.start];
            start->bytes += rf_form_bytes(ring->op.to, &box);
            start->n_ops += rf_delivery_part_chunks(ring, p);
            RF_PUSH(flows->parts, flows->n_parts, flows->parts_capacity, part);
        }
    }
}

static int by_entry(const void *a, const void *b)
{
    const struct ring_part *x = a, *y = b;
    int order = RF_COMPARE(x->circle, y->circle);
    order = RF_THEN_BY(order, RF_COMPARE(x->source, y->source));
    return RF_THEN_BY(order, RF_COMPARE(x->start, y->start));
}

static int by_ring(const void *a, const void *b)
{
    const struct ring_part *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->ring, y->ring),
                      RF_COMPARE(x->part, y->part));
}

static bool between_nodes(const struct rf_simulation *b, uint32_t from,
                          uint32_t to)
{
    return b->world->ranks[from].node != b->world->ranks[to].node;
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
    return between_nodes(b, receiver(circle, at)->rank,
                         receiver(circle, (uint64_t)at + 1)->rank);
}

static void add_entries(struct rf_simulation *b, struct rf_ring_flows *flows)
{
    struct ring_part *parts = flows->parts;
    qsort(parts, flows->n_parts, sizeof(*parts), by_entry);
    for (size_t i = 0; i < flows->n_parts; i++) {
        const struct rf_circle *circle = &flows->circles[parts[i].circle];
        const struct rf_delivery *ring = flows->rings[parts[i].ring];
        const struct rf_box box = rf_delivery_part(ring, parts[i].part);
        struct rf_simulated_flow *flow;
        if (i == 0 || by_entry(&parts[i - 1], &parts[i]) != 0) {
            rf_simulation_add_flow(
                b, &(struct rf_simulated_flow){
                       .src = parts[i].source,
                       .dst = receiver(circle, parts[i].start)->rank,
                       .turn = rf_simulation_turn(b, ring->op.task),
                       .forwarded = goes_on(b, circle, parts[i].start)});
        }
        parts[i].flow = b->n_flows - 1;
        flow = &b->flows[parts[i].flow];
        flow->bytes += rf_form_bytes(ring->op.wire, &box);
        flow->n_ops += rf_delivery_part_chunks(ring, parts[i].part);
    }
    qsort(parts, flows->n_parts, sizeof(*parts), by_ring);
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
                .turn = rf_simulation_turn(b, circle->first->op.task),
                .forwarded = end < n && goes_on(b, circle, at)};
            for (uint32_t hop = first; hop < end; hop++) {
                flow.bytes += start_of(circle, at, hop)->bytes;
                flow.n_ops += start_of(circle, at, hop)->n_ops;
            }
            rf_simulation_add_flow(b, &flow);
        }
    }
}

static void list_rings(const struct rf_deliveries *all,
                       struct rf_ring_flows *flows)
{
    flows->all = all;
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        if (rf_route_of(all, &all->of[i])->kind == RF_ROUTE_RING) {
            RF_PUSH(flows->rings, flows->n_rings, flows->rings_capacity,
                    &all->of[i]);
        }
    }
}

void rf_simulation_find_rings(struct rf_simulation *b)
{
    struct rf_ring_flows *flows = b->rings = rf_xcalloc(1, sizeof(*flows));
    list_rings(b->env->schedule->deliveries, flows);
    if (flows->n_rings == 0) {
        return;
    }
    if (find_circles(b, true, flows) > MAX_BANDS) {
        free_circles(flows);
        find_circles(b, false, flows);
    }
    find_parts(flows);
    add_entries(b, flows);
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

/* In a flow of several hops, the bytes from each receiver are spread evenly. */
static void go_on(struct rf_simulation *b, size_t flow,
                  const struct start *start, double bytes,
                  const struct rf_simulated_flow *entry,
                  const struct rf_simulated_span *from)
{
    const double scale = (double)b->flows[flow].bytes / (double)start->bytes;
    const struct rf_simulated_span span = {
        (double)start->done * scale, ((double)start->done + bytes) * scale};
    rf_simulation_forward(b, &b->flows[flow], &span, entry, from);
}

/* A box of a first hop continues with the first hop of the first band, and with
 * the band's last hop, which the next band forwards. */
static void place_box(struct rf_simulation *b, const struct rf_circle *circle,
                      const struct ring_part *part, const struct rf_box *box)
{
    const struct rf_delivery *ring = b->rings->rings[part->ring];
    struct rf_simulated_flow *entry = &b->flows[part->flow];
    struct start *start = &circle->starts[part->start];
    const uint64_t elements = rf_box_elements(box);
    const uint64_t first_bytes = elements * rf_form_item(ring->op.wire);
    const uint64_t bytes = elements * rf_form_item(ring->op.to);
    const struct rf_simulated_span from = {(double)entry->done,
                                           (double)(entry->done + first_bytes)};
    for (uint32_t i = 0; i < 2 && circle->n > 1; i++) {
        const uint32_t hop = i == 0 ? 1 : RF_MIN(circle->width, circle->n - 1);
        if (i == 0 || hop > 1) {
            go_on(b, circle->first_band + (part->start + hop) % circle->n,
                  start, (double)bytes, entry, &from);
        }
    }
    entry->done += first_bytes;
    start->done += bytes;
}

static void place_entries(struct rf_simulation *b,
                          const struct rf_ring_flows *flows)
{
    const struct ring_part *parts = flows->parts;
    for (size_t i = 0; i < flows->n_rings; i++) {
        const struct rf_delivery *ring = flows->rings[i];
        const uint64_t chunks = rf_delivery_chunks(ring);
        for (uint64_t k = 0; k < chunks; k++) {
            for (uint32_t p = 0; p < ring->split.parts; p++) {
                if (k < rf_delivery_part_chunks(ring, p)) {
                    const struct rf_box box = rf_delivery_box(ring, p, k);
                    place_box(b, &flows->circles[parts[p].circle], &parts[p],
                              &box);
                }
            }
        }
        parts += ring->split.parts;
    }
}

/* A flow moves the bytes of `before`; by op, or by job if those are fewer. */
static void forward_all(struct rf_simulation *b,
                        const struct rf_simulated_flow *flow,
                        const struct rf_simulated_flow *before)
{
    const uint64_t n = RF_MIN(flow->n_ops, flow->n_jobs);
    for (uint64_t i = 0; flow->bytes > 0 && i < n; i++) {
        const double start = (double)i / (double)n;
        const double end = (double)(i + 1) / (double)n;
        const double bytes = (double)flow->bytes;
        const double from_bytes = (double)before->bytes;
        const struct rf_simulated_span span = {start * bytes, end * bytes};
        const struct rf_simulated_span from = {start * from_bytes,
                                               end * from_bytes};
        rf_simulation_forward(b, flow, &span, before, &from);
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
    place_entries(b, b->rings);
    for (size_t i = 0; i < b->rings->n_circles; i++) {
        place_bands(b, &b->rings->circles[i]);
    }
}

void rf_simulation_free_rings(struct rf_simulation *b)
{
    free_circles(b->rings);
    free(b->rings->parts);
    free(b->rings->rings);
    free(b->rings);
}

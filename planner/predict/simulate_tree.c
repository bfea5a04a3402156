/*
 * Trees (planner/schedule/delivery.h). Deliveries with the same hops form a
 * *group*: all that leaves the root's staging memory (deliveries with takes),
 * by turns, if there are any; any other delivery is a group of its own. An op of
 * a schedule without deliveries counts as a delivery to one stop in one chunk.
 * All hops of a group carry the same chunks in the same order, so a chunk of one
 * hop waits for the same chunk of the hop before. What a rank takes out of its
 * staging memory is spread evenly over the chunks. See simulate.h.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/predict/simulation.h"

struct hop {
    uint32_t flow;
    uint32_t parent;       /* the hop before; RF_NONE: none */
    uint64_t bytes, n_ops; /* of the group */
    struct rf_track track;
};

struct group {
    bool takes;      /* its members have takes */
    size_t turns;    /* of a group with takes */
    size_t next;     /* the item after it */
    size_t *members; /* items */
    size_t n_members, members_capacity;
    uint32_t turn; /* the last one */
    uint32_t from; /* rank */
    const struct rf_stop *stops;
    uint32_t n_stops;
    struct rf_stop only;   /* of an op */
    uint64_t bytes, n_ops; /* of a hop, as written */
    struct hop *hops;
    size_t n_hops, hops_capacity;
    struct rf_cuts cuts;
};

/* --- Groups -------------------------------------------------------------- */

/* NULL: the item is an op. */
static const struct rf_delivery *delivery_of(const struct rf_simulation *b,
                                             size_t item)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    return all != NULL ? &all->of[item] : NULL;
}

static uint64_t chunks_of(const struct rf_simulation *b, size_t item)
{
    const struct rf_delivery *delivery = delivery_of(b, item);
    return delivery != NULL ? rf_delivery_chunks(delivery) : 1;
}

/* The item whose chunks this one forwards; n_items: none. */
static size_t item_before(const struct rf_simulation *b, size_t item)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    const uint32_t dep = rf_simulation_op(b, item)->dep;
    if (dep == RF_NO_OP) {
        return b->n_items;
    }
    return all != NULL ? (size_t)(rf_delivery_find(all, dep) - all->of) : dep;
}

static uint32_t turn_of(const struct rf_simulation *b, size_t item)
{
    return rf_simulation_turn(b, rf_simulation_op(b, item));
}

static bool is_tree(const struct rf_simulation *b, size_t item, bool takes)
{
    const struct rf_delivery *delivery = delivery_of(b, item);
    if (delivery == NULL) {
        return !takes;
    }
    return (delivery->takes != RF_NONE) == takes &&
           rf_route_of(b->env->schedule->deliveries, delivery)->kind ==
               RF_ROUTE_TREE;
}

/* Sets what the members of a group have in common, and sums. */
static void describe(const struct rf_simulation *b, struct group *group)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    const size_t last = group->members[group->n_members - 1];
    const struct rf_op *op = rf_simulation_op(b, last);
    group->turn = turn_of(b, last);
    group->from = op->src;
    group->only =
        (struct rf_stop){.at.rank = op->dst, .parent = RF_NONE, .depth = 1};
    group->stops = &group->only;
    group->n_stops = 1;
    if (all != NULL) {
        const struct rf_delivery_route *route =
            rf_route_of(all, &all->of[last]);
        group->stops = rf_route_stops(all, route);
        group->n_stops = route->n;
    }
    group->bytes = group->n_ops = 0;
    for (size_t m = 0; m < group->n_members; m++) {
        op = rf_simulation_op(b, group->members[m]);
        group->bytes += rf_form_bytes(op->to, &op->box);
        group->n_ops += chunks_of(b, group->members[m]);
    }
}

/* Goes to the next group; false: none. */
static bool next_group(const struct rf_simulation *b, struct group *group)
{
    size_t turns = 0, last = 0;
    group->n_members = 0;
    for (; group->next < b->n_items; group->next++) {
        const size_t item = group->next;
        if (!is_tree(b, item, group->takes)) {
            continue;
        }
        if (group->n_members > 0) {
            turns += turn_of(b, item) != turn_of(b, last);
            if (!group->takes || turns == group->turns) {
                break;
            }
        }
        last = item;
        RF_PUSH(group->members, group->n_members, group->members_capacity,
                item);
    }
    if (group->n_members > 0) {
        describe(b, group);
    }
    return group->n_members > 0;
}

/* Groups with takes have more than one turn each if there would otherwise be
 * too many flows. */
static size_t turns_a_group(const struct rf_simulation *b)
{
    size_t turns = 0;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < b->n_items; i++) {
        if (is_tree(b, i, true)) {
            turns += turn_of(b, i) != last;
            last = turn_of(b, i);
        }
    }
    return rf_div_up(turns * b->world->n_ranks, RF_SIMULATION_FLOWS);
}

/* Calls `each` with all groups. */
static void for_each_group(struct rf_simulation *b,
                           void (*each)(struct rf_simulation *, struct group *))
{
    struct group group = {.turns = turns_a_group(b)};
    for (unsigned takes = 0; takes < 2; takes++) {
        group.takes = takes == 1;
        group.next = 0;
        while (next_group(b, &group)) {
            each(b, &group);
        }
    }
    free(group.members);
    free(group.hops);
    free(group.cuts.at);
}

/* --- Hops ---------------------------------------------------------------- */

static void add_hop(struct rf_simulation *b, struct group *group, uint32_t src,
                    uint32_t dst, uint32_t after, uint32_t parent)
{
    const struct rf_simulated_flow key = {
        .src = src,
        .dst = dst,
        .after = group->takes ? RF_AFTER_STAGE : after,
        .turn = src == dst && !group->takes && !b->by_group ? 0 : group->turn};
    uint32_t flow = b->items[group->members[0]].flow; /* of its first hop */
    if (group->n_hops > 0 || flow == NO_FLOW) {
        flow = rf_simulation_flow(b, &key);
    }
    RF_PUSH(group->hops, group->n_hops, group->hops_capacity,
            (struct hop){.flow = flow, .parent = parent});
}

/* Adds a hop out of staging memory for every rank. */
static void add_takes(struct rf_simulation *b, struct group *group)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    struct hop *of_rank;
    for (uint32_t r = 0; r < b->world->n_ranks; r++) {
        add_hop(b, group, r, r, 0, RF_NONE);
    }
    of_rank = &group->hops[group->n_stops];
    for (uint32_t s = 0; s < group->n_stops; s++) {
        of_rank[group->stops[s].at.rank].parent = s;
    }
    for (size_t m = 0; m < group->n_members; m++) {
        const struct rf_delivery *delivery = &all->of[group->members[m]];
        const struct rf_delivery_route *takes = rf_takes_of(all, delivery);
        const struct rf_stop *stops = rf_route_stops(all, takes);
        const uint64_t chunks = rf_delivery_chunks(delivery);
        const uint64_t bytes = rf_form_bytes(delivery->take, &delivery->op.box);
        for (uint32_t t = 0; t < takes->n; t++) {
            of_rank[stops[t].at.rank].bytes += bytes;
            of_rank[stops[t].at.rank].n_ops += chunks;
        }
    }
}

/* Lists the hops of a group. */
static void list_hops(struct rf_simulation *b, struct group *group)
{
    const struct rf_simulated_item *item = &b->items[group->members[0]];
    const struct rf_op *op = rf_simulation_op(b, group->members[0]);
    const size_t before = item_before(b, group->members[0]);
    group->n_hops = 0;
    for (uint32_t s = 0; s < group->n_stops; s++) {
        const struct rf_stop *stop = &group->stops[s];
        const bool first = stop->parent == RF_NONE;
        uint32_t after = before < b->n_items ? b->items[before].flow : NO_FLOW;
        struct hop *hop;
        if (b->by_depth) {
            after = item->depth + stop->depth - 1;
        } else if (!first) {
            assert(group->hops != NULL); /* a parent's hop is there */
            after = group->hops[stop->parent].flow;
        }
        add_hop(b, group,
                first ? group->from : group->stops[stop->parent].at.rank,
                stop->at.rank, after, stop->parent);
        hop = &group->hops[s];
        hop->n_ops = group->n_ops;
        hop->bytes = first && !group->takes ? rf_form_bytes(op->wire, &op->box)
                                            : group->bytes;
    }
    if (group->takes) {
        add_takes(b, group);
    }
}

/* --- Flows --------------------------------------------------------------- */

/* The turns after the first that chunks of the group's delivery take. */
static uint32_t later_turns(const struct rf_simulation *b,
                            const struct group *group)
{
    const struct rf_delivery *delivery = delivery_of(b, group->members[0]);
    if (b->turn_slots == 0 || b->by_group || delivery == NULL) {
        return 0;
    }
    return (uint32_t)(group->n_ops - 1) * delivery->tasks / b->a_turn;
}

/* Whether the method leaves the bytes of a group in place. */
static bool stays(const struct rf_simulation *b, const struct group *group)
{
    const struct rf_delivery *delivery = delivery_of(b, group->members[0]);
    const struct rf_op *op = rf_simulation_op(b, group->members[0]);
    const enum rf_left left = b->env->inside.left;
    const struct rf_in_place *cover;
    struct rf_op made;
    if (left == RF_LEFT_NOTHING || group->takes || group->n_stops > 1) {
        return false;
    }
    if (delivery != NULL) {
        rf_delivery_op(b->env->schedule->deliveries, delivery,
                       &(struct rf_delivery_step){.chunk = 0}, &made);
        op = &made;
    }
    if (left == RF_LEFT_SLOT) {
        return rf_in_place_in_slot(b->env->plan, op);
    }
    cover = rf_in_place_of_op(&b->covered, op);
    return cover != NULL && cover->usable;
}

static bool too_many(const struct rf_simulation *b)
{
    return !b->by_depth && b->n_flows > RF_SIMULATION_FLOWS;
}

/* Marks the flow that a hop forwards, if it is one that decides how long a
 * chain takes to fill. */
static void mark_forwarded(struct rf_simulation *b, const struct group *group,
                           const struct hop *hop, uint32_t before)
{
    const struct rf_simulated_flow *flow = &b->flows[hop->flow];
    const uint32_t forwards =
        hop->parent != RF_NONE ? group->hops[hop->parent].flow : before;
    if (forwards != NO_FLOW &&
        (group->takes ? flow->src != flow->dst
                      : rf_simulation_crosses(b, flow->src, flow->dst))) {
        b->flows[forwards].forwarded = true;
    }
}

static void find_group(struct rf_simulation *b, struct group *group)
{
    const size_t before = item_before(b, group->members[0]);
    struct rf_simulated_item *item = &b->items[group->members[0]];
    uint32_t from = NO_FLOW;
    if (too_many(b)) {
        return;
    }
    item->flow = NO_FLOW;
    item->depth = 0;
    if (before < b->n_items) {
        item->depth = b->items[before].depth + 1;
        from = group->takes ? NO_FLOW : b->items[before].flow;
    }
    if (stays(b, group)) {
        const struct rf_op *op = rf_simulation_op(b, group->members[0]);
        b->in_place += rf_form_bytes(op->wire, &op->box);
        return;
    }
    list_hops(b, group);
    item->flow = group->hops[0].flow;
    for (size_t h = 0; h < group->n_hops; h++) {
        const struct hop *hop = &group->hops[h];
        struct rf_simulated_flow *flow = &b->flows[hop->flow];
        flow->bytes += hop->bytes;
        flow->n_ops += hop->n_ops;
        flow->turns += flow->turn > 0 ? later_turns(b, group) : 0;
        mark_forwarded(b, group, hop, from);
    }
}

static void find_flows(struct rf_simulation *b)
{
    memset(b->buckets, 0xff, b->n_buckets * sizeof(*b->buckets));
    b->n_flows = 0;
    b->in_place = 0;
    for_each_group(b, find_group);
}

/* Makes a flow per forwarded flow or, if those are too many, per step. */
void rf_simulation_find_trees(struct rf_simulation *b)
{
    find_flows(b);
    if (too_many(b)) {
        b->by_depth = true;
        find_flows(b);
    }
}

/* --- Dependencies -------------------------------------------------------- */

/* A first hop forwards what other items brought. */
static void forward_items(struct rf_simulation *b, const struct group *group,
                          const struct hop *hop)
{
    const double *cuts = group->cuts.at;
    for (size_t m = 0; m < group->n_members && hop->bytes > 0; m++) {
        const size_t item = group->members[m], before = item_before(b, item);
        const uint64_t chunks = chunks_of(b, item);
        if (before < b->n_items && b->items[before].flow != NO_FLOW) {
            const double scale =
                (double)rf_form_item(rf_simulation_op(b, before)->wire) /
                rf_form_item(rf_simulation_op(b, item)->to);
            const struct rf_track from = {
                .flow = &b->flows[b->items[before].flow],
                .start = (double)b->items[before].start - cuts[0] * scale,
                .scale = scale};
            rf_simulation_forward(b, &hop->track, &from, cuts, chunks);
        }
        cuts += chunks;
    }
}

static void cut(const struct rf_simulation *b, struct group *group)
{
    struct rf_cuts *cuts = &group->cuts;
    cuts->n = 0;
    RF_PUSH(cuts->at, cuts->n, cuts->capacity, 0);
    for (size_t m = 0; m < group->n_members; m++) {
        const struct rf_delivery *delivery = delivery_of(b, group->members[m]);
        if (delivery != NULL) {
            rf_simulation_cut(cuts, delivery, 0);
        } else {
            RF_PUSH(cuts->at, cuts->n, cuts->capacity, (double)group->bytes);
        }
    }
}

static void place_group(struct rf_simulation *b, struct group *group)
{
    struct rf_simulated_item *item = &b->items[group->members[0]];
    if (item->flow == NO_FLOW) {
        return;
    }
    list_hops(b, group);
    cut(b, group);
    item->start = b->flows[item->flow].placed;
    for (size_t h = 0; h < group->n_hops; h++) {
        struct hop *hop = &group->hops[h];
        struct rf_simulated_flow *flow = &b->flows[hop->flow];
        hop->track =
            (struct rf_track){flow, (double)flow->placed,
                              (double)hop->bytes / (double)group->bytes};
        flow->placed += hop->bytes;
        if (hop->parent == RF_NONE) {
            forward_items(b, group, hop);
        } else {
            rf_simulation_forward(b, &hop->track,
                                  &group->hops[hop->parent].track,
                                  group->cuts.at, group->cuts.n - 1);
        }
    }
}

void rf_simulation_place_trees(struct rf_simulation *b)
{
    for_each_group(b, place_group);
}

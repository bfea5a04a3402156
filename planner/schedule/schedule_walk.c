/*
 * Walks over a schedule's ops, and sums over them. Broadcasts (bcast.h) and
 * rings (ring.h) are expanded into ops one at a time, in id order.
 */
#include <stdlib.h>

#include "planner/layout/box.h"
#include "planner/schedule/bcast.h"
#include "planner/schedule/ring.h"
#include "planner/schedule/schedule.h"

void rf_schedule_walk_start(struct rf_schedule_walk *walk,
                            const struct rf_schedule *schedule)
{
    *walk = (struct rf_schedule_walk){.schedule = schedule};
}

/* Broadcasts or rings, called groups here: each has one id per op, in a row. */
static size_t count_groups(const struct rf_schedule *schedule)
{
    if (schedule->rings != NULL) {
        return schedule->rings->n;
    }
    return schedule->tmpl != NULL ? schedule->tmpl->n_bcasts : 0;
}

static uint32_t first_of(const struct rf_schedule *schedule, size_t group)
{
    return schedule->rings != NULL ? schedule->rings->of[group].op.id
                                   : schedule->tmpl->bcasts[group].id;
}

static uint64_t ops_of(const struct rf_schedule *schedule, size_t group)
{
    return schedule->rings != NULL
               ? rf_ring_ops(&schedule->rings->of[group])
               : rf_bcast_template_ops(schedule->tmpl,
                                       &schedule->tmpl->bcasts[group]);
}

static void make_op(const struct rf_schedule *schedule, size_t group,
                    uint64_t index, struct rf_op *out)
{
    const struct rf_rings *rings = schedule->rings;
    if (rings != NULL) {
        const struct rf_ring *ring = &rings->of[group];
        const struct rf_ring_step step = rf_ring_step_at(ring, index);
        rf_ring_op(ring, rings->holders + ring->first, &step, out);
    } else {
        const struct rf_bcast *bcast = &schedule->tmpl->bcasts[group];
        rf_bcast_template_op(schedule->tmpl, bcast,
                             rf_bcast_gathered(schedule->ops, bcast), index,
                             out);
    }
}

/* Whether the next op belongs to the next group. */
static bool at_group(const struct rf_schedule_walk *walk)
{
    const struct rf_schedule *schedule = walk->schedule;
    return walk->group < count_groups(schedule) &&
           (walk->op == schedule->n_ops ||
            schedule->ops[walk->op].id >= first_of(schedule, walk->group));
}

const struct rf_op *rf_schedule_walk_next(struct rf_schedule_walk *walk)
{
    const struct rf_schedule *schedule = walk->schedule;
    if (!at_group(walk)) {
        return walk->op < schedule->n_ops ? &schedule->ops[walk->op++] : NULL;
    }
    make_op(schedule, walk->group, walk->at++, &walk->repeated);
    if (walk->at == ops_of(schedule, walk->group)) {
        walk->group++;
        walk->at = 0;
    }
    return &walk->repeated;
}

static bool find_repeated(const struct rf_schedule *schedule, uint32_t id,
                          struct rf_op *out)
{
    size_t first = 0, n = count_groups(schedule);
    while (n > 0) {
        const size_t middle = first + n / 2;
        const uint32_t from = first_of(schedule, middle);
        if (id < from) {
            n /= 2;
        } else if (id - from >= ops_of(schedule, middle)) {
            first = middle + 1;
            n -= n / 2 + 1;
        } else {
            make_op(schedule, middle, id - from, out);
            return true;
        }
    }
    return false;
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
    const size_t at = rf_schedule_index(schedule, id);
    if (at < schedule->n_ops) {
        *out = schedule->ops[at];
        return true;
    }
    return find_repeated(schedule, id, out);
}

/* Arguments for listing the ops between two ranks of a ring. */
struct ring_pairs {
    rf_schedule_pair_fn each;
    void *data;
    const struct rf_ring *ring;
};

static void list_link(uint32_t src, const struct rf_holder *to, uint64_t n_ops,
                      uint64_t elements, bool from_source, void *data)
{
    const struct ring_pairs *pairs = data;
    pairs->each(src, to->rank, n_ops,
                elements * rf_form_item(rf_ring_form(pairs->ring, from_source)),
                pairs->data);
}

static void list_rings(const struct rf_rings *rings, rf_schedule_pair_fn each,
                       void *data)
{
    for (size_t i = 0; rings != NULL && i < rings->n; i++) {
        const struct rf_ring *ring = &rings->of[i];
        rf_ring_links(ring, rings->holders + ring->first, list_link,
                      &(struct ring_pairs){each, data, ring});
    }
}

void rf_schedule_pairs(const struct rf_schedule *schedule,
                       rf_schedule_pair_fn each, void *data)
{
    const struct rf_bcast_template *tmpl = schedule->tmpl;
    uint64_t bytes = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src != op->dst) {
            each(op->src, op->dst, 1, rf_op_bytes(op), data);
        }
    }
    for (size_t i = 0; tmpl != NULL && i < tmpl->n_bcasts; i++) {
        bytes += rf_bcast_bytes(schedule->ops, &tmpl->bcasts[i]);
    }
    for (uint32_t i = 1; tmpl != NULL && i < tmpl->n_hops; i++) {
        const struct rf_hop *hop = &tmpl->hops[i];
        each(tmpl->hops[hop->parent].rank, hop->rank, tmpl->n_bcasts, bytes,
             data);
    }
    list_rings(schedule->rings, each, data);
}

/* Calls `each` for every box of a ring: on the first hop, and on the others. */
static void size_ring(const struct rf_ring *ring, rf_schedule_size_fn each,
                      void *data)
{
    const struct rf_form first = rf_ring_form(ring, true);
    const struct rf_form others = rf_ring_form(ring, false);
    for (uint32_t p = 0; p < ring->split.parts; p++) {
        const uint64_t chunks = rf_ring_part_chunks(ring, p);
        for (uint64_t k = 0; k < chunks; k++) {
            const struct rf_box box = rf_ring_box(ring, p, k);
            each(rf_form_bytes(first, &box), 1, data);
            if (ring->n > 1) {
                each(rf_form_bytes(others, &box), ring->n - 1, data);
            }
        }
    }
}

void rf_schedule_sizes(const struct rf_schedule *schedule,
                       rf_schedule_size_fn each, void *data)
{
    const struct rf_bcast_template *tmpl = schedule->tmpl;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src != op->dst) {
            each(rf_op_bytes(op), 1, data);
        }
    }
    for (size_t i = 0; tmpl != NULL && tmpl->n_hops > 1 && i < tmpl->n_bcasts;
         i++) {
        each(rf_bcast_bytes(schedule->ops, &tmpl->bcasts[i]), tmpl->n_hops - 1,
             data);
    }
    for (size_t i = 0; schedule->rings != NULL && i < schedule->rings->n; i++) {
        size_ring(&schedule->rings->of[i], each, data);
    }
}

uint64_t rf_schedule_memory(const struct rf_schedule *schedule)
{
    const struct rf_bcast_template *tmpl = schedule->tmpl;
    uint64_t bytes = schedule->n_ops * sizeof(*schedule->ops);
    if (tmpl != NULL) {
        bytes += tmpl->n_bcasts * sizeof(*tmpl->bcasts) +
                 tmpl->units.n * sizeof(*tmpl->units.of) +
                 tmpl->units.n_holders * sizeof(*tmpl->units.holders) +
                 tmpl->n_hops * sizeof(*tmpl->hops);
    }
    if (schedule->rings != NULL) {
        bytes += schedule->rings->n * sizeof(*schedule->rings->of) +
                 schedule->rings->n_holders * sizeof(struct rf_holder);
    }
    return 2 * bytes;
}

/*
 * Adds rings (ring.h) to a schedule, so that the source's link and the
 * receivers' links carry bytes at the same time. Of S bytes to n receivers on A
 * nodes, a node's link takes in S / A from the source and (n - 1) / n · S from
 * the ring together, not one after the other.
 *
 * A schedule of the world keeps a ring whole, a node's keeps the ops that touch
 * the node. Both count and digest the ring as a whole.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/schedule/ring.h"
#include "planner/strategy/strategy.h"

static uint32_t first_round(const struct rf_builder *builder,
                            const struct rf_ring_draft *draft)
{
    uint32_t source = draft->source->rank;
    uint32_t first = rf_builder_round(builder, source, source);
    for (uint32_t i = 0; i < draft->n_receivers; i++) {
        first = RF_MAX(
            first, rf_builder_round(builder, source, draft->receivers[i].rank));
    }
    return first;
}

/* Makes a ring without its id. */
static void make_ring(struct rf_builder *builder,
                      const struct rf_ring_draft *draft, struct rf_ring *out)
{
    const struct rf_op_end from =
        rf_op_end_of_piece(builder, draft->source, RF_MEM_TRAIN);
    const struct rf_op_end to =
        rf_op_end_of_piece(builder, &draft->receivers[0], RF_MEM_INFER);
    const struct rf_op_draft step = {.family = draft->family,
                                     .box = *draft->box,
                                     .dep = RF_NO_OP,
                                     .bucket = RF_NO_BUCKET,
                                     .round = first_round(builder, draft),
                                     .task = builder->next_task++};
    *out = (struct rf_ring){.n = draft->n_receivers,
                            .turn = draft->turn % draft->n_receivers,
                            .split = {.parts = draft->parts}};
    rf_builder_make(builder, &step, &from, &to, &out->op);
    rf_ring_cut(out, draft->max_elements);
}

struct counting {
    struct rf_builder *builder;
    const struct rf_ring *ring;
};

static void count_link(uint32_t src, const struct rf_holder *to, uint64_t n_ops,
                       uint64_t elements, bool from_source, void *data)
{
    const struct counting *of = data;
    rf_schedule_count(
        of->builder->schedule, of->builder->world, src, to->rank, n_ops,
        elements * rf_form_item(rf_ring_form(of->ring, from_source)),
        elements * rf_form_item(of->ring->op.to));
}

static void hash_ring(struct rf_hash *digest, const struct rf_ring *ring,
                      const struct rf_holder *to)
{
    struct rf_hash hash;
    const struct rf_op *op = &ring->op;
    uint64_t words[9 + 3 * RF_BOX_DIMS] = {
        (uint64_t)op->id << 32 | op->task,
        (uint64_t)op->round << 32 | op->src,
        (uint64_t)op->family << 32 | (uint64_t)rf_op_cast(op) << 8 |
            rf_op_casts_at_source(op),
        (uint64_t)ring->n << 32 | ring->turn,
        (uint64_t)ring->split.dim << 32 | ring->split.parts,
        (uint64_t)ring->chunking[0].dim << 32 | ring->chunking[1].dim,
        ring->chunking[0].step,
        ring->chunking[1].step,
        op->src_offset,
    };
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t *at = words + 9 + (size_t)3 * d;
        at[0] = op->box.start[d];
        at[1] = op->box.extent[d];
        at[2] = op->src_stride[d];
    }
    rf_hash_init(&hash);
    rf_hash_record(&hash, words, RF_ARRAY_SIZE(words));
    rf_builder_hash_receivers(to, ring->n, &op->box, &hash);
    digest->a += hash.a;
    digest->b += hash.b;
    digest->length += rf_ring_ops(ring);
}

static void occupy(struct rf_builder *builder, const struct rf_ring *ring,
                   const struct rf_holder *to)
{
    uint32_t *next = builder->next_round;
    const uint32_t first = ring->op.round, source = ring->op.src;
    if (!builder->spec->serialize) {
        return;
    }
    next[source] = RF_MAX(next[source], first + (uint32_t)rf_ring_chunks(ring));
    for (uint32_t i = 0; i < ring->n; i++) {
        const uint32_t rank = to[i].rank;
        next[rank] =
            RF_MAX(next[rank], first + (uint32_t)rf_ring_busy(ring, i));
    }
}

/* Stores a ring. Its receivers and boxes count as kept, since readers of a ring
 * visit both. */
static void keep_ring(struct rf_builder *builder, struct rf_ring *ring,
                      const struct rf_holder *to)
{
    struct rf_rings *rings = builder->schedule->rings;
    if (!rf_builder_has_room(builder, rf_ring_boxes(ring) + ring->n)) {
        return;
    }
    if (rings == NULL) {
        rings = builder->schedule->rings = rf_xcalloc(1, sizeof(*rings));
    }
    ring->first = rings->n_holders;
    for (uint32_t i = 0; i < ring->n; i++) {
        RF_PUSH(rings->holders, rings->n_holders, rings->holders_capacity,
                to[i]);
    }
    RF_PUSH(rings->of, rings->n, rings->capacity, *ring);
}

/* Hops of parts, as hop << 32 | part. */
struct near {
    uint64_t *steps;
    size_t n, capacity;
};

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return RF_COMPARE(x, y);
}

/* Adds the hops of all parts to the receiver at distance `at` from the first
 * part's first receiver, and those onward from there. */
static void find_hops(const struct rf_ring *ring, uint32_t at, struct near *out)
{
    for (uint32_t part = 0; part < ring->split.parts; part++) {
        const uint32_t hop = (at + ring->n - part % ring->n) % ring->n;
        RF_PUSH(out->steps, out->n, out->capacity, (uint64_t)hop << 32 | part);
        if (hop + 1 < ring->n) {
            RF_PUSH(out->steps, out->n, out->capacity,
                    (uint64_t)(hop + 1) << 32 | part);
        }
    }
}

/* Finds the hops of parts that touch the builder's node. */
static void find_near(const struct rf_builder *builder,
                      const struct rf_ring *ring, const struct rf_holder *to,
                      struct near *out)
{
    const struct rf_rank *ranks = builder->world->ranks;
    size_t n = 0;
    for (uint32_t part = 0;
         ranks[ring->op.src].node == builder->node && part < ring->split.parts;
         part++) {
        RF_PUSH(out->steps, out->n, out->capacity, part);
    }
    for (uint32_t i = 0; i < ring->n; i++) {
        const uint32_t at = rf_ring_receiver(ring, 0, i);
        if (ranks[to[at].rank].node == builder->node) {
            find_hops(ring, i, out);
        }
    }
    if (out->n == 0) {
        return;
    }
    qsort(out->steps, out->n, sizeof(*out->steps), by_value);
    for (size_t i = 0; i < out->n; i++) {
        if (i == 0 || out->steps[i] != out->steps[i - 1]) {
            out->steps[n++] = out->steps[i];
        }
    }
    out->n = n;
}

static void keep_near(struct rf_builder *builder, const struct rf_ring *ring,
                      const struct rf_holder *to)
{
    struct near near = {.n = 0};
    const uint64_t chunks = rf_ring_chunks(ring);
    find_near(builder, ring, to, &near);
    for (uint64_t k = 0; near.n > 0 && k < chunks; k++) {
        for (size_t i = 0; i < near.n && builder->status == RF_OK; i++) {
            const struct rf_ring_step step = {
                .chunk = k,
                .hop = (uint32_t)(near.steps[i] >> 32),
                .part = (uint32_t)near.steps[i]};
            struct rf_op op;
            if (k < rf_ring_part_chunks(ring, step.part)) {
                rf_ring_op(ring, to, &step, &op);
                rf_builder_keep(builder, &op);
            }
        }
    }
    free(near.steps);
}

void rf_strategy_ring_emit(struct rf_builder *builder,
                           const struct rf_ring_draft *draft)
{
    const struct rf_holder *to = draft->receivers;
    struct rf_schedule *schedule = builder->schedule;
    struct rf_ring ring;
    make_ring(builder, draft, &ring);
    if (!rf_builder_number(builder, rf_ring_ops(&ring), &ring.op.id)) {
        return;
    }
    schedule->n_rounds =
        RF_MAX(schedule->n_rounds,
               ring.op.round + ring.n - 1 + (uint32_t)rf_ring_chunks(&ring));
    rf_ring_links(&ring, to, count_link,
                  &(struct counting){.builder = builder, .ring = &ring});
    hash_ring(&schedule->digest, &ring, to);
    occupy(builder, &ring, to);
    if (builder->node == RF_NONE) {
        keep_ring(builder, &ring, to);
    } else {
        keep_near(builder, &ring, to);
    }
}

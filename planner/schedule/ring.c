/*
 * Makes the ops of rings, and sums them up without listing.
 *
 * The parts of a box have one of two sizes, the larger first, so parts form at
 * most two rows of equal chunk counts. All formulae for op numbers use these
 * rows.
 */
#include "planner/schedule/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"

void rf_rings_destroy(struct rf_rings *rings)
{
    if (rings == NULL) {
        return;
    }
    free(rings->of);
    free(rings->holders);
    free(rings);
}

void rf_ring_cut(struct rf_ring *ring, uint64_t max_elements)
{
    const struct rf_box *box = &ring->op.box;
    struct rf_box part;
    ring->split = rf_box_split(box, ring->split.parts);
    ring->larger = (uint32_t)(box->extent[ring->split.dim] % ring->split.parts);
    for (uint32_t i = 0; i < 2; i++) {
        part = rf_ring_part(ring, i == 0 ? 0 : ring->larger);
        ring->chunking[i] = rf_box_chunking(&part, max_elements);
    }
}

/* The number of parts in one of the two rows. */
static uint32_t row(const struct rf_ring *ring, uint32_t which)
{
    return which == 0 ? ring->larger : ring->split.parts - ring->larger;
}

static uint32_t width(const struct rf_ring *ring, uint64_t chunk)
{
    uint32_t parts = 0;
    for (uint32_t i = 0; i < 2; i++) {
        parts += chunk < ring->chunking[i].count ? row(ring, i) : 0;
    }
    return parts;
}

uint64_t rf_ring_part_chunks(const struct rf_ring *ring, uint32_t part)
{
    return ring->chunking[part < ring->larger ? 0 : 1].count;
}

uint64_t rf_ring_chunks(const struct rf_ring *ring)
{
    const uint64_t first = ring->larger > 0 ? ring->chunking[0].count : 0;
    const uint64_t second =
        ring->larger < ring->split.parts ? ring->chunking[1].count : 0;
    return RF_MAX(first, second);
}

uint64_t rf_ring_boxes(const struct rf_ring *ring)
{
    uint64_t first, second, both;
    return rf_mul_u64(row(ring, 0), ring->chunking[0].count, &first) &&
                   rf_mul_u64(row(ring, 1), ring->chunking[1].count, &second) &&
                   rf_add_u64(first, second, &both)
               ? both
               : UINT64_MAX;
}

uint64_t rf_ring_ops(const struct rf_ring *ring)
{
    uint64_t ops;
    return rf_mul_u64(rf_ring_boxes(ring), ring->n, &ops) ? ops : UINT64_MAX;
}

struct rf_box rf_ring_part(const struct rf_ring *ring, uint32_t part)
{
    return rf_box_part(&ring->op.box, &ring->split, part);
}

struct rf_box rf_ring_box(const struct rf_ring *ring, uint32_t part,
                          uint64_t chunk)
{
    const struct rf_box box = rf_ring_part(ring, part);
    return rf_box_chunk(&box, &ring->chunking[part < ring->larger ? 0 : 1],
                        chunk);
}

struct rf_form rf_ring_form(const struct rf_ring *ring, bool from_source)
{
    return from_source ? ring->op.wire : ring->op.to;
}

uint32_t rf_ring_receiver(const struct rf_ring *ring, uint32_t part,
                          uint32_t hop)
{
    return (uint32_t)(((uint64_t)ring->turn + part + hop) % ring->n);
}

/* The last hop that takes a part of [first, end) to the receiver at distance
 * `at` from the first part's first receiver. */
static uint32_t last_hop(const struct rf_ring *ring, uint32_t at,
                         uint32_t first, uint32_t end)
{
    return at >= first && at + 1 < end ? ring->n - 1
                                       : (at + ring->n - first) % ring->n;
}

uint64_t rf_ring_busy(const struct rf_ring *ring, uint32_t receiver)
{
    const uint32_t at = (receiver + ring->n - ring->turn) % ring->n;
    const uint32_t bounds[] = {0, ring->larger, ring->split.parts};
    uint64_t end = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (bounds[i] < bounds[i + 1]) {
            uint32_t hop = last_hop(ring, at, bounds[i], bounds[i + 1]);
            hop = RF_MIN(hop + 1, ring->n - 1); /* also forwards it */
            end = RF_MAX(end, ring->chunking[i].count + hop);
        }
    }
    return end;
}

/* The number of ops of all chunks before `chunk`. */
static uint64_t ops_before(const struct rf_ring *ring, uint64_t chunk)
{
    uint64_t boxes = 0;
    for (uint32_t i = 0; i < 2; i++) {
        boxes += row(ring, i) * RF_MIN(chunk, ring->chunking[i].count);
    }
    return boxes * ring->n;
}

/* The first part that has a chunk `chunk`. */
static uint32_t first_part(const struct rf_ring *ring, uint64_t chunk)
{
    return chunk < ring->chunking[0].count ? 0 : ring->larger;
}

uint64_t rf_ring_index(const struct rf_ring *ring,
                       const struct rf_ring_step *step)
{
    return ops_before(ring, step->chunk) +
           (uint64_t)step->hop * width(ring, step->chunk) + step->part -
           first_part(ring, step->chunk);
}

struct rf_ring_step rf_ring_step_at(const struct rf_ring *ring, uint64_t index)
{
    struct rf_ring_step step;
    const uint64_t both =
        RF_MIN(ring->chunking[0].count, ring->chunking[1].count);
    const uint64_t first = index < ops_before(ring, both) ? 0 : both;
    const uint32_t parts = width(ring, first);
    const uint64_t rest = index - ops_before(ring, first);
    assert(parts > 0 && ring->n > 0);
    step.chunk = first + rest / ((uint64_t)parts * ring->n);
    step.hop = (uint32_t)(rest / parts % ring->n);
    step.part = (uint32_t)(rest % parts) + first_part(ring, step.chunk);
    return step;
}

/* Makes a hop after the first read its box at the previous receiver. */
static void read_from(const struct rf_holder *from, struct rf_op *op)
{
    op->src = from->rank;
    op->src_mem = RF_MEM_INFER;
    op->from = op->wire = op->to;
    op->src_offset = rf_piece_offset(from->piece, op->box.start);
    memcpy(op->src_stride, from->piece->stride, sizeof(op->src_stride));
}

void rf_ring_op(const struct rf_ring *ring, const struct rf_holder *to,
                const struct rf_ring_step *step, struct rf_op *out)
{
    const uint32_t at = rf_ring_receiver(ring, step->part, step->hop);
    struct rf_ring_step before = *step;
    *out = ring->op;
    out->id += (uint32_t)rf_ring_index(ring, step);
    out->round += (uint32_t)step->chunk + step->hop;
    out->box = rf_ring_box(ring, step->part, step->chunk);
    out->dst = to[at].rank;
    out->dst_piece = to[at].number;
    out->dst_offset = rf_piece_offset(to[at].piece, out->box.start);
    memcpy(out->dst_stride, to[at].piece->stride, sizeof(out->dst_stride));
    if (step->hop > 0) {
        before.hop--;
        out->dep = ring->op.id + (uint32_t)rf_ring_index(ring, &before);
        read_from(&to[rf_ring_receiver(ring, step->part, before.hop)], out);
        return;
    }
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        out->src_offset += (out->box.start[d] - ring->op.box.start[d]) *
                           ring->op.src_stride[d];
    }
}

void rf_ring_links(const struct rf_ring *ring, const struct rf_holder *to,
                   rf_ring_link_fn each, void *data)
{
    const uint64_t boxes = rf_ring_boxes(ring);
    const uint64_t elements = rf_box_elements(&ring->op.box);
    for (uint32_t i = 0; i < ring->n; i++) {
        const uint32_t at = rf_ring_receiver(ring, 0, i);
        uint64_t own = 0, own_elements = 0;
        if (i < ring->split.parts) {
            const struct rf_box part = rf_ring_part(ring, i);
            own = rf_ring_part_chunks(ring, i);
            own_elements = rf_box_elements(&part);
            each(ring->op.src, &to[at], own, own_elements, true, data);
        }
        if (boxes > own) {
            each(to[(at + ring->n - 1) % ring->n].rank, &to[at], boxes - own,
                 elements - own_elements, false, data);
        }
    }
}

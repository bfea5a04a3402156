/*
 * A ring: part p of a box goes from the source to receiver p, then from
 * receiver to receiver until all have it, chunk behind chunk, so that the
 * source's link and the receivers' carry bytes at the same time. Of S bytes to
 * n receivers on A nodes a node's link takes in S / A from the source and (n -
 * 1) / n · S from the ring, instead of one after the other.
 *
 * In a round the k-th chunks take hop h together with the chunks behind them
 * hop h - 1.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/strategy.h"

/* A part on its way around the ring. */
struct part {
    struct rf_box box;
    struct rf_chunking chunking;
    uint32_t last; /* op of the chunk at hand */
};

static const struct rf_holder *receiver(const struct rf_ring *ring, uint32_t k)
{
    return &ring->receivers[(ring->turn + k) % ring->n_receivers];
}

/* The hop of one chunk of part `p` to the part's `hop`-th receiver. */
static void emit_hop(struct rf_builder *builder, const struct rf_ring *ring,
                     struct part *part, uint32_t p, uint32_t hop,
                     struct rf_op_draft step)
{
    struct rf_view to = rf_view_of_piece(receiver(ring, p + hop), RF_MEM_INFER);
    struct rf_view from =
        hop > 0 ? rf_view_of_piece(receiver(ring, p + hop - 1), RF_MEM_INFER)
                : rf_view_of_piece(ring->source, RF_MEM_TRAIN);
    step.dep = hop > 0 ? part->last : RF_NO_OP;
    part->last = rf_builder_emit(builder, &step, &from, &to);
}

static uint32_t first_round(const struct rf_builder *builder,
                            const struct rf_ring *ring)
{
    uint32_t source = ring->source->rank;
    uint32_t first = rf_builder_round(builder, source, source);
    for (uint32_t i = 0; i < ring->n_receivers; i++) {
        first = RF_MAX(
            first, rf_builder_round(builder, source, ring->receivers[i].rank));
    }
    return first;
}

void rf_ring_emit(struct rf_builder *builder, const struct rf_ring *ring)
{
    struct part *parts = rf_xcalloc(ring->split.parts, sizeof(*parts));
    struct rf_op_draft step = {.family = ring->family,
                               .bucket = RF_NO_BUCKET,
                               .task = builder->next_task++};
    uint32_t first = first_round(builder, ring);
    uint64_t chunks = 0;
    for (uint32_t p = 0; p < ring->split.parts; p++) {
        parts[p].box = rf_box_part(ring->box, &ring->split, p);
        parts[p].chunking = rf_box_chunking(&parts[p].box, ring->max_elements);
        chunks = RF_MAX(chunks, parts[p].chunking.count);
    }
    for (uint64_t k = 0; k < chunks && builder->status == RF_OK; k++) {
        for (uint32_t i = 0; i < ring->n_receivers * ring->split.parts; i++) {
            uint32_t hop = i / ring->split.parts, p = i % ring->split.parts;
            if (k < parts[p].chunking.count) {
                step.round = first + (uint32_t)k + hop;
                step.box = rf_box_chunk(&parts[p].box, &parts[p].chunking, k);
                emit_hop(builder, ring, &parts[p], p, hop, step);
            }
        }
    }
    free(parts);
}

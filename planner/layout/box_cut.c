/*
 * Cutting a box into parts (for several receivers) and chunks (for forwarding).
 * Parts and chunks are boxes again, in row-major order.
 */
#include "common/mem.h"
#include "planner/layout/box.h"

struct rf_split rf_box_split(const struct rf_box *box, uint32_t parts)
{
    struct rf_split best = {.dim = 0, .parts = 1};
    double best_largest = 1; /* share of the largest part */
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t extent = box->extent[d];
        uint32_t n = extent < parts ? (uint32_t)extent : parts;
        if (n <= 1) {
            continue;
        }
        double largest = (double)rf_div_up(extent, n) / (double)extent;
        /* Inner dimensions mean more, shorter runs: only if clearly better. */
        if (largest < best_largest * 0.99) {
            best = (struct rf_split){.dim = d, .parts = n};
            best_largest = largest;
        }
    }
    return best;
}

struct rf_box rf_box_part(const struct rf_box *box,
                          const struct rf_split *split, uint32_t index)
{
    struct rf_box part = *box;
    uint64_t extent = box->extent[split->dim];
    uint64_t each = extent / split->parts, extra = extent % split->parts;
    part.start[split->dim] += each * index + RF_MIN(extra, index);
    part.extent[split->dim] = each + (index < extra ? 1 : 0);
    return part;
}

struct rf_chunking rf_box_chunking(const struct rf_box *box,
                                   uint64_t max_elements)
{
    struct rf_chunking chunking = {.dim = 0, .count = 1};
    uint64_t step = rf_box_step(box, 0);
    while (step > max_elements && chunking.dim + 1 < RF_BOX_DIMS) {
        chunking.count *= box->extent[chunking.dim];
        chunking.dim++;
        step = rf_box_step(box, chunking.dim);
    }
    uint64_t extent = box->extent[chunking.dim];
    uint64_t most = RF_MAX(max_elements / step, 1);
    uint64_t pieces = rf_div_up(extent, most);
    chunking.step = rf_div_up(extent, pieces);
    chunking.count *= rf_div_up(extent, chunking.step);
    return chunking;
}

struct rf_box rf_box_chunk(const struct rf_box *box,
                           const struct rf_chunking *chunking, uint64_t index)
{
    struct rf_box chunk = *box;
    uint32_t dim = chunking->dim;
    uint64_t steps = rf_div_up(box->extent[dim], chunking->step);
    uint64_t first = index % steps * chunking->step;
    chunk.start[dim] += first;
    chunk.extent[dim] = RF_MIN(chunking->step, box->extent[dim] - first);
    index /= steps;
    for (uint32_t d = dim; d-- > 0;) {
        chunk.start[d] += index % box->extent[d];
        chunk.extent[d] = 1;
        index /= box->extent[d];
    }
    return chunk;
}

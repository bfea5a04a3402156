/* Pieces cut into blocks. See blocks.h. */
#include "worker/content/blocks.h"

#include "common/mem.h"
#include "planner/layout/box.h"

struct list {
    struct rf_block *at;
    size_t n, capacity;
};

/* The outermost dimension of the tensor that has more than one index. */
static uint32_t outermost(const struct rf_box *box)
{
    uint32_t dim = RF_DIM_TENSOR;
    while (dim + 1 < RF_BOX_DIMS && box->extent[dim] == 1) {
        dim++;
    }
    return dim;
}

/* One layer and expert of a piece. */
static void add_tensor(struct list *list, struct rf_block block, uint64_t most)
{
    const uint32_t dim = outermost(&block.box);
    const uint64_t first = block.box.start[dim];
    const uint64_t end = first + block.box.extent[dim];
    const uint64_t row =
        rf_box_elements(&block.box) / block.box.extent[dim] * block.item;
    const uint64_t rows = RF_MAX(most / row, (uint64_t)1);
    for (uint64_t at = first; at < end; at += rows) {
        block.box.start[dim] = at;
        block.box.extent[dim] = RF_MIN(rows, end - at);
        block.bytes = block.box.extent[dim] * row;
        RF_PUSH(list->at, list->n, list->capacity, block);
    }
}

struct rf_block *rf_blocks_of(const struct rf_plan *plan, enum rf_side side,
                              uint32_t rank, uint64_t most, size_t *n_out)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, side, rank);
    struct list list = {0};
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const struct rf_box *box = &piece->box;
        struct rf_block block = {
            .piece = (uint32_t)i,
            .item = rf_plan_item_bytes(plan, side, piece->family),
            .box = *box};
        if (rf_box_elements(box) == 0) {
            continue;
        }
        block.box.extent[RF_DIM_LAYER] = block.box.extent[RF_DIM_EXPERT] = 1;
        for (uint64_t l = 0; l < box->extent[RF_DIM_LAYER]; l++) {
            for (uint64_t e = 0; e < box->extent[RF_DIM_EXPERT]; e++) {
                block.box.start[RF_DIM_LAYER] = box->start[RF_DIM_LAYER] + l;
                block.box.start[RF_DIM_EXPERT] = box->start[RF_DIM_EXPERT] + e;
                add_tensor(&list, block, most);
            }
        }
    }
    *n_out = list.n;
    return list.at;
}

void rf_block_walk(const struct rf_block *block, const struct rf_family *family,
                   const struct rf_piece *piece,
                   const uint64_t stride[RF_BOX_DIMS], struct rf_run_walk *walk,
                   uint64_t *offset)
{
    *offset = 0;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        *offset += (block->box.start[d] - piece->box.start[d]) * stride[d];
    }
    rf_runs_init(walk, family, &block->box, stride, block->item);
}

uint64_t rf_block_end(const struct rf_block *block,
                      const struct rf_family *family)
{
    uint64_t last = 0;
    for (uint32_t d = 0; d < family->ndim; d++) {
        const uint32_t dim = RF_DIM_TENSOR + d;
        last = last * family->shape[d] + block->box.start[dim] +
               block->box.extent[dim] - 1;
    }
    return last + 1;
}

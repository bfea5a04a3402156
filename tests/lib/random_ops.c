/* Random schedules. See random_ops.h. */
#include "tests/lib/random_ops.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/lib/places.h"
#include "transport/codec/cast.h"

#define BUCKET_BYTES 65536

struct maker {
    struct random_ops *out;
    const struct random_ops_options *options;
    uint64_t state;
    size_t cap;
    uint32_t group, task;
};

static uint64_t draw(struct maker *maker, uint64_t below)
{
    return rf_mix64(maker->state++) % below;
}

static struct rf_op *add_op(struct maker *maker, const struct rf_op *op)
{
    struct rf_schedule *all = &maker->out->all;
    struct rf_op copy = *op;
    copy.id = (uint32_t)all->n_ops;
    copy.round = copy.id;
    copy.task = maker->task;
    RF_PUSH(all->ops, all->n_ops, maker->cap, copy);
    return &all->ops[all->n_ops - 1];
}

/* Puts a box of the extents in `op` into row-major memory at the end of `mem`
 * of a rank, with `gap` extra elements a row. */
static void place(struct maker *maker, struct rf_op *op, bool at_source,
                  uint32_t rank, uint8_t mem, uint64_t gap)
{
    uint64_t *used = &maker->out->bytes[rank][mem];
    uint32_t item = rf_form_item(at_source ? op->from : op->to);
    uint64_t *stride = at_source ? op->src_stride : op->dst_stride;
    uint64_t at = item;
    *used = rf_align_up(*used, draw(maker, 3) == 0 ? item : 256);
    *(at_source ? &op->src_offset : &op->dst_offset) = *used;
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        stride[d] = at;
        at *= op->box.extent[d];
        if (d == RF_BOX_DIMS - 1) {
            at += gap * item;
        }
    }
    *used += at;
}

static void draw_extents(struct maker *maker, struct rf_op *op)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        op->box.extent[d] = 1;
    }
    switch (draw(maker, 8)) {
    case 0: /* one long run */
        op->box.extent[3] = 1 + draw(maker, maker->options->large_bytes / 4);
        break;
    case 1: /* nearly empty */
        op->box.extent[2] = 1 + draw(maker, 3);
        break;
    default:
        op->box.extent[0] = 1 + draw(maker, 3);
        op->box.extent[1] = 1 + draw(maker, 2);
        op->box.extent[3] = 1 + draw(maker, 40);
        op->box.extent[RF_BOX_DIMS - 1] = 1 + draw(maker, 900);
    }
}

static void draw_cast(struct maker *maker, struct rf_op *op)
{
    static const struct rf_form wide = {RF_F32},
                                narrow[] = {{RF_BF16}, {RF_F16}};
    op->from = op->to = draw(maker, 4) == 0 ? wide : narrow[0];
    op->wire = op->from;
    if (maker->options->casts && draw(maker, 3) == 0) {
        const struct rf_form other = narrow[draw(maker, 2)];
        const bool narrows = draw(maker, 2) == 0;
        op->from = narrows ? wide : other;
        op->to = narrows ? other : wide;
        op->wire = draw(maker, 2) == 0 ? op->from : op->to;
    }
}

static struct rf_op new_op(struct maker *maker)
{
    struct rf_op op = {.dep = RF_NO_OP, .group = RF_NO_GROUP};
    op.src = (uint32_t)draw(maker, maker->options->n_ranks);
    op.dst = (uint32_t)draw(maker, maker->options->n_ranks);
    op.src_mem = RF_MEM_TRAIN;
    op.dst_mem = RF_MEM_INFER;
    op.dst_piece = RF_NONE; /* no layouts */
    draw_cast(maker, &op);
    draw_extents(maker, &op);
    return op;
}

/* Forwards all that `from` wrote to another rank's inference memory. */
static void relay(struct maker *maker, uint32_t from_id, uint32_t dst)
{
    struct rf_op from = maker->out->all.ops[from_id], op = from;
    op.src = from.dst;
    op.dst = dst;
    op.dep = from.id;
    op.src_mem = from.dst_mem;
    op.dst_mem = RF_MEM_INFER;
    op.from = op.wire = op.to = from.to;
    op.src_offset = from.dst_offset;
    memcpy(op.src_stride, from.dst_stride, sizeof(op.src_stride));
    place(maker, &op, false, dst, RF_MEM_INFER, draw(maker, 2) * 5);
    add_op(maker, &op);
}

static void make_direct(struct maker *maker)
{
    struct rf_op op = new_op(maker);
    place(maker, &op, true, op.src, RF_MEM_TRAIN, draw(maker, 2) * 7);
    place(maker, &op, false, op.dst, RF_MEM_INFER, draw(maker, 2) * 3);
    add_op(maker, &op);
}

/* One source whose rows are split over several destinations, or given to all of
 * them whole. */
static void make_split(struct maker *maker, bool whole)
{
    struct rf_op op = new_op(maker);
    uint64_t n = 2 + draw(maker, 3), row;
    uint64_t *columns = &op.box.extent[RF_BOX_DIMS - 1];
    op.wire = op.to = op.from;
    *columns *= n;
    row = *columns;
    place(maker, &op, true, op.src, RF_MEM_TRAIN, 0);
    *columns = whole ? row : row / n;
    for (uint64_t i = 0; i < n; i++) {
        struct rf_op part = op;
        part.dst = (uint32_t)draw(maker, maker->options->n_ranks);
        part.src_offset += whole ? 0 : i * *columns * rf_form_item(op.from);
        place(maker, &part, false, part.dst, RF_MEM_INFER, draw(maker, 2));
        maker->task++;
        add_op(maker, &part);
    }
}

/* Gathers into staging memory of one rank, then gives it to several. */
static void make_staged(struct maker *maker)
{
    uint32_t root = (uint32_t)draw(maker, maker->options->n_ranks);
    uint32_t first = (uint32_t)maker->out->all.n_ops, n;
    uint64_t at = (maker->group % RF_IN_FLIGHT) * (uint64_t)BUCKET_BYTES;
    for (n = 0; n < 1 + draw(maker, 3); n++) {
        struct rf_op op = new_op(maker);
        memset(op.box.extent, 0, sizeof(op.box.extent));
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            op.box.extent[d] = 1;
        }
        op.box.extent[RF_BOX_DIMS - 1] = 1 + draw(maker, 4000);
        op.dst = root;
        op.dst_mem = RF_MEM_STAGE;
        op.group = maker->group;
        place(maker, &op, true, op.src, RF_MEM_TRAIN, 0);
        place(maker, &op, false, root, RF_MEM_STAGE, 0);
        op.dst_offset = at;
        at += rf_align_up(rf_form_bytes(op.to, &op.box), 64);
        maker->task++;
        add_op(maker, &op);
    }
    maker->out->bytes[root][RF_MEM_STAGE] = RF_IN_FLIGHT * BUCKET_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < 1 + draw(maker, 3); k++) {
            maker->task++;
            relay(maker, first + i,
                  (uint32_t)draw(maker, maker->options->n_ranks));
        }
    }
    maker->group++;
}

static void make_chain(struct maker *maker)
{
    make_direct(maker);
    for (uint64_t i = 0; i < 1 + draw(maker, 3); i++) {
        relay(maker, (uint32_t)maker->out->all.n_ops - 1,
              (uint32_t)draw(maker, maker->options->n_ranks));
        maker->out->all.ops[maker->out->all.n_ops - 1].group = RF_NO_GROUP;
    }
}

void random_ops_make(const struct random_ops_options *options,
                     struct random_ops *out)
{
    struct maker maker = {
        .out = out, .options = options, .state = rf_mix64(options->seed + 1)};
    memset(out, 0, sizeof(*out));
    out->world.n_ranks = options->n_ranks;
    out->world.n_nodes = options->n_nodes;
    out->all.in_flight = RF_IN_FLIGHT;
    out->world.ranks = rf_xcalloc(options->n_ranks, sizeof(*out->world.ranks));
    for (uint32_t r = 0; r < options->n_ranks; r++) {
        out->world.ranks[r].node = r * options->n_nodes / options->n_ranks;
    }
    out->spec.serialize = options->serialize;
    out->plan.world = &out->world;
    out->plan.spec = &out->spec;
    out->plan.weights = &out->plan;
    for (uint32_t i = 0; i < options->n_steps; i++) {
        uint64_t kind = draw(&maker, 6);
        maker.task++;
        if (kind == 0) {
            make_split(&maker, draw(&maker, 2) == 0);
        } else if (kind == 1 && options->relays) {
            make_chain(&maker);
        } else if (kind == 2 && options->staging) {
            make_staged(&maker);
        } else {
            make_direct(&maker);
        }
    }
    for (uint32_t r = 0; r < options->n_ranks; r++) {
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            out->bytes[r][mem] = rf_align_up(out->bytes[r][mem], 4096);
        }
    }
}

void random_ops_free(struct random_ops *ops)
{
    free(ops->world.ranks);
    free(ops->all.ops);
}

void random_ops_of_node(const struct random_ops *ops, uint32_t node,
                        struct rf_schedule *out)
{
    const struct rf_rank *ranks = ops->world.ranks;
    size_t cap = 0;
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < ops->all.n_ops; i++) {
        const struct rf_op *op = &ops->all.ops[i];
        if (ranks[op->src].node == node || ranks[op->dst].node == node) {
            RF_PUSH(out->ops, out->n_ops, cap, *op);
        }
    }
    out->n_world_ops = ops->all.n_ops;
    out->in_flight = RF_IN_FLIGHT;
}

void random_ops_fill(uint32_t rank, uint64_t iteration, void *memory,
                     uint64_t bytes)
{
    uint64_t seed = rf_pattern_seed(rank, iteration, 0);
    uint64_t *words = memory;
    for (uint64_t k = 0; k < bytes / 8; k++) {
        words[k] = rf_pattern_word(seed, iteration, k);
    }
}

/* A row along the op's last dimension with more than one element. */
static void run_row(const struct rf_op *op, uint32_t row, const uint64_t *at,
                    void *memory[][RF_MEM_COUNT])
{
    const uint8_t *src =
        (const uint8_t *)memory[op->src][op->src_mem] +
        place_address(&op->box, at, op->src_offset, op->src_stride);
    uint8_t *dst = (uint8_t *)memory[op->dst][op->dst_mem] +
                   place_address(&op->box, at, op->dst_offset, op->dst_stride);
    const enum rf_cast cast = rf_op_cast(op);
    const uint32_t item = rf_form_item(op->from);
    if (cast == RF_CAST_NONE && op->src_stride[row] == item &&
        op->dst_stride[row] == item) {
        memcpy(dst, src, op->box.extent[row] * item);
        return;
    }
    for (uint64_t i = 0; i < op->box.extent[row]; i++) {
        if (cast == RF_CAST_NONE) {
            memcpy(dst, src, item);
        } else {
            rf_cast_items(cast, dst, src, 1);
        }
        src += op->src_stride[row];
        dst += op->dst_stride[row];
    }
}

static void run_op(const struct rf_op *op, void *memory[][RF_MEM_COUNT])
{
    const uint32_t row = place_row(&op->box);
    uint64_t at[RF_BOX_DIMS];
    memcpy(at, op->box.start, sizeof(at));
    do {
        run_row(op, row, at, memory);
    } while (place_next_of(&op->box, row, at));
}

void random_ops_run(const struct random_ops *ops, void *memory[][RF_MEM_COUNT])
{
    for (size_t i = 0; i < ops->all.n_ops; i++) {
        run_op(&ops->all.ops[i], memory);
    }
}

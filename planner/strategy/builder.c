/*
 * The builder, through which every strategy makes its ops.
 *
 * A strategy walks over the plan in a fixed order and emits each op with its
 * dependency; the builder numbers it, adds its bytes to the totals and to the
 * digest, and keeps it if it touches the wanted node. Nothing depends on which
 * ops are kept, so ids, totals and digest are the world's on every node.
 *
 * Errors: the builder remembers when memory or op numbers run out and reports
 * it once, at the end; until then emitting does nothing.
 */
#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/strategy/strategy.h"

struct rf_op_end rf_op_end_of_piece(const struct rf_builder *builder,
                                    const struct rf_holder *holder,
                                    enum rf_mem mem)
{
    return (struct rf_op_end){
        .rank = holder->rank,
        .mem = (uint8_t)mem,
        .form = rf_plan_form(builder->plan,
                             mem == RF_MEM_INFER ? RF_INFER : RF_TRAIN,
                             holder->piece->family),
        .piece = holder->number,
        .offset = holder->piece->offset,
        .start = holder->piece->box.start,
        .stride = holder->piece->stride,
    };
}

uint32_t rf_builder_groups(const struct rf_builder *builder)
{
    return RF_MAX(builder->groups->n, 1);
}

void rf_builder_begin_group(struct rf_builder *builder, uint32_t group)
{
    builder->group = builder->groups->n > 0 ? group : RF_NO_GROUP;
    builder->first_round = builder->schedule->n_rounds;
}

bool rf_builder_part(const struct rf_builder *builder, uint32_t family,
                     const struct rf_box *box, size_t *at, struct rf_box *out)
{
    return rf_tensor_groups_part(builder->groups, builder->group, family, box,
                                 at, out);
}

void rf_builder_fail(struct rf_builder *builder, enum rf_status status,
                     const char *text)
{
    if (builder->status == RF_OK) {
        builder->status = rf_err_set(builder->err, status, "%s", text);
    }
}

/* Ops are digested separately and the digests added, so that the order of
 * emission does not matter. Their ids do. */
static void hash_op(struct rf_hash *digest, const struct rf_op *op)
{
    struct rf_hash hash;
    uint64_t words[7 + 4 * RF_BOX_DIMS] = {
        (uint64_t)op->src << 32 | op->dst,
        (uint64_t)op->dep << 32 | op->group,
        (uint64_t)op->round << 32 | op->task,
        (uint64_t)op->family << 32 | (uint64_t)op->src_mem << 24 |
            (uint64_t)op->dst_mem << 16 | (uint64_t)rf_op_cast(op) << 8 |
            rf_op_casts_at_source(op),
        op->src_offset,
        op->dst_offset,
        op->id,
    };
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t *at = words + 7 + (size_t)4 * d;
        at[0] = op->box.start[d];
        at[1] = op->box.extent[d];
        at[2] = op->src_stride[d];
        at[3] = op->dst_stride[d];
    }
    rf_hash_init(&hash);
    rf_hash_record(&hash, words, RF_ARRAY_SIZE(words));
    digest->a += hash.a;
    digest->b += hash.b;
    digest->length++;
}

static void fail_memory(struct rf_builder *builder)
{
    char available[32];
    if (builder->status != RF_OK) {
        return;
    }
    rf_format_bytes(rf_memory_available(), available, sizeof(available));
    builder->status = rf_err_set(builder->err, RF_ERR_NOMEM,
                                 "the schedule, %" PRIu64
                                 " operations so far, does not fit into the "
                                 "%s of memory available; raise chunk_bytes or "
                                 "bucket_bytes",
                                 builder->schedule->n_world_ops, available);
}

bool rf_builder_grow(struct rf_builder *builder, void **items, size_t n,
                     size_t *capacity, size_t item_size)
{
    const size_t wanted = n + n / 2 + 64;
    void *grown;
    if (n < *capacity) {
        return true;
    }
    grown = rf_realloc_large(*items, *capacity * item_size, wanted * item_size);
    if (grown == NULL) {
        fail_memory(builder);
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

bool rf_builder_has_room(struct rf_builder *builder, uint64_t n)
{
    if (builder->max_ops - builder->kept < n) {
        builder->full = true;
        builder->status = RF_ERR_UNSUPPORTED; /* not reported */
        return false;
    }
    builder->kept += n;
    return true;
}

void rf_builder_keep(struct rf_builder *builder, const struct rf_op *op)
{
    struct rf_schedule *schedule = builder->schedule;
    const struct rf_rank *ranks = builder->world->ranks;
    if (builder->status != RF_OK ||
        (builder->node != RF_NONE && ranks[op->src].node != builder->node &&
         ranks[op->dst].node != builder->node)) {
        return;
    }
    if (rf_builder_has_room(builder, 1) &&
        rf_builder_grow(builder, (void **)&schedule->ops, schedule->n_ops,
                        &builder->capacity, sizeof(*op))) {
        schedule->ops[schedule->n_ops++] = *op;
    }
}

bool rf_builder_number(struct rf_builder *builder, uint64_t n, uint32_t *first)
{
    uint64_t *used = &builder->schedule->n_world_ops;
    if (n > RF_NO_OP - *used) {
        rf_builder_fail(builder, RF_ERR_CONFIG,
                        "the schedule has more than 2^32 - 2 operations; raise "
                        "chunk_bytes or bucket_bytes");
    }
    if (builder->status != RF_OK) {
        return false;
    }
    *first = (uint32_t)*used;
    *used += n;
    return true;
}

void rf_builder_make(const struct rf_builder *builder,
                     const struct rf_op_draft *step,
                     const struct rf_op_end *src, const struct rf_op_end *dst,
                     struct rf_op *out)
{
    struct rf_op op;
    memset(&op, 0, sizeof(op));
    op.src = src->rank;
    op.dst = dst->rank;
    op.dep = step->dep;
    op.group = builder->group;
    op.round = step->round;
    op.task = step->task;
    op.family = step->family;
    op.src_mem = src->mem;
    op.dst_mem = dst->mem;
    op.from = src->form;
    op.to = dst->form;
    op.wire = builder->spec->cast_at_source ? op.to : op.from;
    op.dst_piece = dst->piece;
    op.box = step->box;
    op.src_offset =
        rf_box_offset(src->start, src->offset, src->stride, op.box.start);
    op.dst_offset =
        rf_box_offset(dst->start, dst->offset, dst->stride, op.box.start);
    memcpy(op.src_stride, src->stride, sizeof(op.src_stride));
    memcpy(op.dst_stride, dst->stride, sizeof(op.dst_stride));
    *out = op;
}

void rf_builder_add(struct rf_builder *builder, struct rf_op *op)
{
    struct rf_schedule *schedule = builder->schedule;
    op->id = RF_NO_OP;
    if (!rf_builder_number(builder, 1, &op->id)) {
        return;
    }
    op->id = builder->ids != NULL ? builder->ids[op->id - builder->first_id]
                                  : op->id;
    rf_builder_keep(builder, op);
    schedule->n_rounds = RF_MAX(schedule->n_rounds, op->round + 1);
    rf_schedule_count(schedule, builder->world, op->src, op->dst, 1,
                      rf_op_bytes(op), rf_op_written(op));
    hash_op(&schedule->digest, op);
    rf_builder_occupy(builder, op->src, op->dst, op->round);
}

uint64_t rf_builder_elements(const struct rf_builder *builder, uint32_t family,
                             uint64_t bytes)
{
    return RF_MAX(bytes / rf_form_item(rf_plan_wire(builder->plan, family)), 1);
}

void rf_builder_occupy(struct rf_builder *builder, uint32_t src, uint32_t dst,
                       uint32_t round)
{
    uint32_t *next = builder->next_round;
    if (builder->spec->serialize && src != dst) {
        next[src] = RF_MAX(next[src], round + 1);
        next[dst] = RF_MAX(next[dst], round + 1);
    }
}

uint32_t rf_builder_round(const struct rf_builder *builder, uint32_t src,
                          uint32_t dst)
{
    const uint32_t free =
        RF_MAX(builder->next_round[src], builder->next_round[dst]);
    return builder->spec->serialize && src != dst
               ? RF_MAX(builder->first_round, free)
               : builder->first_round;
}

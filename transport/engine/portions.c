/*
 * Cutting a node's copies into portions. See portions.h.
 *
 * A *group* is a list of copies whose sources have the same grid and strides:
 * either exactly the same runs (replicas; cut anywhere in the stream), or runs
 * side by side inside the same rows (a column split; cut between rows). A
 * *part* is a range of a group; a *portion* is one part of a large group or
 * several small parts in a row. A copy with needs forms its own group, whose
 * portions come after all others.
 *
 * Order: by the least op id of each group, so that copies with successors come
 * early. Not by destination (planner/schedule/peer_order.h): all ranks take
 * from one list, and all copies use the same memory.
 */
#include "transport/engine/portions.h"

#include <stdlib.h>

#include "common/mem.h"

/* Longer runs need no grouping: reading them is contiguous enough. */
#define INTERLEAVE_MAX_RUN (UINT64_C(256) << 10)
/* Replicas are written in turn from a block of this size, which stays in
 * cache. */
#define REPLICA_BLOCK (UINT64_C(128) << 10)

struct copy_member {
    uint32_t op; /* index into schedule->ops */
    uint32_t action;
    uint32_t src_slot, dst_slot;
    struct rf_coder coder;
};

struct copy_group {
    uint32_t first_member, n_members;
    bool by_rows;   /* else by stream items */
    uint32_t order; /* least op index */
};

struct copy_part {
    uint32_t group;
    uint64_t first, count;
};

struct portion {
    uint32_t first_part, n_parts;
};

struct rf_portions {
    const struct rf_schedule *schedule;
    const struct rf_codec *codec; /* see rf_coder_of() */
    struct copy_member *members;
    struct copy_group *groups;
    struct copy_part *parts;
    struct portion *of;
    size_t n_members, n_groups, n_parts, n;
    size_t member_cap, group_cap, part_cap, cap;
};

/* --- grouping ------------------------------------------------------------- */

/* A copy, for sorting copies of the same rows together. */
struct candidate {
    uint32_t op, action;
    uint64_t offset; /* of its source */
    uint32_t src, src_mem;
    struct rf_coder coder;
};

/* Compares source memories and the walks over them; ignores where a walk begins
 * and the lengths of its runs. */
static int compare_walks(const struct candidate *a, const struct candidate *b)
{
    int order = RF_COMPARE(a->src, b->src);
    order = order ? order : RF_COMPARE(a->src_mem, b->src_mem);
    order = order ? order : (int)a->coder.shape.cast - (int)b->coder.shape.cast;
    order = order ? order
                  : RF_COMPARE(a->coder.shape.n_dims, b->coder.shape.n_dims);
    for (uint32_t d = 0; d < a->coder.shape.n_dims && order == 0; d++) {
        order = RF_COMPARE(a->coder.shape.count[d], b->coder.shape.count[d]);
        order = order ? order
                      : RF_COMPARE(a->coder.shape.src_stride[d],
                                   b->coder.shape.src_stride[d]);
    }
    return order;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = compare_walks(x, y);
    order = order ? order : RF_COMPARE(x->offset, y->offset);
    order =
        order ? order
              : RF_COMPARE(x->coder.shape.run_items, y->coder.shape.run_items);
    return order ? order : RF_COMPARE(x->op, y->op);
}

static bool is_replica(const struct candidate *a, const struct candidate *b)
{
    return compare_walks(a, b) == 0 && a->offset == b->offset &&
           a->coder.shape.run_items == b->coder.shape.run_items;
}

/* Whether b's runs lie beside or over a's, inside the same rows. `end` is the
 * end of the group. */
static bool is_beside(const struct candidate *a, const struct candidate *b,
                      uint64_t end)
{
    uint32_t n = a->coder.shape.n_dims;
    return n > 0 && a->coder.codec == &rf_codec_raw &&
           compare_walks(a, b) == 0 && b->offset <= end &&
           b->offset > a->offset &&
           b->offset + b->coder.shape.run_items - a->offset <=
               a->coder.shape.src_stride[n - 1] &&
           b->coder.shape.run_items <= INTERLEAVE_MAX_RUN &&
           a->coder.shape.run_items <= INTERLEAVE_MAX_RUN;
}

static void add_group(struct rf_portions *portions, const struct rf_flow *flow,
                      const struct candidate *first, size_t n, bool by_rows)
{
    struct copy_group group = {.first_member = (uint32_t)portions->n_members,
                               .n_members = (uint32_t)n,
                               .by_rows = by_rows,
                               .order = UINT32_MAX};
    for (size_t i = 0; i < n; i++) {
        const struct rf_op *op = &flow->schedule->ops[first[i].op];
        struct copy_member member = {
            .op = first[i].op,
            .action = first[i].action,
            .src_slot = flow->slots[op->src],
            .dst_slot = flow->slots[op->dst],
            .coder = first[i].coder,
        };
        RF_PUSH(portions->members, portions->n_members, portions->member_cap,
                member);
        group.order = RF_MIN(group.order, member.op);
    }
    RF_PUSH(portions->groups, portions->n_groups, portions->group_cap, group);
}

/* Makes groups of sorted candidates. */
static void make_groups(struct rf_portions *portions,
                        const struct rf_flow *flow, const struct candidate *all,
                        size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t end = all[i].offset + all[i].coder.shape.run_items;
        bool by_rows = false;
        size_t k = i + 1;
        while (k < n && k - i < RF_COPY_MEMBERS_MAX) {
            if (is_beside(&all[i], &all[k], end)) {
                by_rows = true;
            } else if (!is_replica(&all[k - 1], &all[k])) {
                break;
            }
            end = RF_MAX(end, all[k].offset + all[k].coder.shape.run_items);
            k++;
        }
        add_group(portions, flow, &all[i], k - i, by_rows);
        i = k;
    }
}

static int compare_groups(const void *a, const void *b)
{
    const struct copy_group *x = a, *y = b;
    return RF_COMPARE(x->order, y->order);
}

static void group_free_copies(struct rf_portions *portions,
                              const struct rf_flow *flow)
{
    struct candidate *all = NULL;
    size_t n = 0, cap = 0;
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        const struct rf_action *action = &flow->actions[i];
        const struct rf_op *op;
        if (action->kind != RF_ACTION_COPY || action->n_needs > 0 ||
            action->owner != RF_FLOW_ANYONE) {
            continue;
        }
        op = &flow->schedule->ops[action->op];
        struct candidate next = {.op = action->op,
                                 .action = i,
                                 .offset = op->src_offset,
                                 .src = op->src,
                                 .src_mem = op->src_mem};
        rf_coder_of(op, portions->codec, &next.coder);
        RF_PUSH(all, n, cap, next);
    }
    if (n > 0) {
        qsort(all, n, sizeof(*all), compare_candidates);
        make_groups(portions, flow, all, n);
        qsort(portions->groups, portions->n_groups, sizeof(*portions->groups),
              compare_groups);
    }
    free(all);
}

/* --- cutting -------------------------------------------------------------- */

/* Bytes that one step (row or item) of a group writes. */
static uint64_t step_bytes(const struct rf_portions *portions,
                           const struct copy_group *group)
{
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < group->n_members; m++) {
        const struct rf_copy_shape *shape =
            &portions->members[group->first_member + m].coder.shape;
        bytes +=
            (uint64_t)shape->dst_item * (group->by_rows ? shape->run_items : 1);
    }
    return RF_MAX(bytes, 1);
}

/* Cuts group `index` into parts and counts them at the actions. Small parts
 * join the current portion (`filled` bytes so far). */
static void cut_group(struct rf_portions *portions, struct rf_flow *flow,
                      uint32_t index, uint64_t *filled)
{
    const struct copy_group *group = &portions->groups[index];
    const struct rf_copy_shape *shape =
        &portions->members[group->first_member].coder.shape;
    uint64_t total =
        group->by_rows ? rf_copy_shape_runs(shape) : shape->total_items;
    uint64_t each = step_bytes(portions, group), n_parts = 0;
    uint64_t per_portion = RF_MAX(RF_PORTION_BYTES / each, 1);
    for (uint64_t first = 0; first < total;) {
        uint64_t room = *filled < RF_PORTION_BYTES
                            ? (RF_PORTION_BYTES - *filled) / each
                            : 0;
        uint64_t count = total - first;
        if (portions->n == 0 || *filled == UINT64_MAX ||
            (count > room && *filled * 4 > RF_PORTION_BYTES)) {
            RF_PUSH(portions->of, portions->n, portions->cap,
                    ((struct portion){(uint32_t)portions->n_parts, 0}));
            *filled = 0;
            room = per_portion;
        }
        count = RF_MIN(count, RF_MAX(room, 1));
        RF_PUSH(portions->parts, portions->n_parts, portions->part_cap,
                ((struct copy_part){index, first, count}));
        portions->of[portions->n - 1].n_parts++;
        *filled += count * each;
        first += count;
        n_parts++;
    }
    for (uint32_t m = 0; m < group->n_members; m++) {
        const struct copy_member *member =
            &portions->members[group->first_member + m];
        flow->actions[member->action].n_parts = (uint32_t)n_parts;
    }
}

/* Copies with needs: each is one group with its own portions. */
static void cut_waiting_copies(struct rf_portions *portions,
                               struct rf_flow *flow)
{
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        struct rf_action *action = &flow->actions[i];
        uint64_t filled = UINT64_MAX; /* starts a portion */
        if (action->kind != RF_ACTION_COPY || action->n_needs == 0 ||
            action->owner != RF_FLOW_ANYONE) {
            continue;
        }
        struct candidate one = {.op = action->op, .action = i};
        rf_coder_of(&flow->schedule->ops[action->op], portions->codec,
                    &one.coder);
        add_group(portions, flow, &one, 1, false);
        action->first_portion = (uint32_t)portions->n;
        cut_group(portions, flow, (uint32_t)portions->n_groups - 1, &filled);
        action->n_portions = (uint32_t)portions->n - action->first_portion;
    }
}

void rf_portions_build(struct rf_flow *flow, const struct rf_codec *codec,
                       struct rf_portions **out)
{
    struct rf_portions *portions = rf_xcalloc(1, sizeof(*portions));
    uint64_t filled = UINT64_MAX;
    portions->schedule = flow->schedule;
    portions->codec = codec;
    group_free_copies(portions, flow);
    for (uint32_t i = 0; i < portions->n_groups; i++) {
        cut_group(portions, flow, i, &filled);
    }
    flow->n_free = (uint32_t)portions->n;
    cut_waiting_copies(portions, flow);
    flow->n_portions = (uint32_t)portions->n;
    *out = portions;
}

void rf_portions_destroy(struct rf_portions *portions)
{
    if (portions == NULL) {
        return;
    }
    free(portions->members);
    free(portions->groups);
    free(portions->parts);
    free(portions->of);
    free(portions);
}

/* --- running -------------------------------------------------------------- */

static void place_members(const struct rf_portions *portions,
                          const struct copy_group *group,
                          const struct rf_node_memory *shm,
                          struct rf_copy_member *out)
{
    for (uint32_t m = 0; m < group->n_members; m++) {
        const struct copy_member *member =
            &portions->members[group->first_member + m];
        const struct rf_op *op = &portions->schedule->ops[member->op];
        out[m].shape = &member->coder.shape;
        out[m].src =
            (const uint8_t *)shm->peers[member->src_slot].arena[op->src_mem] +
            op->src_offset;
        out[m].dst =
            (uint8_t *)shm->peers[member->dst_slot].arena[op->dst_mem] +
            op->dst_offset;
    }
}

static void run_part(const struct rf_portions *portions,
                     const struct copy_part *part,
                     const struct rf_node_memory *shm, bool streaming)
{
    const struct copy_group *group = &portions->groups[part->group];
    struct rf_copy_member members[RF_COPY_MEMBERS_MAX];
    uint64_t block = part->count;
    place_members(portions, group, shm, members);
    if (group->by_rows) {
        rf_copy_rows(members, group->n_members, part->first, part->count);
        return;
    }
    if (group->n_members > 1) {
        block = REPLICA_BLOCK / members[0].shape->src_item;
    }
    for (uint64_t at = 0; at < part->count; at += block) {
        uint64_t n = RF_MIN(block, part->count - at);
        for (uint32_t m = 0; m < group->n_members; m++) {
            rf_coder_copy(&portions->members[group->first_member + m].coder,
                          part->first + at, n, members[m].dst, members[m].src,
                          streaming);
        }
    }
}

void rf_portions_run(const struct rf_portions *portions, uint32_t portion,
                     struct rf_flow *flow, const struct rf_node_memory *shm,
                     bool streaming)
{
    const struct portion *what = &portions->of[portion];
    const struct copy_part *parts = &portions->parts[what->first_part];
    for (uint32_t p = 0; p < what->n_parts; p++) {
        run_part(portions, &parts[p], shm, streaming);
    }
    rf_copy_fence();
    for (uint32_t p = 0; p < what->n_parts; p++) {
        const struct copy_group *group = &portions->groups[parts[p].group];
        for (uint32_t m = 0; m < group->n_members; m++) {
            rf_flow_part_done(
                flow, portions->members[group->first_member + m].action);
        }
    }
    rf_flow_portion_done(flow);
}

struct rf_portion_about rf_portions_about(const struct rf_portions *portions,
                                          uint32_t portion)
{
    const struct portion *what = &portions->of[portion];
    struct rf_portion_about about = {RF_NONE, 0};
    for (uint32_t p = 0; p < what->n_parts; p++) {
        const struct copy_part *part = &portions->parts[what->first_part + p];
        const struct copy_group *group = &portions->groups[part->group];
        about.op = RF_MIN(about.op, portions->members[group->first_member].op);
        about.bytes += part->count * step_bytes(portions, group);
    }
    return about;
}

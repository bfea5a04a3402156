/*
 * Yardsticks. See yardstick.h.
 *
 * The ops are sorted by the two ranks, their memories and the cast, and then by
 * id; neighbours are merged greedily as long as a run fits into both its
 * memories. Each op fits, so each run has at least one op, and there are always
 * enough ids. Both nodes of a pair have all of its ops and so make the same
 * runs.
 */
#include "planner/strategy/yardstick.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"

#define LAST (RF_BOX_DIMS - 1)

/* Sort key of an op. */
struct run_key {
    uint32_t src, dst, kind;
    uint32_t index; /* of the op */
};

/* State of the runs in one memory of a rank. */
struct run_memory {
    uint64_t bytes, n;
    uint64_t align;
    uint64_t at; /* the earliest place for the next run */
};

struct yardstick_build {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule;
    struct rf_schedule *out;
    struct run_memory *sources, *targets; /* [rank · RF_MEM_COUNT + memory] */
};

/* The memories and the forms as one number. Without a conversion runs are of
 * bytes, so forms do not matter. */
static uint32_t kind_of(const struct rf_op *op)
{
    uint32_t kind = (uint32_t)op->src_mem << 2 | op->dst_mem;
    if (rf_form_equal(op->from, op->to)) {
        return kind;
    }
    return kind | (uint32_t)rf_op_casts_at_source(op) << 4 |
           (uint32_t)op->from.dtype << 8 | (uint32_t)op->to.dtype << 16 |
           UINT32_C(1) << 24;
}

static int compare_parts(const void *a, const void *b)
{
    const struct run_key *x = a, *y = b;
    int order = RF_COMPARE(x->src, y->src);
    order = RF_THEN_BY(order, RF_COMPARE(x->dst, y->dst));
    order = RF_THEN_BY(order, RF_COMPARE(x->kind, y->kind));
    return RF_THEN_BY(order, RF_COMPARE(x->index, y->index));
}

static uint64_t memory_bytes(const struct yardstick_build *build, uint32_t rank,
                             uint8_t mem)
{
    return rf_schedule_arena_bytes(build->plan, build->schedule, rank, mem);
}

/* --- Runs ----------------------------------------------------------------- */

/* A run of the op's items; without a cast these are bytes. */
static struct rf_op run_of(const struct yardstick_build *build,
                           const struct rf_op *op)
{
    struct rf_op run = *op;
    run.dep = RF_NO_OP;
    run.group = RF_NO_GROUP;
    run.family = RF_NONE; /* its box belongs to no tensor */
    run.dst_piece = RF_NONE;
    run.round = build->plan->spec->serialize ? op->round : 0;
    if (rf_form_equal(op->from, op->to)) {
        run.from = run.wire = run.to = (struct rf_form){RF_U8};
    }
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        run.box.start[d] = 0;
        run.box.extent[d] = 1;
        run.src_stride[d] = rf_form_item(run.from);
        run.dst_stride[d] = rf_form_item(run.to);
    }
    run.box.extent[LAST] =
        rf_form_bytes(op->from, &op->box) / rf_form_item(run.from);
    return run;
}

static uint64_t source_bytes(const struct rf_op *run)
{
    return rf_form_bytes(run->from, &run->box);
}

static uint64_t target_bytes(const struct rf_op *run)
{
    return rf_form_bytes(run->to, &run->box);
}

/* Whether `more` fits after the content of `run`, in both memories. */
static bool fits(const struct yardstick_build *build, const struct rf_op *run,
                 const struct rf_op *more)
{
    return source_bytes(run) + source_bytes(more) <=
               memory_bytes(build, run->src, run->src_mem) &&
           target_bytes(run) + target_bytes(more) <=
               memory_bytes(build, run->dst, run->dst_mem);
}

static void make_runs(struct yardstick_build *build,
                      const struct run_key *parts, size_t n)
{
    struct rf_op *runs = NULL;
    size_t n_runs = 0, capacity = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rf_op run =
            run_of(build, &build->schedule->ops[parts[i].index]);
        struct rf_op *last = n_runs > 0 ? &runs[n_runs - 1] : NULL;
        if (last != NULL && parts[i].src == parts[i - 1].src &&
            parts[i].dst == parts[i - 1].dst &&
            parts[i].kind == parts[i - 1].kind && fits(build, last, &run)) {
            last->box.extent[LAST] += run.box.extent[LAST];
        } else {
            RF_PUSH(runs, n_runs, capacity, run);
        }
    }
    build->out->ops = runs;
    build->out->n_ops = n_runs;
}

/* --- Places --------------------------------------------------------------- */

static struct run_memory *source_of(const struct yardstick_build *build,
                                    const struct rf_op *run)
{
    return &build->sources[(size_t)run->src * RF_MEM_COUNT + run->src_mem];
}

static struct run_memory *target_of(const struct yardstick_build *build,
                                    const struct rf_op *run)
{
    return &build->targets[(size_t)run->dst * RF_MEM_COUNT + run->dst_mem];
}

/* The largest alignment that leaves room for all runs. */
static void choose_alignment(struct run_memory *place, uint64_t memory)
{
    place->align = RF_PARAM_ALIGN;
    while (place->align > 1 &&
           place->bytes + (place->n - 1) * (place->align - 1) > memory) {
        place->align /= 2;
    }
}

/* Takes the next `bytes` of a memory, from its start if they do not fit before
 * its end. */
static uint64_t take(struct run_memory *place, uint64_t memory, uint64_t bytes)
{
    uint64_t at = rf_align_up(place->at, place->align);
    if (at + bytes > memory) {
        at = 0;
    }
    place->at = at + bytes;
    return at;
}

/* Widest elements first, which keeps the narrower runs behind them aligned to
 * their own elements. */
static int by_width(const void *a, const void *b)
{
    const struct rf_op *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(rf_form_item(y->to), rf_form_item(x->to)),
                      RF_COMPARE(x->id, y->id));
}

static int by_id(const void *a, const void *b)
{
    const struct rf_op *x = a, *y = b;
    return RF_COMPARE(x->id, y->id);
}

static void place_runs(struct yardstick_build *build)
{
    struct rf_schedule *out = build->out;
    for (size_t i = 0; i < out->n_ops; i++) {
        struct run_memory *target = target_of(build, &out->ops[i]);
        target->bytes += target_bytes(&out->ops[i]);
        target->n++;
    }
    qsort(out->ops, out->n_ops, sizeof(*out->ops), by_width);
    for (size_t i = 0; i < out->n_ops; i++) {
        struct rf_op *run = &out->ops[i];
        struct run_memory *source = source_of(build, run);
        struct run_memory *target = target_of(build, run);
        const uint64_t from = memory_bytes(build, run->src, run->src_mem);
        const uint64_t to = memory_bytes(build, run->dst, run->dst_mem);
        source->align = RF_PARAM_ALIGN;
        run->src_offset = take(source, from, source_bytes(run));
        choose_alignment(target, to);
        run->dst_offset = take(target, to, target_bytes(run));
    }
    qsort(out->ops, out->n_ops, sizeof(*out->ops), by_id);
}

/* --- All ------------------------------------------------------------------ */

static struct run_key *list_parts(const struct rf_schedule *schedule,
                                  const bool *left, size_t *n)
{
    struct run_key *parts = rf_xcalloc(schedule->n_ops + 1, sizeof(*parts));
    *n = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (left == NULL || !left[i]) {
            parts[(*n)++] = (struct run_key){.src = op->src,
                                             .dst = op->dst,
                                             .kind = kind_of(op),
                                             .index = (uint32_t)i};
        }
    }
    return parts;
}

struct rf_schedule *rf_yardstick_build(const struct rf_plan *plan,
                                       const struct rf_schedule *schedule,
                                       const bool *left)
{
    const size_t n_places = (size_t)plan->world->n_ranks * RF_MEM_COUNT;
    struct yardstick_build build = {.plan = plan, .schedule = schedule};
    size_t n;
    struct run_key *parts = list_parts(schedule, left, &n);
    build.sources = rf_xcalloc(2 * n_places, sizeof(*build.sources));
    build.targets = build.sources + n_places;
    build.out = rf_schedule_create(plan->world);
    if (n > 0) {
        qsort(parts, n, sizeof(*parts), compare_parts);
        make_runs(&build, parts, n);
        place_runs(&build);
    }
    for (size_t i = 0; i < build.out->n_ops; i++) {
        const struct rf_op *run = &build.out->ops[i];
        rf_schedule_count(build.out, plan->world, run->src, run->dst, 1,
                          rf_op_bytes(run), rf_op_written(run));
    }
    /* Numbers of ids and rounds are the world's, the same on every node. */
    build.out->n_world_ops = schedule->n_world_ops;
    build.out->n_rounds = plan->spec->serialize ? schedule->n_rounds : 1;
    free(parts);
    free(build.sources);
    return build.out;
}

void rf_yardstick_traffic(const struct rf_plan *plan,
                          const struct rf_schedule *yardstick, uint32_t rank,
                          struct rf_yardstick_traffic *out)
{
    const struct rf_rank *ranks = plan->world->ranks;
    *out = (struct rf_yardstick_traffic){0};
    for (size_t i = 0; i < yardstick->n_ops; i++) {
        const struct rf_op *run = &yardstick->ops[i];
        const bool near = ranks[run->src].node == ranks[run->dst].node;
        if (!near && run->src == rank) {
            out->sent_bytes += rf_op_bytes(run);
        } else if (!near && run->dst == rank) {
            out->received_bytes += rf_op_bytes(run);
        } else if (near && run->dst == rank) {
            out->copied_bytes += (source_bytes(run) + target_bytes(run)) / 2;
        }
        if (run->dst == rank && run->src != rank) {
            out->peer_bytes += rf_op_bytes(run);
        }
    }
}

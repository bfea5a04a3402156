/*
 * Adds broadcasts to a schedule; counts and digests them without listing.
 *
 * Every hop of a broadcast moves the same bytes, so all broadcasts together are
 * counted once per hop, and once per receiver of each unit task. The digest of
 * a broadcast covers the numbers that define its ops, the tree and the unit
 * task's receivers; the digest of all broadcasts is their sum, the same on
 * every node.
 */
#include "planner/strategy/bcast_build.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"

static bool is_near(const struct rf_builder *builder, uint32_t rank)
{
    return builder->world->ranks[rank].node == builder->node;
}

/* The parts of the tree and of each unit task that touch the builder's node. */
static void find_near(struct rf_bcast_build *build)
{
    const struct rf_builder *builder = build->builder;
    const struct rf_bcast_template *tmpl = build->tmpl;
    for (uint32_t i = 1; i < tmpl->n_hops; i++) {
        if (is_near(builder, tmpl->hops[i].rank) ||
            is_near(builder, tmpl->hops[tmpl->hops[i].parent].rank)) {
            RF_PUSH(build->near_hops, build->n_near_hops,
                    build->near_hops_capacity, i - 1);
        }
    }
    for (size_t u = 0; u < tmpl->units.n; u++) {
        const struct rf_unit_task *unit = &tmpl->units.of[u];
        build->takes[u].near = build->n_near;
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            size_t at = unit->first_dst + i;
            if (is_near(builder, tmpl->units.holders[at].rank)) {
                RF_PUSH(build->near, build->n_near, build->near_capacity,
                        tmpl->n_hops - 1 + i);
            }
        }
        build->takes[u].near_end = build->n_near;
    }
}

static void hash_tree(struct rf_bcast_build *build)
{
    const struct rf_bcast_template *tmpl = build->tmpl;
    rf_hash_init(&build->tree_hash);
    for (uint32_t i = 0; i < tmpl->n_hops; i++) {
        rf_hash_u64(&build->tree_hash,
                    (uint64_t)tmpl->hops[i].rank << 32 | tmpl->hops[i].parent);
    }
}

static void hash_takes(struct rf_bcast_build *build, size_t at)
{
    const struct rf_unit_task *unit = &build->tmpl->units.of[at];
    struct rf_hash *hash = &build->takes[at].hash;
    rf_hash_init(hash);
    rf_builder_hash_receivers(&build->tmpl->units.holders[unit->first_dst],
                              unit->n_dst, &unit->box, hash);
}

void rf_bcast_build_start(struct rf_bcast_build *build,
                          struct rf_builder *builder,
                          struct rf_bcast_template *tmpl)
{
    *build = (struct rf_bcast_build){.builder = builder, .tmpl = tmpl};
    builder->schedule->tmpl = tmpl;
    build->takes = rf_xcalloc(RF_MAX(tmpl->units.n, 1), sizeof(*build->takes));
    hash_tree(build);
    for (size_t u = 0; u < tmpl->units.n; u++) {
        hash_takes(build, u);
    }
    if (builder->node != RF_NONE) {
        find_near(build);
    }
}

static void hash_bcast(struct rf_bcast_build *build,
                       const struct rf_bcast *bcast,
                       const struct rf_op *gathered)
{
    struct rf_hash *digest = &build->builder->schedule->digest, hash;
    const struct rf_hash *tree = &build->tree_hash;
    const struct rf_hash *takes = &build->takes[bcast->unit].hash;
    uint64_t words[9 + 3 * RF_BOX_DIMS] = {
        (uint64_t)bcast->id << 32 | gathered->id,
        (uint64_t)gathered->bucket << 32 | bcast->task,
        (uint64_t)bcast->round << 32 | bcast->take_round,
        (uint64_t)gathered->family << 32 |
            rf_form_cast(gathered->to, bcast->take),
        gathered->dst_offset,
        tree->a,
        tree->b,
        takes->a,
        takes->b,
    };
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t *at = words + 9 + (size_t)3 * d;
        at[0] = gathered->box.start[d];
        at[1] = gathered->box.extent[d];
        at[2] = gathered->dst_stride[d];
    }
    rf_hash_init(&hash);
    rf_hash_record(&hash, words, RF_ARRAY_SIZE(words));
    digest->a += hash.a;
    digest->b += hash.b;
    digest->length += rf_bcast_template_ops(build->tmpl, bcast);
}

static void keep_near(struct rf_bcast_build *build,
                      const struct rf_bcast *bcast,
                      const struct rf_op *gathered)
{
    const struct rf_takes *takes = &build->takes[bcast->unit];
    struct rf_op op;
    for (size_t i = 0; i < build->n_near_hops; i++) {
        rf_bcast_template_op(build->tmpl, bcast, gathered, build->near_hops[i],
                             &op);
        rf_builder_keep(build->builder, &op);
    }
    for (size_t i = takes->near; i < takes->near_end; i++) {
        rf_bcast_template_op(build->tmpl, bcast, gathered, build->near[i], &op);
        rf_builder_keep(build->builder, &op);
    }
}

/* There are fewer than 2^32 broadcasts, so their size fits into a size_t. */
static void keep_bcast(struct rf_bcast_build *build,
                       const struct rf_bcast *bcast)
{
    struct rf_bcast_template *tmpl = build->tmpl;
    if (tmpl->n_bcasts == tmpl->bcasts_capacity) {
        size_t capacity = tmpl->bcasts_capacity * 3 / 2 + 64;
        struct rf_bcast *grown = rf_realloc_large(
            tmpl->bcasts, tmpl->bcasts_capacity * sizeof(*grown),
            capacity * sizeof(*grown));
        if (grown == NULL) {
            rf_builder_fail_memory(build->builder);
            return;
        }
        tmpl->bcasts = grown;
        tmpl->bcasts_capacity = capacity;
    }
    tmpl->bcasts[tmpl->n_bcasts++] = *bcast;
}

void rf_bcast_build_add(struct rf_bcast_build *build, struct rf_bcast *bcast,
                        const struct rf_op *gathered)
{
    struct rf_builder *builder = build->builder;
    struct rf_schedule *schedule = builder->schedule;
    struct rf_bcast_template *tmpl = build->tmpl;
    const uint64_t bytes = rf_op_written(gathered);
    const uint64_t ops = rf_bcast_template_ops(tmpl, bcast);
    if (!rf_builder_number(builder, ops, &bcast->id)) {
        return;
    }
    schedule->n_rounds = RF_MAX(schedule->n_rounds, bcast->take_round + 1);
    build->n++;
    build->bytes += bytes;
    build->takes[bcast->unit].n++;
    build->takes[bcast->unit].bytes += bytes;
    build->takes[bcast->unit].written +=
        rf_form_bytes(bcast->take, &gathered->box);
    hash_bcast(build, bcast, gathered);
    if (builder->node == RF_NONE) {
        keep_bcast(build, bcast);
    } else {
        keep_near(build, bcast, gathered);
    }
}

void rf_bcast_build_end(struct rf_bcast_build *build)
{
    struct rf_schedule *schedule = build->builder->schedule;
    const struct rf_bcast_template *tmpl = build->tmpl;
    for (uint32_t i = 1; i < tmpl->n_hops; i++) {
        const struct rf_hop *hop = &tmpl->hops[i];
        rf_schedule_count(schedule, build->builder->world,
                          tmpl->hops[hop->parent].rank, hop->rank, build->n,
                          build->bytes, build->bytes);
    }
    for (size_t u = 0; u < tmpl->units.n; u++) {
        const struct rf_unit_task *unit = &tmpl->units.of[u];
        const struct rf_takes *takes = &build->takes[u];
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            uint32_t rank = tmpl->units.holders[unit->first_dst + i].rank;
            rf_schedule_count(schedule, build->builder->world, rank, rank,
                              takes->n, takes->bytes, takes->written);
        }
    }
    if (build->builder->node != RF_NONE) {
        rf_bcast_template_destroy(schedule->tmpl);
        schedule->tmpl = NULL;
    }
    free(build->takes);
    free(build->near_hops);
    free(build->near);
}

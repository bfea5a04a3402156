/*
 * Spreads added to a schedule, counted and digested without listing them.
 *
 * Every hop of a spread moves the same bytes, so all spreads together are
 * counted once per hop, and once per receiver of each unit task. The digest of
 * a spread covers the numbers that its ops are made from, the tree and the unit
 * task's receivers; that of a world of spreads is the sum, on every node.
 */
#include "planner/strategy/bcast_build.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"

static bool is_near(const struct rf_builder *builder, uint32_t rank)
{
    return builder->world->ranks[rank].node == builder->node;
}

/* What of the tree and of each unit task touches the builder's node. */
static void find_near(struct rf_folding *folding)
{
    const struct rf_builder *builder = folding->builder;
    const struct rf_fold *fold = folding->fold;
    for (uint32_t i = 1; i < fold->n_hops; i++) {
        if (is_near(builder, fold->hops[i].rank) ||
            is_near(builder, fold->hops[fold->hops[i].parent].rank)) {
            RF_PUSH(folding->near_hops, folding->n_near_hops,
                    folding->near_hops_capacity, i - 1);
        }
    }
    for (size_t u = 0; u < fold->units.n; u++) {
        const struct rf_unit_task *unit = &fold->units.of[u];
        folding->takes[u].near = folding->n_near;
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            size_t at = unit->first_dst + i;
            if (is_near(builder, fold->units.holders[at].rank)) {
                RF_PUSH(folding->near, folding->n_near, folding->near_capacity,
                        fold->n_hops - 1 + i);
            }
        }
        folding->takes[u].near_end = folding->n_near;
    }
}

static void hash_tree(struct rf_folding *folding)
{
    const struct rf_fold *fold = folding->fold;
    rf_hash_init(&folding->tree_hash);
    for (uint32_t i = 0; i < fold->n_hops; i++) {
        rf_hash_u64(&folding->tree_hash,
                    (uint64_t)fold->hops[i].rank << 32 | fold->hops[i].parent);
    }
}

static void hash_takes(struct rf_folding *folding, size_t at)
{
    const struct rf_unit_task *unit = &folding->fold->units.of[at];
    const struct rf_holder *to = &folding->fold->units.holders[unit->first_dst];
    struct rf_hash *hash = &folding->takes[at].hash;
    rf_hash_init(hash);
    for (uint32_t i = 0; i < unit->n_dst; i++) {
        uint64_t words[2 + RF_BOX_DIMS] = {
            to[i].rank, rf_piece_offset(to[i].piece, unit->box.start)};
        memcpy(words + 2, to[i].piece->stride, sizeof(to[i].piece->stride));
        rf_hash_record(hash, words, RF_ARRAY_SIZE(words));
    }
}

void rf_folding_start(struct rf_folding *folding, struct rf_builder *builder,
                      struct rf_fold *fold)
{
    *folding = (struct rf_folding){.builder = builder, .fold = fold};
    builder->schedule->fold = fold;
    folding->takes =
        rf_xcalloc(RF_MAX(fold->units.n, 1), sizeof(*folding->takes));
    hash_tree(folding);
    for (size_t u = 0; u < fold->units.n; u++) {
        hash_takes(folding, u);
    }
    if (builder->node != RF_NONE) {
        find_near(folding);
    }
}

static void hash_spread(struct rf_folding *folding,
                        const struct rf_spread *spread,
                        const struct rf_op *gathered)
{
    struct rf_hash *digest = &folding->builder->schedule->digest, hash;
    const struct rf_hash *tree = &folding->tree_hash;
    const struct rf_hash *takes = &folding->takes[spread->unit].hash;
    uint64_t words[9 + 3 * RF_BOX_DIMS] = {
        (uint64_t)spread->id << 32 | gathered->id,
        (uint64_t)gathered->bucket << 32 | spread->task,
        (uint64_t)spread->round << 32 | spread->take_round,
        (uint64_t)gathered->family << 32 | spread->take_cast,
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
    digest->length += rf_fold_ops(folding->fold, spread);
}

static void keep_near(struct rf_folding *folding,
                      const struct rf_spread *spread,
                      const struct rf_op *gathered)
{
    const struct rf_takes *takes = &folding->takes[spread->unit];
    struct rf_op op;
    for (size_t i = 0; i < folding->n_near_hops; i++) {
        rf_fold_op(folding->fold, spread, gathered, folding->near_hops[i], &op);
        rf_builder_keep(folding->builder, &op);
    }
    for (size_t i = takes->near; i < takes->near_end; i++) {
        rf_fold_op(folding->fold, spread, gathered, folding->near[i], &op);
        rf_builder_keep(folding->builder, &op);
    }
}

/* One spread is at least one op: their bytes fit into a size_t. */
static void keep_spread(struct rf_folding *folding,
                        const struct rf_spread *spread)
{
    struct rf_fold *fold = folding->fold;
    if (fold->n_spreads == fold->spreads_capacity) {
        size_t capacity = fold->spreads_capacity * 3 / 2 + 64;
        struct rf_spread *grown = rf_realloc_large(
            fold->spreads, fold->spreads_capacity * sizeof(*grown),
            capacity * sizeof(*grown));
        if (grown == NULL) {
            rf_builder_fail_memory(folding->builder);
            return;
        }
        fold->spreads = grown;
        fold->spreads_capacity = capacity;
    }
    fold->spreads[fold->n_spreads++] = *spread;
}

void rf_folding_add(struct rf_folding *folding, struct rf_spread *spread,
                    const struct rf_op *gathered)
{
    struct rf_builder *builder = folding->builder;
    struct rf_schedule *schedule = builder->schedule;
    struct rf_fold *fold = folding->fold;
    const uint64_t bytes = rf_op_written(gathered);
    const uint64_t ops = rf_fold_ops(fold, spread);
    if (!rf_builder_number(builder, ops, &spread->id)) {
        return;
    }
    schedule->n_rounds = RF_MAX(schedule->n_rounds, spread->take_round + 1);
    folding->n++;
    folding->bytes += bytes;
    folding->takes[spread->unit].n++;
    folding->takes[spread->unit].bytes += bytes;
    folding->takes[spread->unit].written +=
        rf_box_elements(&gathered->box) * spread->take_item;
    hash_spread(folding, spread, gathered);
    if (builder->node == RF_NONE) {
        keep_spread(folding, spread);
    } else {
        keep_near(folding, spread, gathered);
    }
}

void rf_folding_end(struct rf_folding *folding)
{
    struct rf_schedule *schedule = folding->builder->schedule;
    const struct rf_fold *fold = folding->fold;
    for (uint32_t i = 1; i < fold->n_hops; i++) {
        const struct rf_hop *hop = &fold->hops[i];
        rf_schedule_count(schedule, folding->builder->world,
                          fold->hops[hop->parent].rank, hop->rank, folding->n,
                          folding->bytes, folding->bytes);
    }
    for (size_t u = 0; u < fold->units.n; u++) {
        const struct rf_unit_task *unit = &fold->units.of[u];
        const struct rf_takes *takes = &folding->takes[u];
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            uint32_t rank = fold->units.holders[unit->first_dst + i].rank;
            rf_schedule_count(schedule, folding->builder->world, rank, rank,
                              takes->n, takes->bytes, takes->written);
        }
    }
    if (folding->builder->node != RF_NONE) {
        rf_fold_destroy(schedule->fold);
        schedule->fold = NULL;
    }
    free(folding->takes);
    free(folding->near_hops);
    free(folding->near);
}

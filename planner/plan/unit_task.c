/*
 * Unit tasks from the plan's shards and their matches. A *tile* is a shard with
 * its holders, rank by rank. Overlapping shards of a side are cut until none
 * overlap; each part gets the holders of all shards that contain it, and is
 * matched anew. If neither side has overlaps, the usual case, the plan's own
 * matches hold. A unit task is the intersection of a source tile and a
 * destination tile. Cost: the pieces of all ranks, and the unit tasks found.
 */
#include "planner/plan/unit_task.h"

#include <assert.h>
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"

struct tile {
    uint32_t family;
    struct rf_box box;
    size_t first; /* index of its first holder */
    uint32_t n;
};

struct tiles {
    struct tile *tiles; /* by family, then box */
    size_t n, capacity;
    bool cut; /* no longer one tile per shard */
};

static int by_tile(const void *a, const void *b)
{
    const struct tile *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->family, y->family),
                      rf_box_compare(&x->box, &y->box));
}

static int by_rank(const void *a, const void *b)
{
    const struct rf_holder *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->rank, y->rank),
                      RF_COMPARE(x->piece->offset, y->piece->offset));
}

/* Assigns the holders from `first` on to `tile`, ascending by rank. A source
 * needs only one copy per rank; a destination has to write each. */
static void settle_holders(struct rf_unit_tasks *units, enum rf_side side,
                           size_t first, struct tile *tile)
{
    struct rf_holder *all = units->holders;
    size_t kept = first, i = first + 1;
    while (i < units->n_holders && by_rank(&all[i - 1], &all[i]) <= 0) {
        i++;
    }
    if (i < units->n_holders) {
        qsort(all + first, units->n_holders - first, sizeof(*all), by_rank);
    }
    for (i = first; i < units->n_holders; i++) {
        if (side != RF_TRAIN || kept == first ||
            all[kept - 1].rank != all[i].rank) {
            all[kept++] = all[i];
        }
    }
    units->n_holders = kept;
    tile->first = first;
    tile->n = (uint32_t)(kept - first);
}

/* Adds the pieces of `rank` that equal `shard`: one or several. */
static void push_holders(const struct rf_plan *plan, enum rf_side side,
                         const struct rf_shards *shards, uint32_t shard,
                         uint32_t rank, struct rf_unit_tasks *units)
{
    const struct rf_layouts *layouts = &plan->priv->layouts[side];
    uint32_t layout = layouts->of_index[plan->world->ranks[rank].index[side]];
    size_t base = shards->piece_first[layout];
    for (size_t p = base + rf_shards_piece(shards, layout, shard);
         p < shards->piece_first[layout + 1] && shards->of_piece[p] == shard;
         p++) {
        RF_PUSH(units->holders, units->n_holders, units->holders_capacity,
                ((struct rf_holder){
                    .rank = rank,
                    .number = (uint32_t)(p - base),
                    .piece = &layouts->layouts[layout].pieces[p - base]}));
    }
}

static const struct rf_shards *shards_of(const struct rf_plan *plan,
                                         enum rf_side side)
{
    return side == RF_TRAIN ? &plan->priv->source : &plan->priv->target;
}

/* A tile for each shard of a side. */
static void list_tiles(const struct rf_plan *plan, enum rf_side side,
                       struct rf_unit_tasks *units, struct tiles *out)
{
    const struct rf_shards *shards = shards_of(plan, side);
    for (uint32_t s = 0; s < shards->n_shards; s++) {
        const struct rf_shard *shard = &shards->shards[s];
        struct tile tile = {.family = shard->family, .box = shard->box};
        size_t first = units->n_holders;
        for (uint32_t g = shards->set_group[shard->set];
             g < shards->set_group[shard->set + 1]; g++) {
            const struct rf_group *group = &shards->groups[g];
            for (uint32_t i = 0; i < group->count; i++) {
                push_holders(plan, side, shards, s,
                             shards->ranks[group->first + i], units);
            }
        }
        settle_holders(units, side, first, &tile);
        RF_PUSH(out->tiles, out->n, out->capacity, tile);
    }
}

/* Adds the parts of `tile` outside `hole` (which lies inside it). */
static void push_rest(struct tiles *out, const struct tile *tile,
                      const struct rf_box *hole)
{
    struct tile rest = *tile;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t start = rest.box.start[d], hole_start = hole->start[d];
        uint64_t end = start + rest.box.extent[d];
        uint64_t hole_end = hole_start + hole->extent[d];
        if (hole_start > start) {
            struct tile before = rest;
            before.box.extent[d] = hole_start - start;
            RF_PUSH(out->tiles, out->n, out->capacity, before);
        }
        if (hole_end < end) {
            struct tile after = rest;
            after.box.start[d] = hole_end;
            after.box.extent[d] = end - hole_end;
            RF_PUSH(out->tiles, out->n, out->capacity, after);
        }
        rest.box.start[d] = hole_start;
        rest.box.extent[d] = hole->extent[d];
    }
}

/* Appends the holders of tiles `a` and `b` to `units`, as those of `into`. */
static void join_holders(struct rf_unit_tasks *units, enum rf_side side,
                         struct tile *into, const struct tile *a,
                         const struct tile *b)
{
    size_t first = units->n_holders;
    for (uint32_t i = 0; i < a->n + b->n; i++) {
        size_t from = i < a->n ? a->first + i : b->first + (i - a->n);
        struct rf_holder holder = units->holders[from];
        RF_PUSH(units->holders, units->n_holders, units->holders_capacity,
                holder);
    }
    settle_holders(units, side, first, into);
}

/* Replaces the tiles [first, n) of one family by disjoint ones. */
static void cut_apart(struct rf_unit_tasks *units, enum rf_side side,
                      struct tiles *tiles, size_t first)
{
    struct tiles done = {.tiles = NULL};
    for (size_t i = first; i < tiles->n; i++) {
        struct tiles left = {.tiles = NULL}; /* of the new tile */
        RF_PUSH(left.tiles, left.n, left.capacity, tiles->tiles[i]);
        /* The rest of an old tile is appended and checked again: another part
         * of the new tile may overlap it. */
        for (size_t k = 0; k < done.n; k++) {
            for (size_t m = 0; m < left.n;) {
                struct tile old = done.tiles[k], new = left.tiles[m], both;
                both = old;
                if (!rf_box_intersect(&old.box, &new.box, &both.box)) {
                    m++;
                    continue;
                }
                left.tiles[m] = left.tiles[--left.n];
                push_rest(&left, &new, &both.box);
                push_rest(&done, &old, &both.box);
                join_holders(units, side, &both, &old, &new);
                done.tiles[k] = both;
            }
        }
        for (size_t m = 0; m < left.n; m++) {
            RF_PUSH(done.tiles, done.n, done.capacity, left.tiles[m]);
        }
        free(left.tiles);
    }
    tiles->n = first;
    for (size_t i = 0; i < done.n; i++) {
        RF_PUSH(tiles->tiles, tiles->n, tiles->capacity, done.tiles[i]);
    }
    free(done.tiles);
    qsort(tiles->tiles + first, tiles->n - first, sizeof(*tiles->tiles),
          by_tile);
}

/* Whether the tiles [first, end) are disjoint. */
static bool are_disjoint(const struct tiles *tiles, size_t first, size_t end)
{
    struct rf_box *boxes = rf_xcalloc(end - first, sizeof(*boxes));
    for (size_t i = first; i < end; i++) {
        boxes[i - first] = tiles->tiles[i].box;
    }
    const bool disjoint = rf_boxes_disjoint(boxes, end - first);
    free(boxes);
    return disjoint;
}

/* The disjoint tiles of a side, family by family. */
static void side_tiles(const struct rf_plan *plan, enum rf_side side,
                       struct rf_unit_tasks *units, struct tiles *out)
{
    struct tiles all = {.tiles = NULL};
    list_tiles(plan, side, units, &all);
    for (size_t first = 0, end; first < all.n; first = end) {
        size_t at = out->n;
        for (end = first;
             end < all.n && all.tiles[end].family == all.tiles[first].family;
             end++) {
            RF_PUSH(out->tiles, out->n, out->capacity, all.tiles[end]);
        }
        if (!are_disjoint(&all, first, end)) {
            cut_apart(units, side, out, at);
            out->cut = true;
        }
    }
    free(all.tiles);
}

/* Tiles as shards, for matching only. */
static struct rf_shards tile_shards(const struct tiles *tiles,
                                    uint32_t n_families)
{
    struct rf_shards made = {.n_shards = (uint32_t)tiles->n,
                             .shards =
                                 rf_xcalloc(tiles->n, sizeof(*made.shards))};
    for (size_t i = 0; i < tiles->n; i++) {
        made.shards[i].family = tiles->tiles[i].family;
        made.shards[i].box = tiles->tiles[i].box;
    }
    rf_shards_index(&made, n_families);
    return made;
}

static void match_tiles(const struct tiles *src, const struct tiles *dst,
                        uint32_t n_families, struct rf_matches *out)
{
    struct rf_shards source = tile_shards(src, n_families);
    struct rf_shards target = tile_shards(dst, n_families);
    rf_matches_build(&source, &target, out);
    rf_shards_free(&source);
    rf_shards_free(&target);
}

static int by_box(const void *a, const void *b)
{
    const struct rf_unit_task *x = a, *y = b;
    return rf_box_compare(&x->box, &y->box);
}

/* Adds the unit tasks of one destination tile; false when they do not cover
 * it. */
static bool add_unit_tasks(const struct tiles *src, const struct tile *to,
                           const uint32_t *matches, size_t n,
                           struct rf_unit_tasks *units)
{
    uint64_t missing = rf_box_elements(&to->box);
    size_t first = units->n;
    for (size_t m = 0; m < n; m++) {
        const struct tile *from = &src->tiles[matches[m]];
        struct rf_unit_task unit = {.family = to->family,
                                    .first_src = from->first,
                                    .n_src = from->n,
                                    .first_dst = to->first,
                                    .n_dst = to->n};
        rf_box_intersect(&from->box, &to->box, &unit.box);
        missing -= rf_box_elements(&unit.box);
        RF_PUSH(units->of, units->n, units->capacity, unit);
    }
    if (n > 1) {
        qsort(units->of + first, n, sizeof(*units->of), by_box);
    }
    return missing == 0;
}

static enum rf_status
find_unit_tasks(const struct rf_plan *plan, const struct tiles *src,
                const struct tiles *dst, const struct rf_matches *matches,
                struct rf_unit_tasks *units, struct rf_err *err)
{
    for (size_t k = 0; k < dst->n; k++) {
        const struct tile *to = &dst->tiles[k];
        size_t at = matches->first[k], n = matches->first[k + 1] - at;
        if (!add_unit_tasks(src, to, n > 0 ? matches->source + at : NULL, n,
                            units)) {
            assert(units->holders != NULL); /* every shard has a holder */
            return rf_err_set(
                err, RF_ERR_INTERNAL,
                "no training rank holds a part of %s that rank %u needs",
                plan->model->families[to->family].name,
                units->holders[to->first].rank);
        }
    }
    return RF_OK;
}

enum rf_status rf_unit_tasks_build(const struct rf_plan *plan,
                                   struct rf_unit_tasks *out,
                                   struct rf_err *err)
{
    struct rf_unit_tasks made = {.of = NULL};
    struct tiles src = {.tiles = NULL}, dst = {.tiles = NULL};
    struct rf_matches own = {.first = NULL};
    const struct rf_matches *matches = &plan->priv->matches;
    side_tiles(plan, RF_TRAIN, &made, &src);
    side_tiles(plan, RF_INFER, &made, &dst);
    if (src.cut || dst.cut) {
        match_tiles(&src, &dst, plan->model->n_families, &own);
        matches = &own;
    }
    enum rf_status status =
        find_unit_tasks(plan, &src, &dst, matches, &made, err);
    rf_matches_free(&own);
    free(src.tiles);
    free(dst.tiles);
    if (status != RF_OK) {
        rf_unit_tasks_free(&made);
        return status;
    }
    *out = made;
    return RF_OK;
}

void rf_unit_tasks_free(struct rf_unit_tasks *units)
{
    free(units->of);
    free(units->holders);
    *units = (struct rf_unit_tasks){.of = NULL};
}

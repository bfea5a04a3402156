/*
 * Units from layouts. Per side, all pieces of all ranks are sorted by family
 * and box; equal boxes are one *tile* with several holders. Tiles of a side
 * that overlap are cut until none do. A unit is the intersection of a source
 * tile and a destination tile. Cost: sorting the pieces, and the units found (a
 * sweep along the dimension that is cut most).
 */
#include "planner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/box.h"

struct entry {
    uint32_t family;
    struct rf_holder holder;
};

struct tile {
    uint32_t family;
    struct rf_box box;
    size_t first; /* of its holders */
    uint32_t n;
};

struct tiles {
    struct tile *tiles;
    size_t n, capacity;
};

static int by_family_and_box(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->family != y->family) {
        return x->family < y->family ? -1 : 1;
    }
    int order = rf_box_compare(&x->holder.piece->box, &y->holder.piece->box);
    if (order != 0) {
        return order;
    }
    if (x->holder.rank != y->holder.rank) {
        return x->holder.rank < y->holder.rank ? -1 : 1;
    }
    return (x->holder.piece->offset > y->holder.piece->offset) -
           (x->holder.piece->offset < y->holder.piece->offset);
}

static int by_tile(const void *a, const void *b)
{
    const struct tile *x = a, *y = b;
    if (x->family != y->family) {
        return x->family < y->family ? -1 : 1;
    }
    return rf_box_compare(&x->box, &y->box);
}

static struct entry *all_pieces(const struct rf_plan *plan, enum rf_side side,
                                size_t *n_out)
{
    struct entry *entries;
    size_t n = 0;
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        n += rf_plan_layout(plan, side, r)->n_pieces;
    }
    entries = rf_calloc(n, sizeof(*entries));
    *n_out = 0;
    for (uint32_t r = 0; entries != NULL && r < plan->world->n_ranks; r++) {
        const struct rf_rank_layout *layout = rf_plan_layout(plan, side, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            entries[(*n_out)++] = (struct entry){
                .family = layout->pieces[p].family,
                .holder = {.rank = r, .piece = &layout->pieces[p]}};
        }
    }
    return entries;
}

/* Sorted entries to tiles. One copy a rank is enough as a source; as a
 * destination each has to be written. */
static void make_tiles(const struct entry *entries, size_t n, enum rf_side side,
                       struct rf_units *units, struct tiles *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct entry *entry = &entries[i];
        struct tile *last = out->n > 0 ? &out->tiles[out->n - 1] : NULL;
        bool same = last != NULL && last->family == entry->family &&
                    rf_box_compare(&last->box, &entry->holder.piece->box) == 0;
        if (same && side == RF_TRAIN &&
            units->holders[units->n_holders - 1].rank == entry->holder.rank) {
            continue;
        }
        RF_PUSH(units->holders, units->n_holders, units->holders_capacity,
                entry->holder);
        if (same) {
            last->n++;
        } else {
            RF_PUSH(out->tiles, out->n, out->capacity,
                    ((struct tile){.family = entry->family,
                                   .box = entry->holder.piece->box,
                                   .first = units->n_holders - 1,
                                   .n = 1}));
        }
    }
}

/* Adds what is left of `tile` outside `hole` (which lies inside it). */
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

static int by_rank(const void *a, const void *b)
{
    const struct rf_holder *x = a, *y = b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return (x->piece->offset > y->piece->offset) -
           (x->piece->offset < y->piece->offset);
}

/* The holders of both tiles, as new ones of `units`. */
static void join_holders(struct rf_units *units, enum rf_side side,
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
    qsort(units->holders + first, units->n_holders - first,
          sizeof(*units->holders), by_rank);
    size_t kept = first;
    for (size_t i = first; i < units->n_holders; i++) {
        if (side == RF_TRAIN && kept > first &&
            units->holders[kept - 1].rank == units->holders[i].rank) {
            continue;
        }
        units->holders[kept++] = units->holders[i];
    }
    units->n_holders = kept;
    into->first = first;
    into->n = (uint32_t)(kept - first);
}

/* Replaces the tiles [first, n) of one family by ones that do not overlap. */
static void cut_apart(struct rf_units *units, enum rf_side side,
                      struct tiles *tiles, size_t first)
{
    struct tiles done = {.tiles = NULL};
    for (size_t i = first; i < tiles->n; i++) {
        struct tiles left = {.tiles = NULL}; /* of the new tile */
        RF_PUSH(left.tiles, left.n, left.capacity, tiles->tiles[i]);
        /* What is left of an old tile is appended and looked at again: another
         * part of the new one may overlap it. */
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
static bool are_disjoint(const struct tiles *tiles, size_t first, size_t end,
                         bool *out)
{
    struct rf_box *boxes = rf_calloc(end - first, sizeof(*boxes));
    if (boxes == NULL) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        boxes[i - first] = tiles->tiles[i].box;
    }
    *out = rf_boxes_disjoint(boxes, end - first);
    free(boxes);
    return true;
}

static enum rf_status side_tiles(const struct rf_plan *plan, enum rf_side side,
                                 struct rf_units *units, struct tiles *out,
                                 struct rf_err *err)
{
    size_t n;
    struct entry *entries = all_pieces(plan, side, &n);
    struct tiles all = {.tiles = NULL};
    enum rf_status status = RF_OK;
    if (entries == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no memory for the pieces");
    }
    qsort(entries, n, sizeof(*entries), by_family_and_box);
    make_tiles(entries, n, side, units, &all);
    free(entries);
    for (size_t first = 0, end; first < all.n; first = end) {
        size_t at = out->n;
        bool disjoint = true;
        for (end = first;
             end < all.n && all.tiles[end].family == all.tiles[first].family;
             end++) {
            RF_PUSH(out->tiles, out->n, out->capacity, all.tiles[end]);
        }
        if (!are_disjoint(&all, first, end, &disjoint)) {
            status = rf_err_set(err, RF_ERR_NOMEM, "no memory for tiles");
            break;
        }
        if (!disjoint) {
            cut_apart(units, side, out, at);
        }
    }
    free(all.tiles);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The dimension with the most different starts. */
static uint32_t sweep_dim(const struct tile *tiles, size_t n, uint64_t *scratch)
{
    uint32_t best = 0;
    size_t most = 0;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        size_t distinct = 1;
        for (size_t i = 0; i < n; i++) {
            scratch[i] = tiles[i].box.start[d];
        }
        qsort(scratch, n, sizeof(*scratch), by_value);
        for (size_t i = 1; i < n; i++) {
            distinct += scratch[i] != scratch[i - 1];
        }
        if (distinct > most) {
            most = distinct;
            best = d;
        }
    }
    return best;
}

/* A source tile on the sweep line. */
struct swept {
    uint64_t start, end; /* end: the largest so far */
    size_t tile;
};

static int by_start(const void *a, const void *b)
{
    const struct swept *x = a, *y = b;
    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    return (x->tile > y->tile) - (x->tile < y->tile);
}

static size_t first_reaching(const struct swept *line, size_t n, uint64_t at)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (line[middle].end > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static int by_source_box(const void *a, const void *b)
{
    const struct rf_unit *x = a, *y = b;
    return rf_box_compare(&x->box, &y->box);
}

/* All units of one family. */
static enum rf_status match(const struct rf_plan *plan, const struct tile *src,
                            size_t n_src, const struct tile *dst, size_t n_dst,
                            struct rf_units *units, struct rf_err *err)
{
    struct swept *line = rf_calloc(n_src, sizeof(*line));
    uint64_t *scratch = rf_calloc(RF_MAX(n_src, n_dst), sizeof(*scratch));
    enum rf_status status = RF_OK;
    uint32_t dim;
    if (line == NULL || scratch == NULL) {
        status = rf_err_set(err, RF_ERR_NOMEM, "no memory for units");
        goto out;
    }
    dim = sweep_dim(src, n_src, scratch);
    for (size_t i = 0; i < n_src; i++) {
        line[i] = (struct swept){.start = src[i].box.start[dim],
                                 .end = src[i].box.start[dim] +
                                        src[i].box.extent[dim],
                                 .tile = i};
    }
    qsort(line, n_src, sizeof(*line), by_start);
    for (size_t i = 1; i < n_src; i++) {
        line[i].end = RF_MAX(line[i].end, line[i - 1].end);
    }
    for (size_t k = 0; k < n_dst; k++) {
        const struct rf_box *box = &dst[k].box;
        uint64_t covered = 0;
        size_t first = units->n_units;
        size_t i = first_reaching(line, n_src, box->start[dim]);
        for (; i < n_src && line[i].start < box->start[dim] + box->extent[dim];
             i++) {
            const struct tile *from = &src[line[i].tile];
            struct rf_unit unit = {.family = dst[k].family,
                                   .first_src = from->first,
                                   .n_src = from->n,
                                   .first_dst = dst[k].first,
                                   .n_dst = dst[k].n};
            if (rf_box_intersect(&from->box, box, &unit.box)) {
                covered += rf_box_elements(&unit.box);
                RF_PUSH(units->units, units->n_units, units->capacity, unit);
            }
        }
        if (units->n_units > first) {
            qsort(units->units + first, units->n_units - first,
                  sizeof(*units->units), by_source_box);
        }
        if (covered != rf_box_elements(box)) {
            status = rf_err_set(
                err, RF_ERR_INTERNAL,
                "a part of %s that rank %u needs is on no training rank",
                plan->model->families[dst[k].family].name,
                units->holders[dst[k].first].rank);
            goto out;
        }
    }
out:
    free(line);
    free(scratch);
    return status;
}

enum rf_status rf_units_build(const struct rf_plan *plan, struct rf_units *out,
                              struct rf_err *err)
{
    struct tiles src = {.tiles = NULL}, dst = {.tiles = NULL};
    *out = (struct rf_units){.units = NULL};
    enum rf_status status = side_tiles(plan, RF_TRAIN, out, &src, err);
    if (status == RF_OK) {
        status = side_tiles(plan, RF_INFER, out, &dst, err);
    }
    size_t s = 0, d = 0;
    while (status == RF_OK && d < dst.n) {
        uint32_t family = dst.tiles[d].family;
        size_t d_end = d, s_end;
        while (d_end < dst.n && dst.tiles[d_end].family == family) {
            d_end++;
        }
        while (s < src.n && src.tiles[s].family < family) {
            s++;
        }
        s_end = s;
        while (s_end < src.n && src.tiles[s_end].family == family) {
            s_end++;
        }
        status = match(plan, src.tiles + s, s_end - s, dst.tiles + d, d_end - d,
                       out, err);
        d = d_end;
    }
    free(src.tiles);
    free(dst.tiles);
    return status;
}

void rf_units_free(struct rf_units *units)
{
    free(units->units);
    free(units->holders);
    *units = (struct rf_units){.units = NULL};
}

/*
 * Shards of a side: the distinct boxes of its layouts and the sets of ranks
 * that hold them. Shards held by the same layouts share a set.
 */
#include "planner/assign/match.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "common/pattern.h"
#include "planner/layout/box.h"

/* Approximate bytes per piece or holder, in everything derived from it. */
#define BYTES_OF_EACH 256

/* One piece of one layout while shards are found. */
struct shard_piece {
    const struct rf_piece *piece;
    uint32_t layout, place; /* of the piece in its layout */
};

struct rank_place_on_node {
    uint32_t node, rank;
};

/* State for finding the shards of a side. */
struct shard_search {
    const struct rf_world *world;
    const struct rf_layouts *layouts;
    enum rf_side side;
    struct shard_piece *entries; /* all pieces of all layouts, sorted */
    size_t n_entries;
    size_t *first_entry;               /* of each shard, n_shards + 1 */
    uint32_t *set_shard;               /* a shard of each set */
    uint32_t *first_member;            /* of each layout, n_layouts + 1 */
    uint32_t *members;                 /* world ranks of the layouts */
    struct rank_place_on_node *placed; /* of the current set */
    uint32_t n_ranks;                  /* in out.ranks */
    struct rf_shards out;
};

static int compare_entries(const void *a, const void *b)
{
    const struct shard_piece *x = a, *y = b;
    int order = RF_COMPARE(x->piece->family, y->piece->family);
    order = RF_THEN_BY(order, rf_box_compare(&x->piece->box, &y->piece->box));
    return RF_THEN_BY(order, RF_COMPARE(x->layout, y->layout));
}

void rf_shards_free(struct rf_shards *shards)
{
    free(shards->shards);
    free(shards->family_first);
    free(shards->max_extent);
    free(shards->piece_first);
    free(shards->of_piece);
    free(shards->set_group);
    free(shards->groups);
    free(shards->ranks);
    *shards = (struct rf_shards){.shards = NULL};
}

/* Finds the shards in the sorted entries. */
static void find_shards(struct shard_search *making)
{
    const struct shard_piece *entries = making->entries;
    struct rf_shards *out = &making->out;
    for (size_t i = 0; i < making->n_entries; i++) {
        const struct rf_piece *piece = entries[i].piece;
        if (i == 0 || piece->family != entries[i - 1].piece->family ||
            rf_box_compare(&piece->box, &entries[i - 1].piece->box) != 0) {
            making->first_entry[out->n_shards] = i;
            out->shards[out->n_shards++] =
                (struct rf_shard){.family = piece->family, .box = piece->box};
        }
        out->of_piece[out->piece_first[entries[i].layout] + entries[i].place] =
            out->n_shards - 1;
    }
    making->first_entry[out->n_shards] = making->n_entries;
}

void rf_shards_index(struct rf_shards *shards, uint32_t n_families)
{
    uint32_t *first = rf_xcalloc((size_t)n_families + 1, sizeof(*first));
    uint64_t(*most)[RF_BOX_DIMS] = rf_xcalloc(n_families, sizeof(*most));
    for (uint32_t s = 0; s < shards->n_shards; s++) {
        const struct rf_shard *shard = &shards->shards[s];
        uint64_t *extent = most[shard->family];
        first[shard->family + 1]++;
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            extent[d] = RF_MAX(extent[d], shard->box.extent[d]);
        }
    }
    for (uint32_t f = 0; f < n_families; f++) {
        first[f + 1] += first[f];
    }
    shards->family_first = first;
    shards->max_extent = most;
}

/* The entries of a shard. */
struct span {
    const struct shard_piece *of;
    size_t n;
};

static struct span entries_of(const struct shard_search *making, uint32_t shard)
{
    const size_t *first = &making->first_entry[shard];
    return (struct span){making->entries + first[0], first[1] - first[0]};
}

static bool same_layouts(struct span a, struct span b)
{
    for (size_t i = 0; i < a.n && a.n == b.n; i++) {
        if (a.of[i].layout != b.of[i].layout) {
            return false;
        }
    }
    return a.n == b.n;
}

/* Gives shards with equal lists of layouts one set. */
static void find_sets(struct shard_search *making)
{
    struct rf_shards *out = &making->out;
    size_t buckets = 16;
    while (buckets < 2 * (size_t)out->n_shards) {
        buckets *= 2;
    }
    uint32_t *table = rf_xcalloc(buckets, sizeof(*table)); /* set + 1 */
    for (uint32_t s = 0; s < out->n_shards; s++) {
        struct span own = entries_of(making, s);
        uint64_t hash = own.n;
        for (size_t i = 0; i < own.n; i++) {
            hash = rf_mix64(hash ^ own.of[i].layout);
        }
        size_t at = hash & (buckets - 1);
        while (table[at] != 0 &&
               !same_layouts(
                   own, entries_of(making, making->set_shard[table[at] - 1]))) {
            at = (at + 1) & (buckets - 1);
        }
        if (table[at] == 0) {
            making->set_shard[out->n_sets++] = s;
            table[at] = out->n_sets;
        }
        out->shards[s].set = table[at] - 1;
    }
    free(table);
}

static int compare_placed(const void *a, const void *b)
{
    const struct rank_place_on_node *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->node, y->node),
                      RF_COMPARE(x->rank, y->rank));
}

/* Lists the world ranks of each layout. */
static void find_members(struct shard_search *making)
{
    const struct rf_layouts *layouts = making->layouts;
    size_t n = (size_t)layouts->n_layouts + 1;
    uint32_t *next = rf_xcalloc(n, sizeof(*next));
    uint32_t *first = rf_xcalloc(n, sizeof(*first));
    making->first_member = first;
    making->members = rf_xcalloc(layouts->n_indices, sizeof(*making->members));
    for (uint32_t i = 0; i < layouts->n_indices; i++) {
        first[layouts->of_index[i] + 1]++;
    }
    for (uint32_t l = 0; l < layouts->n_layouts; l++) {
        first[l + 1] += first[l];
        next[l] = first[l];
    }
    for (uint32_t i = 0; i < layouts->n_indices; i++) {
        making->members[next[layouts->of_index[i]]++] =
            making->world->rank_of[making->side][i];
    }
    free(next);
}

/* Lists the ranks that hold the entries, by node, then rank. */
static size_t place_holders(struct shard_search *making, struct span entries)
{
    size_t count = 0;
    for (size_t i = 0; i < entries.n; i++) {
        uint32_t layout = entries.of[i].layout;
        if (i > 0 && layout == entries.of[i - 1].layout) {
            continue; /* held twice by one rank: still one holder */
        }
        for (uint32_t k = making->first_member[layout];
             k < making->first_member[layout + 1]; k++) {
            uint32_t rank = making->members[k];
            making->placed[count++] = (struct rank_place_on_node){
                making->world->ranks[rank].node, rank};
        }
    }
    qsort(making->placed, count, sizeof(*making->placed), compare_placed);
    return count;
}

/* Sets one set's groups from the layouts of one of its shards. */
static void add_groups(struct shard_search *making, uint32_t set)
{
    struct rf_shards *out = &making->out;
    const struct rank_place_on_node *placed = making->placed;
    size_t count =
        place_holders(making, entries_of(making, making->set_shard[set]));
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || placed[i].node != placed[i - 1].node) {
            out->groups[out->n_groups++] = (struct rf_group){
                .set = set, .node = placed[i].node, .first = making->n_ranks};
        }
        out->groups[out->n_groups - 1].count++;
        out->ranks[making->n_ranks++] = placed[i].rank;
    }
    out->set_group[set + 1] = out->n_groups;
}

/* Whether memory suffices for `n` entries, here and in later steps: matches,
 * and the division of demand, which counts holders twice. */
static enum rf_status admit(uint64_t n, const char *what, struct rf_err *err)
{
    if (n >= UINT32_MAX / 2 - RF_WORLD_MAX_RANKS) {
        return rf_err_set(err, RF_ERR_NOMEM, "%s: more than 2^31 - 1", what);
    }
    return rf_memory_admit(n * BYTES_OF_EACH, what, err);
}

/* Lists the groups of all sets. */
static enum rf_status list_holders(struct shard_search *making,
                                   struct rf_err *err)
{
    struct rf_shards *out = &making->out;
    uint64_t total = 0;
    making->placed =
        rf_xcalloc(making->layouts->n_indices, sizeof(*making->placed));
    find_members(making);
    for (uint32_t set = 0; set < out->n_sets; set++) {
        struct span entries = entries_of(making, making->set_shard[set]);
        for (size_t i = 0; i < entries.n; i++) {
            const uint32_t *first = &making->first_member[entries.of[i].layout];
            total += first[1] - first[0];
        }
    }
    RF_TRY(admit(total, "holders of the layouts' pieces", err));
    out->ranks = rf_xcalloc(total, sizeof(*out->ranks));
    out->groups = rf_xcalloc(total, sizeof(*out->groups));
    out->set_group =
        rf_xcalloc((size_t)out->n_sets + 1, sizeof(*out->set_group));
    for (uint32_t set = 0; set < out->n_sets; set++) {
        add_groups(making, set);
    }
    return RF_OK;
}

/* Numbers the pieces of all layouts and sorts them. */
static enum rf_status list_entries(struct shard_search *making,
                                   struct rf_err *err)
{
    const struct rf_layouts *layouts = making->layouts;
    size_t *first = rf_xcalloc((size_t)layouts->n_layouts + 1, sizeof(*first));
    size_t n = 0;
    making->out.piece_first = first;
    for (uint32_t l = 0; l < layouts->n_layouts; l++) {
        first[l] = n;
        n += layouts->layouts[l].n_pieces;
    }
    first[layouts->n_layouts] = making->n_entries = n;
    RF_TRY(admit(n, "pieces of the layouts", err));
    making->entries = rf_xcalloc(n, sizeof(*making->entries));
    for (uint32_t l = 0; l < layouts->n_layouts; l++) {
        for (uint32_t p = 0; p < layouts->layouts[l].n_pieces; p++) {
            making->entries[first[l] + p] =
                (struct shard_piece){&layouts->layouts[l].pieces[p], l, p};
        }
    }
    qsort(making->entries, n, sizeof(*making->entries), compare_entries);
    return RF_OK;
}

/* Allocates as many shards and sets as there are pieces. */
static void allocate(struct shard_search *making)
{
    struct rf_shards *out = &making->out;
    size_t n = making->n_entries;
    out->shards = rf_xcalloc(n, sizeof(*out->shards));
    out->of_piece = rf_xcalloc(n, sizeof(*out->of_piece));
    making->first_entry = rf_xcalloc(n + 1, sizeof(*making->first_entry));
    making->set_shard = rf_xcalloc(n, sizeof(*making->set_shard));
}

enum rf_status rf_shards_build(const struct rf_model *model,
                               const struct rf_world *world,
                               const struct rf_layouts *layouts,
                               enum rf_side side, struct rf_shards *out,
                               struct rf_err *err)
{
    struct shard_search making = {
        .world = world, .layouts = layouts, .side = side};
    enum rf_status status = list_entries(&making, err);
    if (status == RF_OK) {
        allocate(&making);
        find_shards(&making);
        rf_shards_index(&making.out, model->n_families);
        find_sets(&making);
        status = list_holders(&making, err);
    }
    free(making.entries);
    free(making.first_entry);
    free(making.set_shard);
    free(making.first_member);
    free(making.members);
    free(making.placed);
    if (status != RF_OK) {
        rf_shards_free(&making.out);
        return status;
    }
    *out = making.out;
    return RF_OK;
}

static int compare_node(const void *node, const void *group)
{
    const struct rf_group *of = group;
    return RF_COMPARE(*(const uint32_t *)node, of->node);
}

const struct rf_group *rf_set_on_node(const struct rf_shards *shards,
                                      uint32_t set, uint32_t node)
{
    const uint32_t *first = &shards->set_group[set];
    return bsearch(&node, &shards->groups[first[0]], first[1] - first[0],
                   sizeof(*shards->groups), compare_node);
}

size_t rf_shards_piece(const struct rf_shards *shards, uint32_t layout,
                       uint32_t shard)
{
    size_t low = shards->piece_first[layout];
    size_t high = shards->piece_first[layout + 1], end = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shards->of_piece[middle] < shard) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < end && shards->of_piece[low] == shard
               ? low - shards->piece_first[layout]
               : SIZE_MAX;
}

/*
 * Shards of a side: the distinct boxes of its layouts and the sets of ranks
 * that hold them. Shards held by the same layouts share a set.
 */
#include "planner/match.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/box.h"

/* One piece of one layout while shards are found. */
struct entry {
    const struct rf_piece *piece;
    uint32_t layout, place; /* of the piece in its layout */
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->piece->family != y->piece->family) {
        return x->piece->family < y->piece->family ? -1 : 1;
    }
    int order = rf_box_compare(&x->piece->box, &y->piece->box);
    return order ? order : (x->layout > y->layout) - (x->layout < y->layout);
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

/* Shards from the sorted entries. `first_entry[s]` is set to the first entry of
 * shard s. */
static void find_shards(const struct entry *entries, size_t n,
                        struct rf_shards *out, size_t *first_entry)
{
    for (size_t i = 0; i < n; i++) {
        const struct rf_piece *piece = entries[i].piece;
        if (i == 0 || piece->family != entries[i - 1].piece->family ||
            rf_box_compare(&piece->box, &entries[i - 1].piece->box) != 0) {
            first_entry[out->n_shards] = i;
            out->shards[out->n_shards++] =
                (struct rf_shard){.family = piece->family, .box = piece->box};
        }
        out->of_piece[out->piece_first[entries[i].layout] + entries[i].place] =
            out->n_shards - 1;
    }
    first_entry[out->n_shards] = n;
}

enum rf_status rf_shards_index(struct rf_shards *shards, uint32_t n_families,
                               struct rf_err *err)
{
    uint32_t *first = rf_calloc((size_t)n_families + 1, sizeof(*first));
    uint64_t(*most)[RF_BOX_DIMS] = rf_calloc(n_families, sizeof(*most));
    if (first == NULL || most == NULL) {
        free(first);
        free(most);
        return rf_err_set(err, RF_ERR_NOMEM,
                          "no memory for the shards of %u families",
                          n_families);
    }
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
    return RF_OK;
}

static bool same_layouts(const struct entry *a, const struct entry *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i].layout != b[i].layout) {
            return false;
        }
    }
    return true;
}

/* Gives equal lists of layouts one set; `set_entry[set]` is the first shard of
 * a set. False when memory is out. */
static bool find_sets(const struct entry *entries, const size_t *first_entry,
                      struct rf_shards *out, uint32_t *set_shard)
{
    size_t buckets = 16;
    while (buckets < 2 * (size_t)out->n_shards) {
        buckets *= 2;
    }
    uint32_t *table = rf_calloc(buckets, sizeof(*table)); /* set + 1 */
    if (table == NULL) {
        return false;
    }
    for (uint32_t s = 0; s < out->n_shards; s++) {
        const struct entry *of = entries + first_entry[s];
        size_t n = first_entry[s + 1] - first_entry[s];
        uint64_t hash = n;
        for (size_t i = 0; i < n; i++) {
            hash = rf_mix64(hash ^ of[i].layout);
        }
        size_t at = hash & (buckets - 1);
        while (table[at] != 0) {
            uint32_t other = set_shard[table[at] - 1];
            if (first_entry[other + 1] - first_entry[other] == n &&
                same_layouts(of, entries + first_entry[other], n)) {
                break;
            }
            at = (at + 1) & (buckets - 1);
        }
        if (table[at] == 0) {
            set_shard[out->n_sets++] = s;
            table[at] = out->n_sets;
        }
        out->shards[s].set = table[at] - 1;
    }
    free(table);
    return true;
}

/* World ranks of each layout, ordered by node, then rank. */
struct members {
    uint32_t *first; /* n_layouts + 1 */
    uint32_t *ranks;
};

struct placed {
    uint32_t node, rank;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool find_members(const struct rf_world *world,
                         const struct rf_layouts *layouts, enum rf_side side,
                         struct members *out)
{
    uint32_t *next = rf_calloc((size_t)layouts->n_layouts + 1, sizeof(*next));
    out->first = rf_calloc((size_t)layouts->n_layouts + 1, sizeof(*next));
    out->ranks = rf_calloc(layouts->n_indices, sizeof(*next));
    if (!next || !out->first || !out->ranks) {
        free(next);
        return false;
    }
    for (uint32_t i = 0; i < layouts->n_indices; i++) {
        out->first[layouts->of_index[i] + 1]++;
    }
    for (uint32_t l = 0; l < layouts->n_layouts; l++) {
        out->first[l + 1] += out->first[l];
        next[l] = out->first[l];
    }
    for (uint32_t i = 0; i < layouts->n_indices; i++) {
        out->ranks[next[layouts->of_index[i]]++] = world->rank_of[side][i];
    }
    free(next);
    return true;
}

/* Fills in one set's groups from the layouts of one of its shards. */
static void add_groups(const struct rf_world *world,
                       const struct members *members,
                       const struct entry *entries, size_t n, uint32_t set,
                       struct placed *placed, uint32_t *n_ranks,
                       struct rf_shards *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t layout = entries[i].layout;
        if (i > 0 && layout == entries[i - 1].layout) {
            continue; /* held twice by one rank: still one holder */
        }
        for (uint32_t k = members->first[layout];
             k < members->first[layout + 1]; k++) {
            uint32_t rank = members->ranks[k];
            placed[count++] =
                (struct placed){.node = world->ranks[rank].node, .rank = rank};
        }
    }
    qsort(placed, count, sizeof(*placed), compare_placed);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || placed[i].node != placed[i - 1].node) {
            out->groups[out->n_groups++] = (struct rf_group){
                .set = set, .node = placed[i].node, .first = *n_ranks};
        }
        out->groups[out->n_groups - 1].count++;
        out->ranks[(*n_ranks)++] = placed[i].rank;
    }
    out->set_group[set + 1] = out->n_groups;
}

static enum rf_status
list_holders(const struct rf_world *world, const struct rf_layouts *layouts,
             enum rf_side side, const struct entry *entries,
             const size_t *first_entry, const uint32_t *set_shard,
             struct rf_shards *out)
{
    struct members members = {.first = NULL};
    struct placed *placed = rf_calloc(layouts->n_indices, sizeof(*placed));
    bool ok = find_members(world, layouts, side, &members) && placed != NULL;
    uint64_t total = 0;
    uint32_t n_ranks = 0;
    for (uint32_t set = 0; set < out->n_sets && ok; set++) {
        uint32_t s = set_shard[set];
        for (size_t i = first_entry[s]; i < first_entry[s + 1]; i++) {
            uint32_t layout = entries[i].layout;
            total += members.first[layout + 1] - members.first[layout];
        }
    }
    ok = ok && total < UINT32_MAX;
    if (ok) {
        out->ranks = rf_calloc(total, sizeof(*out->ranks));
        out->groups = rf_calloc(total, sizeof(*out->groups));
        out->set_group =
            rf_calloc((size_t)out->n_sets + 1, sizeof(*out->set_group));
        ok = out->ranks && out->groups && out->set_group;
    }
    for (uint32_t set = 0; set < out->n_sets && ok; set++) {
        uint32_t s = set_shard[set];
        add_groups(world, &members, entries + first_entry[s],
                   first_entry[s + 1] - first_entry[s], set, placed, &n_ranks,
                   out);
    }
    free(members.first);
    free(members.ranks);
    free(placed);
    return ok ? RF_OK : RF_ERR_NOMEM;
}

/* All pieces of all layouts, sorted; NULL when memory is out. */
static struct entry *list_entries(const struct rf_layouts *layouts,
                                  struct rf_shards *out)
{
    struct entry *entries;
    size_t n = 0;
    for (uint32_t l = 0; l < layouts->n_layouts; l++) {
        out->piece_first[l] = n;
        n += layouts->layouts[l].n_pieces;
    }
    out->piece_first[layouts->n_layouts] = n;
    entries = n < UINT32_MAX ? rf_calloc(n, sizeof(*entries)) : NULL;
    for (uint32_t l = 0; l < layouts->n_layouts && entries != NULL; l++) {
        for (uint32_t p = 0; p < layouts->layouts[l].n_pieces; p++) {
            entries[out->piece_first[l] + p] =
                (struct entry){.piece = &layouts->layouts[l].pieces[p],
                               .layout = l,
                               .place = p};
        }
    }
    if (entries != NULL) {
        qsort(entries, n, sizeof(*entries), compare_entries);
    }
    return entries;
}

enum rf_status rf_shards_build(const struct rf_model *model,
                               const struct rf_world *world,
                               const struct rf_layouts *layouts,
                               enum rf_side side, struct rf_shards *out,
                               struct rf_err *err)
{
    struct rf_shards made = {.n_shards = 0};
    struct entry *entries = NULL;
    size_t *first_entry = NULL;
    uint32_t *set_shard = NULL;
    enum rf_status status = RF_ERR_NOMEM;
    made.piece_first =
        rf_calloc((size_t)layouts->n_layouts + 1, sizeof(*made.piece_first));
    if (made.piece_first == NULL) {
        goto out;
    }
    entries = list_entries(layouts, &made);
    size_t n = made.piece_first[layouts->n_layouts];
    made.shards = rf_calloc(n, sizeof(*made.shards));
    made.of_piece = rf_calloc(n, sizeof(*made.of_piece));
    first_entry = rf_calloc(n + 1, sizeof(*first_entry));
    set_shard = rf_calloc(n, sizeof(*set_shard));
    if (!entries || !made.shards || !made.of_piece || !first_entry ||
        !set_shard) {
        goto out;
    }
    find_shards(entries, n, &made, first_entry);
    status = rf_shards_index(&made, model->n_families, err);
    if (status == RF_OK) {
        status = find_sets(entries, first_entry, &made, set_shard)
                     ? list_holders(world, layouts, side, entries, first_entry,
                                    set_shard, &made)
                     : RF_ERR_NOMEM;
    }
out:
    free(entries);
    free(first_entry);
    free(set_shard);
    if (status != RF_OK) {
        rf_shards_free(&made);
        return rf_err_set(err, status, "no memory for the shards of %u ranks",
                          layouts->n_indices);
    }
    *out = made;
    return RF_OK;
}

const struct rf_group *rf_set_on_node(const struct rf_shards *shards,
                                      uint32_t set, uint32_t node)
{
    uint32_t low = shards->set_group[set], high = shards->set_group[set + 1];
    uint32_t end = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (shards->groups[middle].node < node) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < end && shards->groups[low].node == node ? &shards->groups[low]
                                                         : NULL;
}

size_t rf_layout_piece(const struct rf_shards *shards, uint32_t layout,
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

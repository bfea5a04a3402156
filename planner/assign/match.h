/*
 * Shards and matches. A shard is a distinct box of a family held by at least
 * one rank of a side; ranks that hold the same boxes form a holder set.
 * Matching works on shards, so its cost does not grow with the number of
 * replicas.
 */
#ifndef RF_PLANNER_ASSIGN_MATCH_H
#define RF_PLANNER_ASSIGN_MATCH_H

#include "planner/layout/layout.h"

struct rf_shard {
    uint32_t family;
    uint32_t set; /* its holders */
    struct rf_box box;
};

/* A holder set's ranks on one node: ranks[first … first + count). */
struct rf_group {
    uint32_t set, node;
    uint32_t first, count;
};

struct rf_shards {
    struct rf_shard *shards; /* by family, then box */
    uint32_t n_shards;
    uint32_t *family_first; /* n_families + 1: shards of each family */
    uint64_t (*max_extent)[RF_BOX_DIMS]; /* per family, over its shards */
    size_t *piece_first;                 /* n_layouts + 1 */
    uint32_t *of_piece; /* shard of piece p of layout l at piece_first[l] + p;
                           ascending within a layout */
    uint32_t n_sets;
    uint32_t *set_group; /* n_sets + 1: groups of each set, by node */
    struct rf_group *groups;
    uint32_t n_groups;
    uint32_t *ranks; /* world ranks of the groups, ascending in each */
};

/* RF_ERR_NOMEM: too little memory for the shards and what later steps derive
 * from them. */
enum rf_status rf_shards_build(const struct rf_model *model,
                               const struct rf_world *world,
                               const struct rf_layouts *layouts,
                               enum rf_side side, struct rf_shards *out,
                               struct rf_err *err) RF_MUST_CHECK;
void rf_shards_free(struct rf_shards *shards);

/* Sets family_first and max_extent, which is all that matching needs beside the
 * sorted shards. */
void rf_shards_index(struct rf_shards *shards, uint32_t n_families);

/* The group of a set on a node; NULL: no member there. */
const struct rf_group *rf_set_on_node(const struct rf_shards *shards,
                                      uint32_t set, uint32_t node);

/* The piece of layout `layout` that holds `shard`; SIZE_MAX: none. */
size_t rf_shards_piece(const struct rf_shards *shards, uint32_t layout,
                       uint32_t shard);

/* For every shard of the destination side, the source shards that share
 * elements with it, ascending. */
struct rf_matches {
    size_t *first; /* n_dst_shards + 1 */
    uint32_t *source;
    size_t n;
};

void rf_matches_build(const struct rf_shards *source,
                      const struct rf_shards *destination,
                      struct rf_matches *out);
void rf_matches_free(struct rf_matches *matches);

#endif

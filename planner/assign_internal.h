/* Private to assign*.c. */
#ifndef RF_PLANNER_ASSIGN_INTERNAL_H
#define RF_PLANNER_ASSIGN_INTERNAL_H

#include "planner/assign.h"

struct rf_assign {
    struct rf_assign_input in;
    uint32_t *own_source; /* per rank: the source rank on its slot, or none */
    uint32_t *first_rank; /* per set: its lowest rank */
    bool *has_sources;    /* per node */
    /* demand */
    uint64_t *near, *far; /* per group, per set */
    uint64_t *forced;     /* per rank: to another rank on its slot */
    uint64_t *remote;     /* per set: from any other rank */
    /* shares; the lines as every cursor starts with them */
    bool by_node;
    struct rf_line *near_lines, *far_lines;
    struct rf_pool near_pool, far_pool;
    uint64_t *rank_slack; /* what a rank may take beyond a share's end */
    uint64_t node_slack;
};

/* A division of demand among ranks: per group, per set and per rank. Results
 * lie at the members' positions in shards->ranks. */
struct rf_division {
    const uint64_t *near, *far, *forced; /* NULL: none */
    uint64_t *near_amount, *far_amount;
    uint64_t *load;
    uint64_t max_load;
};

/* Members of all sets together. */
uint32_t rf_assign_positions(const struct rf_shards *shards);

/* Divides the demand of `division` among the ranks. Freed with
 * rf_division_free(), also after failure. */
enum rf_status rf_assign_divide_ranks(const struct rf_assign *a,
                                      struct rf_division *division,
                                      struct rf_err *err) RF_MUST_CHECK;
void rf_division_free(struct rf_division *division);

/* Divides far demand among nodes: `share` per group. */
enum rf_status rf_assign_divide_nodes(const struct rf_assign *a,
                                      uint64_t *share, uint64_t *max_load,
                                      struct rf_err *err) RF_MUST_CHECK;

#endif

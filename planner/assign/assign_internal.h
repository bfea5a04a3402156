/* Private to assign*.c. */
#ifndef RF_PLANNER_ASSIGN_ASSIGN_INTERNAL_H
#define RF_PLANNER_ASSIGN_ASSIGN_INTERNAL_H

#include "planner/assign/assign.h"

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
    struct rf_turn_line *near_lines, *far_lines;
    struct rf_pool near_pool, far_pool;
    /* what a rank may take beyond a share's end; far_slack only where far
     * demand is divided by itself */
    uint64_t *rank_slack, *far_slack;
    uint64_t node_slack;
};

/* A division of demand among ranks: per group, per set and per rank. Results
 * lie at the members' positions in shards->ranks. */
struct rf_demand_division {
    const uint64_t *near, *far, *forced; /* NULL: none */
    const uint32_t *weight;              /* of ranks, or NULL */
    uint64_t *near_amount, *far_amount;
    uint64_t *load;
    uint64_t max_load; /* of the rank with the largest load / weight */
    uint32_t max_weight;
};

/* Members of all sets together. */
uint32_t rf_assign_positions(const struct rf_shards *shards);

/* Divides the demand of `division` among the ranks. Freed with
 * rf_demand_division_free(), also after failure. */
enum rf_status rf_assign_divide_ranks(const struct rf_assign *a,
                                      struct rf_demand_division *division,
                                      struct rf_err *err) RF_MUST_CHECK;
void rf_demand_division_free(struct rf_demand_division *division);

/* Divides far demand among nodes: `share` per group. */
enum rf_status rf_assign_divide_nodes(const struct rf_assign *a,
                                      uint64_t *share, uint64_t *max_load,
                                      struct rf_err *err) RF_MUST_CHECK;

/* Far demand divided by what NICs can send. */
struct rf_nic_division {
    uint64_t *amount; /* at the members' positions */
    uint64_t *load;   /* of each NIC */
    uint64_t max_load;
    uint32_t max_weight; /* of the NIC with the largest load / weight */
};

/* Such that the busiest NIC is busy as briefly as possible, and if that does
 * not prolong it by more than 0.4 %, the busiest rank, too. Freed with
 * rf_nic_division_free(), also after failure. */
enum rf_status rf_assign_divide_nics(const struct rf_assign *a,
                                     struct rf_nic_division *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_nic_division_free(struct rf_nic_division *division);

#endif

/* Dividing demand among possible senders. Private to assign.c. */
#ifndef RF_PLANNER_ASSIGN_ASSIGN_DIVIDE_H
#define RF_PLANNER_ASSIGN_ASSIGN_DIVIDE_H

#include "planner/assign/assign_input.h"

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
 * rf_demand_division_free(). */
void rf_assign_divide_ranks(const struct rf_assign_input *in,
                            struct rf_demand_division *division);
void rf_demand_division_free(struct rf_demand_division *division);

/* Divides far demand, per set, among nodes: `share` per group. */
void rf_assign_divide_nodes(const struct rf_assign_input *in,
                            const uint64_t *far, uint64_t *share,
                            uint64_t *max_load);

/* Far demand divided by the capacity of NICs. */
struct rf_nic_division {
    uint64_t *amount; /* at the members' positions */
    uint64_t *load;   /* of each NIC */
    uint64_t max_load;
    uint32_t max_weight; /* of the NIC with the largest load / weight */
};

/* Minimises the time of the busiest NIC, then, if that adds no more than 0.4 %
 * to it, that of the busiest rank. Freed with rf_nic_division_free(). */
void rf_assign_divide_nics(const struct rf_assign_input *in,
                           const uint64_t *far, struct rf_nic_division *out);
void rf_nic_division_free(struct rf_nic_division *division);

#endif

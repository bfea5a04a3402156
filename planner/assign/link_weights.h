/*
 * Relative capacity of each rank and node towards other nodes, from the weights
 * of a scenario's links. Integers, so the same everywhere.
 */
#ifndef RF_PLANNER_ASSIGN_LINK_WEIGHTS_H
#define RF_PLANNER_ASSIGN_LINK_WEIGHTS_H

#include "planner/scenario/world.h"

/* All arrays NULL: equal weights. Otherwise weights are above 0 and at most
 * RF_FAIR_SHARES_WEIGHT_MAX. */
struct rf_link_weights {
    uint32_t *rank;   /* its part of the NIC, which ranks share by slot */
    uint32_t *node;   /* sum of its NICs that training ranks use */
    uint32_t *nic;    /* of all nodes, see nic_of */
    uint32_t *nic_of; /* by rank: index in `nic` */
    uint32_t n_nics;
};

/* The weights of a scenario with balance time; empty for any other.
 * RF_ERR_CONFIG: no links have been chosen for the balance. Freed with
 * rf_link_weights_free(). */
enum rf_status rf_link_weights_build(const struct rf_world *world,
                                     const struct rf_spec *spec,
                                     struct rf_link_weights *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_link_weights_free(struct rf_link_weights *weights);

/* Whether one load, relative to its weight, is less than another. `of` is one
 * of the arrays above, or NULL. */
bool rf_link_weights_less(const uint32_t *of, uint32_t a, uint64_t load_a,
                          uint32_t b, uint64_t load_b);

#endif

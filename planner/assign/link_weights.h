/*
 * What each rank and node can send to other nodes in relation to the others,
 * from the weights of a scenario's links. Integers, so the same everywhere.
 */
#ifndef RF_PLANNER_ASSIGN_LINK_WEIGHTS_H
#define RF_PLANNER_ASSIGN_LINK_WEIGHTS_H

#include "planner/scenario/world.h"

/* NULL in all: all alike. Otherwise weights are above 0 and at most
 * RF_FAIR_SHARES_WEIGHT_MAX. */
struct rf_link_weights {
    uint32_t *rank;   /* its part of the NIC that it shares by slot */
    uint32_t *node;   /* all its NICs that training ranks use */
    uint32_t *nic;    /* of all nodes, see nic_of */
    uint32_t *nic_of; /* by rank: index in `nic` */
    uint32_t n_nics;
};

/* Those of a scenario with balance time, nothing with any other.
 * RF_ERR_CONFIG: no links have been chosen for the balance.
 * rf_link_weights_free() ends them. */
enum rf_status rf_link_weights_build(const struct rf_world *world,
                                     const struct rf_spec *spec,
                                     struct rf_link_weights *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_link_weights_free(struct rf_link_weights *weights);

/* Whether one load, in relation to its weight, is less than another. `of` is
 * one of the arrays above, or NULL. */
bool rf_link_weights_less(const uint32_t *of, uint32_t a, uint64_t load_a,
                          uint32_t b, uint64_t load_b);

#endif

/*
 * Fair shares: divides demands among the suppliers that can meet them so that
 * the most loaded supplier has as little as possible, then the next, and so on
 * (the lexicographically least sorted loads). A load counts relative to its
 * supplier's weight. Exact up to one byte per supplier; integer arithmetic
 * only, so the result is the same everywhere.
 */
#ifndef RF_PLANNER_ASSIGN_FAIR_SHARES_H
#define RF_PLANNER_ASSIGN_FAIR_SHARES_H

#include <stdint.h>

#define RF_FAIR_SHARES_WEIGHT_MAX (UINT32_C(1) << 20)

struct rf_fair_shares {
    uint32_t n_demands, n_suppliers;
    const uint64_t *demand; /* bytes */
    const uint32_t *first;  /* n_demands + 1: edges of each demand */
    const uint32_t *to;     /* supplier of each edge; no duplicates in one
                               demand; demands above 0 have an edge */
    const uint32_t *weight; /* per supplier, 1 to RF_FAIR_SHARES_WEIGHT_MAX;
                               NULL: 1 each */
    uint64_t *amount;       /* out, per edge */
    uint64_t *load;         /* out, per supplier */
    /* out: of the supplier with the largest load / weight */
    uint64_t max_load;
    uint32_t max_weight; /* 1 without weights */
};

/* Fills the outputs, in the caller's arrays. The demands sum to less than 2^63,
 * the weights to less than 2^43. */
void rf_fair_shares_solve(struct rf_fair_shares *shares);

/* Sets max_load and max_weight from load and weight alone. */
void rf_fair_shares_find_most(struct rf_fair_shares *shares);

/* The load of a supplier of weight `to` that equals `load` at weight `from`:
 * load · to / from, rounded down, at most UINT64_MAX. */
uint64_t rf_fair_shares_scale(uint64_t load, uint32_t from, uint32_t to);

#endif

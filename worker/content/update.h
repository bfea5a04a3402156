/*
 * The content of weights that training steps update a little: the pattern of
 * iteration 0 (common/pattern.h), with some elements in a second *state*.
 * Whether element e of a tensor is in it before refit r has a closed form:
 *
 *     c = floor(r · min(1, every · density) · 2^16)  changes so far, in 2^16
 *     second = (c >> 16 & 1) ^ (turn(e) < c mod 2^16)
 *
 * turn() permutes each 2^16 consecutive elements, so the steps before a refit
 * change exactly their share of them, and none twice. An element in the second
 * state is some ulps further from zero than in the first: 1, or as many as
 * RF_UPDATE_DISTANCES draws. Rows, blocks and experts change as one: e is then
 * their number.
 */
#ifndef RF_WORKER_CONTENT_UPDATE_H
#define RF_WORKER_CONTENT_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/plan/plan.h"

/* One tensor after some steps. */
struct rf_update {
    uint64_t key;           /* of the tensor */
    uint64_t unit_elements; /* that change together; 0: each by itself */
    uint64_t first_unit;    /* number of the tensor's first */
    uint32_t turns;         /* c mod 2^16 */
    bool second;            /* c >> 16 & 1 */
    bool adam;              /* distances as of Adam's steps */
};

/* The tensor of `layer_index` and `expert` of a family after the steps before
 * `iteration`; UINT64_MAX: before any. */
struct rf_update rf_update_of(const struct rf_plan *plan, uint32_t family,
                              uint32_t layer_index, uint32_t expert,
                              uint64_t iteration);

/* Moves those of `count` elements of `width` bytes, from element `first` of the
 * tensor on, to their second state that are in it. */
void rf_update_apply(const struct rf_update *update, uint64_t first,
                     uint64_t count, uint32_t width, void *elements);

/* Of a group of 2^16 units. */
struct rf_update_keys {
    uint16_t turn, far;
};

#define RF_UPDATE_RUN 64u

/* Implementations, fastest first; ends with a NULL name. */
struct rf_update_way {
    const char *name;
    bool (*have)(void); /* whether this processor supports it */
    /* How far a run of units of a group, from `first` on, are from their first
     * state. */
    void (*moves)(const struct rf_update *update, struct rf_update_keys keys,
                  uint16_t first, uint16_t moves[RF_UPDATE_RUN]);
};
extern const struct rf_update_way rf_update_ways[];

#endif

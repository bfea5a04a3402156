/*
 * Units: the boxes that a refit has to move, each with every rank that holds it
 * on the training side and every rank that needs it on the inference side. The
 * units of a plan are disjoint and together are everything the inference side
 * needs, so a strategy may choose sources and paths for each on its own.
 *
 * They come from the plan's shards and their matches, not from its transfers;
 * shards that overlap only partly are cut into parts that do not.
 */
#ifndef RF_PLANNER_UNIT_H
#define RF_PLANNER_UNIT_H

#include "planner/plan.h"

/* A rank that has a box, and where. */
struct rf_holder {
    uint32_t rank;
    const struct rf_piece *piece; /* borrowed from the plan */
};

struct rf_unit {
    uint32_t family;
    struct rf_box box;
    size_t first_src, first_dst; /* positions in rf_units.holders */
    uint32_t n_src, n_dst;       /* both ≥ 1; ascending by rank */
};

struct rf_units {
    struct rf_unit *units; /* by family, destination box, source box */
    size_t n_units, capacity;
    struct rf_holder *holders;
    size_t n_holders, holders_capacity;
};

/* Finds the units of a plan; freed with rf_units_free(), also after failure. */
enum rf_status rf_units_build(const struct rf_plan *plan, struct rf_units *out,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_units_free(struct rf_units *units);

/*
 * How to cut a box into at most `parts` boxes of nearly equal size: along which
 * dimension, the outermost that divides evenly, else the one that divides best,
 * and into how many (rf_box_part() makes them).
 */
struct rf_split {
    uint32_t dim, parts;
};
struct rf_split rf_box_split(const struct rf_box *box, uint32_t parts);
struct rf_box rf_box_part(const struct rf_box *box,
                          const struct rf_split *split, uint32_t index);

/* Cuts a box into chunks of at most `max_elements` each (never less than one
 * element), outer dimensions first, in memory order. */
struct rf_chunking {
    uint32_t dim;   /* outer dimensions are cut to single indices */
    uint64_t step;  /* indices of `dim` in a chunk */
    uint64_t count; /* chunks */
};
struct rf_chunking rf_box_chunking(const struct rf_box *box,
                                   uint64_t max_elements);
struct rf_box rf_box_chunk(const struct rf_box *box,
                           const struct rf_chunking *chunking, uint64_t index);

#endif

/* Boxes of families, and their places in a rank's arena. */
#ifndef RF_PLANNER_LAYOUT_PIECE_H
#define RF_PLANNER_LAYOUT_PIECE_H

#include <stddef.h>
#include <stdint.h>

#include "planner/model/model.h"

/* Parameters start at multiples of this in an arena. */
#define RF_PARAM_ALIGN 256

struct rf_box {
    uint64_t start[RF_BOX_DIMS];
    uint64_t extent[RF_BOX_DIMS]; /* 1 in dimensions the family lacks */
};

/* A box of a family in a rank's arena: element (l, e, i, …) of the box
 * (relative to its start) is at offset + Σ index·stride. */
struct rf_piece {
    uint32_t family;
    uint32_t param; /* index of the rank's parameter, for listings */
    struct rf_box box;
    uint64_t offset;              /* bytes */
    uint64_t stride[RF_BOX_DIMS]; /* bytes */
};

/* One contiguous row-major parameter as in the framework, once per layer and
 * expert of the rank; for listings and memory figures. */
struct rf_param {
    char name[96];   /* with {L} and {E} where repeated */
    uint64_t bytes;  /* of one instance, padding rows included */
    uint64_t offset; /* of the first instance in the arena; the next ones follow
                        at distances of `bytes` rounded up to RF_PARAM_ALIGN */
    uint32_t n_instances;
};

struct rf_rank_layout {
    struct rf_piece *pieces; /* by family, then box */
    size_t n_pieces;
    struct rf_param *params;
    size_t n_params;
    uint64_t arena_bytes;
};

#endif

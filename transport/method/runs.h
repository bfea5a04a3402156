/*
 * Walks a piece of memory as contiguous runs: elements that are contiguous both
 * in one logical tensor (row-major) and in memory. Pure.
 */
#ifndef RF_TRANSPORT_METHOD_RUNS_H
#define RF_TRANSPORT_METHOD_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/plan/plan.h"

struct rf_stretch {
    uint32_t layer, expert; /* indices inside the family */
    uint64_t element;       /* first one, row-major in the logical tensor */
    uint64_t elements;
    uint64_t offset; /* bytes from element 0 of the piece */
};

struct rf_run_walk {
    struct rf_stretch next;
    uint64_t left; /* runs not handed out yet */
    uint32_t n_dims;
    struct {
        uint64_t at, count;
        uint64_t stride;   /* bytes in memory */
        uint64_t elements; /* step in the logical tensor */
        uint32_t dim;
    } dims[RF_BOX_DIMS]; /* innermost first */
};

/* Starts a walk over `box` of `family` laid out with `stride` (bytes) and
 * elements of `item_bytes`. */
void rf_runs_init(struct rf_run_walk *walk, const struct rf_family *family,
                  const struct rf_box *box, const uint64_t stride[RF_BOX_DIMS],
                  uint32_t item_bytes);

/* The next run, false at the end. Runs ascend in (layer, expert, element). */
bool rf_runs_next(struct rf_run_walk *walk, struct rf_stretch *out);

/* Indices of element number `element` of one tensor of `family`. */
void rf_runs_index(const struct rf_family *family, uint64_t element,
                   uint64_t index[RF_TENSOR_MAX_DIMS]);

/* A range of bytes of an arena. */
struct rf_byte_span {
    uint64_t start, end;
};

/*
 * The bytes of an arena of `arena_bytes` that no piece of its layout covers
 * (alignment and padded rows), ascending and disjoint. `families` have the
 * arena's dtypes. The caller frees *out. RF_ERR_NOMEM, or RF_ERR_INTERNAL when a
 * piece lies outside the arena.
 */
enum rf_status rf_runs_padding(const struct rf_rank_layout *layout,
                               const struct rf_family *families,
                               uint64_t arena_bytes, struct rf_byte_span **out,
                               size_t *n_out, struct rf_err *err) RF_MUST_CHECK;

#endif

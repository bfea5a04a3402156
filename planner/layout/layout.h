/*
 * Layouts: the parts of tensors that a rank of a mesh holds, and their places.
 *
 * A layout is a list of *parameters*. A parameter concatenates sections (parts
 * of one or more families) along the first dimension, contiguous and row-major,
 * once per layer and expert of the rank. The arena is parameter-major: all
 * instances of a parameter follow each other at a constant distance, so that
 * one piece covers all layers of a stage and all experts of a rank. Ranks with
 * the same contents share one layout.
 */
#ifndef RF_PLANNER_LAYOUT_LAYOUT_H
#define RF_PLANNER_LAYOUT_LAYOUT_H

#include "planner/layout/piece.h"
#include "planner/scenario/world.h"

/* All layouts of one side. */
struct rf_layouts {
    struct rf_rank_layout *layouts;
    uint32_t n_layouts;
    uint32_t *of_index; /* rf_rank.index → layout */
    uint32_t n_indices;
};

/* Makes the layouts of training or of all pools, with pieces sorted by family,
 * then box. Free `out` with rf_layouts_free(). */
enum rf_status rf_layouts_build(const struct rf_model *model,
                                const struct rf_world *world,
                                const struct rf_spec *spec, enum rf_side side,
                                struct rf_layouts *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_layouts_free(struct rf_layouts *layouts);

/* For each family, the first of those that engines (layouts vllm and sglang)
 * put into one parameter with it; itself, if it has a parameter of its own. */
void rf_layout_joined(const struct rf_model *model, uint32_t *first);

/* Sorts the pieces of a rank by family, then box. */
void rf_layout_sort(struct rf_rank_layout *layout);

/* The properties of a layout, see layout_rules.h. */
const struct rf_layout_ops *rf_layout_ops_of(enum rf_layout_kind kind);

#endif

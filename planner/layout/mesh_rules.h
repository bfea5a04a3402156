/* The rules that a mesh and its model must meet, and placing by them. */
#ifndef RF_PLANNER_LAYOUT_MESH_RULES_H
#define RF_PLANNER_LAYOUT_MESH_RULES_H

#include "planner/scenario/world.h"

/* Heads, matrices, vocabulary, experts and layers of the model against the
 * sizes of one side. RF_ERR_CONFIG with the rule and the nearest sizes that
 * work. */
enum rf_status rf_mesh_rules_check_side(const struct rf_spec *spec,
                                        enum rf_side side,
                                        const struct rf_model *model,
                                        struct rf_err *err) RF_MUST_CHECK;

/* Whether what a refit would have to convert can be converted. */
enum rf_status rf_mesh_rules_check_dtypes(const struct rf_spec *spec,
                                          const struct rf_model *model,
                                          struct rf_err *err) RF_MUST_CHECK;

/* rf_world_place() for a model that is known: rules that need it are checked
 * first (heads % TP, layers % PP). Impossible combinations are RF_ERR_CONFIG
 * with the rule and the nearest sizes that work. */
enum rf_status rf_mesh_rules_place(struct rf_spec *spec,
                                   const struct rf_model *model,
                                   const uint32_t *slots, uint32_t n_nodes,
                                   struct rf_world **out,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif

/* The rules for a mesh and its model, and placement by them. */
#ifndef RF_PLANNER_LAYOUT_MESH_RULES_H
#define RF_PLANNER_LAYOUT_MESH_RULES_H

#include "planner/scenario/world.h"

/* Checks the model's heads, matrices, vocabulary, experts and layers against
 * the sizes of one side. RF_ERR_CONFIG names the rule and the nearest sizes
 * that work. */
enum rf_status rf_mesh_rules_check_side(const struct rf_spec *spec,
                                        enum rf_side side,
                                        const struct rf_model *model,
                                        struct rf_err *err) RF_MUST_CHECK;

/* rf_world_place() for a known model: first checks the rules that need the
 * model (heads % TP, layers % PP). RF_ERR_CONFIG names the rule of an
 * impossible combination and the nearest sizes that work. */
enum rf_status rf_mesh_rules_place(struct rf_spec *spec,
                                   const struct rf_model *model,
                                   const uint32_t *slots, uint32_t n_nodes,
                                   struct rf_world **out,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif

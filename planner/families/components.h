/*
 * Parts of a model that a refit may leave out: the layers for multi-token
 * prediction (the model's "mtp") and the vision tower ("vision"). A table lists
 * their tensors under the same names (docs/MODELS.md). Private to the model
 * readers.
 */
#ifndef RF_PLANNER_FAMILIES_COMPONENTS_H
#define RF_PLANNER_FAMILIES_COMPONENTS_H

#include "planner/families/table.h"

struct rf_values;

/* Reads "mtp" and "vision" of a model; an absent one is left out. */
enum rf_status rf_components_read(const struct rf_jnode *model,
                                  struct rf_components *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Adds both to the JSON Schema of a model. */
void rf_components_add_schemas(json_t *model);

/* Fails if a component is to be moved: only a table knows its tensors. */
enum rf_status rf_components_need_table(const struct rf_components *components,
                                        struct rf_err *err) RF_MUST_CHECK;

/* Adds rules to a finished table: for the tensors of components to be moved,
 * and to skip those of the others. Fails if the table lacks a component to be
 * moved. */
enum rf_status rf_components_add(struct rf_family_table *table,
                                 const struct rf_components *components,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Checks that the config has the components to be moved. */
enum rf_status rf_components_check(const struct rf_family_table *table,
                                   struct rf_values *values,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The same check on tensors, after all are matched: each component to be moved
 * needs one. */
enum rf_status rf_components_check_matched(const struct rf_family_table *table,
                                           struct rf_err *err) RF_MUST_CHECK;

/* Number of the config's modules for multi-token prediction that the model
 * leaves out. */
uint64_t rf_components_left_out(const struct rf_family_table *table,
                                struct rf_values *values);

#endif

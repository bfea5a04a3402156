/*
 * Parts of a model that a refit may leave out: the layers for multi-token
 * prediction ("mtp" of a model) and the vision tower ("vision"). A table says
 * under the same names which tensors they are (docs/MODELS.md). Private to the
 * model readers.
 */
#ifndef RF_PLANNER_FAMILIES_COMPONENTS_H
#define RF_PLANNER_FAMILIES_COMPONENTS_H

#include "planner/families/table.h"

struct rf_values;

/* "mtp" and "vision" of a model; absent, both are left out. */
enum rf_status rf_components_read(const struct rf_jnode *model,
                                  struct rf_components *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Fails if something is to be moved: there is no table to say what it is. */
enum rf_status rf_components_need_table(const struct rf_components *components,
                                        struct rf_err *err) RF_MUST_CHECK;

/* Adds the rules of what is moved to a finished table, and rules that skip what
 * is not. Fails where something is to be moved that the table does not have. */
enum rf_status rf_components_add(struct rf_family_table *table,
                                 const struct rf_components *components,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Checks that the config has what is to be moved. */
enum rf_status rf_components_check(const struct rf_family_table *table,
                                   struct rf_values *values,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The same of tensors, once all have been matched: some must be of it. */
enum rf_status rf_components_check_matched(const struct rf_family_table *table,
                                           struct rf_err *err) RF_MUST_CHECK;

/* How many modules for multi-token prediction the config has and the model
 * leaves out. */
uint64_t rf_components_left_out(const struct rf_family_table *table,
                                struct rf_values *values);

#endif

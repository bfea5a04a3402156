/*
 * Tables of the tensors in models of a type and their roles: those of
 * planner/families/, and a user's own ("rules" of a model). The format is in
 * docs/MODELS.md. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_FAMILY_TABLE_H
#define RF_PLANNER_FAMILIES_FAMILY_TABLE_H

#include "planner/families/table.h"

/* The most rules in a list: each tensor is compared with each rule. */
#define RF_MODEL_MAX_RULES 4096

struct rf_values;

/*
 * Opens the table of a model type, which may be NULL. `rules`, the model's own
 * "rules", takes precedence: an object is a complete table (with "like" to
 * start from another), a list replaces and adds tensors of the model type's. Of
 * the optional parts it has those of `components`. *out is NULL when there are
 * neither rules nor a table of that type. The caller destroys it; it borrows
 * from `rules` and `components`.
 */
enum rf_status rf_family_table_open(const char *model_type,
                                    const struct rf_jnode *rules,
                                    const struct rf_components *components,
                                    struct rf_family_table **out,
                                    struct rf_err *err) RF_MUST_CHECK;
/* The built-in table with that "name" or for that model type. */
enum rf_status rf_family_table_named(const char *name,
                                     struct rf_family_table **out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_family_table_destroy(struct rf_family_table *table); /* NULL is fine */

/* Fails with the known model types and a suggestion for `model_type`. */
enum rf_status rf_family_table_unknown(const struct rf_jnode *node,
                                       const char *model_type,
                                       struct rf_err *err);

/* Marks every name in the table's expressions as used by `values`, and checks
 * that all expressions are well formed. */
enum rf_status rf_family_table_mention(const struct rf_family_table *table,
                                       struct rf_values *values,
                                       struct rf_err *err) RF_MUST_CHECK;

#endif

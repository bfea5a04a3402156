/* Reading a rule of a table (docs/MODELS.md). Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_RULE_READ_H
#define RF_PLANNER_FAMILIES_RULE_READ_H

#include "planner/families/table.h"

/* Reads one rule of the table named `table`. The caller frees its name. */
enum rf_status rf_rule_read(const struct rf_jnode *node, const char *table,
                            struct rf_rule *out,
                            struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Rules at work: which one a tensor's name follows, and what it makes of a
 * family. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_FAMILY_RULES_H
#define RF_PLANNER_FAMILIES_FAMILY_RULES_H

#include "planner/families/model_values.h"
#include "planner/families/table.h"

/* A number in a tensor's name. */
struct rf_name_number {
    int64_t number; /* -1: none */
    const char *at; /* where its digits are, NULL: written {L} or {E} */
    size_t length;
};

/*
 * The rule that a tensor's name follows; *out NULL: none. `*` stands for any
 * characters, {L} and {E} for a number or themselves; a name without `*` goes
 * before one with. Two that fit equally well are an error that names both. Of
 * rules of the same name, which have conditions, the first whose conditions
 * hold is taken.
 */
enum rf_status rf_rule_match(struct rf_family_table *table,
                             struct rf_values *values, const char *name,
                             uint32_t ndim, struct rf_rule **out,
                             struct rf_name_number *layer,
                             struct rf_name_number *expert,
                             struct rf_err *err) RF_MUST_CHECK;

/* Says at `node` that a tensor follows both rules. */
enum rf_status rf_rule_fail_two(const struct rf_jnode *node, const char *name,
                                const struct rf_rule *a,
                                const struct rf_rule *b, struct rf_err *err);

/* Whether `name` fits the pattern; fills in the numbers. */
bool rf_rule_fits(const char *pattern, const char *name,
                  struct rf_name_number *layer, struct rf_name_number *expert);

/* Gives a family, whose shape and layers are set, its role, parts and stage. */
enum rf_status rf_rule_divide(const struct rf_rule *rule,
                              struct rf_values *values,
                              struct rf_family *family,
                              struct rf_err *err) RF_MUST_CHECK;

/* Evaluates a member of the rule: a number or an expression. */
enum rf_status rf_rule_u64(const struct rf_jnode *node,
                           struct rf_values *values, uint64_t min, uint64_t max,
                           uint64_t *out, struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Applying rules: the match for a tensor's name, and its effect on a family.
 * Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_FAMILY_RULES_H
#define RF_PLANNER_FAMILIES_FAMILY_RULES_H

#include "planner/families/model_values.h"
#include "planner/families/table.h"

/* A number in a tensor's name. */
struct rf_name_number {
    int64_t number; /* -1: none */
    const char *at; /* its digits; NULL: written {L} or {E} */
    size_t length;
};

/*
 * The rule for a tensor's name; *out NULL: none. `*` matches any characters,
 * {L} and {E} a number or themselves; a name without `*` wins over one with it.
 * Two that match equally well are an error that names both. Of several rules
 * with one name, which differ in conditions, the first whose conditions hold
 * applies.
 */
enum rf_status rf_rule_match(struct rf_family_table *table,
                             struct rf_values *values, const char *name,
                             uint32_t ndim, struct rf_rule **out,
                             struct rf_name_number *layer,
                             struct rf_name_number *expert,
                             struct rf_err *err) RF_MUST_CHECK;

/* Fails at `node`: a tensor follows both rules. */
enum rf_status rf_rule_fail_two(const struct rf_jnode *node, const char *name,
                                const struct rf_rule *a,
                                const struct rf_rule *b, struct rf_err *err);

/* Whether `name` matches the pattern; sets the numbers. */
bool rf_rule_fits(const char *pattern, const char *name,
                  struct rf_name_number *layer, struct rf_name_number *expert);

/* Sets the role, parts and stage of a family with known shape and layers. */
enum rf_status rf_rule_divide(const struct rf_rule *rule,
                              struct rf_values *values,
                              struct rf_family *family,
                              struct rf_err *err) RF_MUST_CHECK;

/* The rule's own layers, `*count` from `*first` on. */
enum rf_status rf_rule_layers(const struct rf_rule *rule,
                              struct rf_values *values, uint64_t *first,
                              uint64_t *count,
                              struct rf_err *err) RF_MUST_CHECK;
/* The number of the decoder's layers. */
enum rf_status rf_rule_decoder_layers(struct rf_values *values, uint64_t *out,
                                      struct rf_err *err) RF_MUST_CHECK;

/* Evaluates a member of the rule: a number or an expression. */
enum rf_status rf_rule_u64(const struct rf_jnode *node,
                           struct rf_values *values, uint64_t min, uint64_t max,
                           uint64_t *out, struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Prefixes of the names in a table: wrappers of language models publish and
 * save the same tensors under several. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_SPELLING_H
#define RF_PLANNER_FAMILIES_SPELLING_H

#include "planner/families/table.h"

/* Replaces the prefix in the names of all rules that begin with a key of
 * `prefixes` by that key's text; the first matching key counts. NULL: none. */
enum rf_status rf_spelling_apply(struct rf_family_table *table,
                                 const struct rf_jnode *prefixes,
                                 struct rf_err *err) RF_MUST_CHECK;

/*
 * Adapts a finished table to the names in `tensors`, an object: unchanged, or
 * by the first of its "prefixes" under which a tensor of a decoder layer has a
 * rule. *out becomes the replacement, "a.* for b.*", freed by the caller, or
 * NULL.
 */
enum rf_status rf_spelling_choose(struct rf_family_table *table,
                                  const json_t *tensors, char **out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * How the names of a table's tensors begin: wrappers of language models publish
 * and save the same tensors under several prefixes. Private to the model
 * readers.
 */
#ifndef RF_PLANNER_FAMILIES_SPELLING_H
#define RF_PLANNER_FAMILIES_SPELLING_H

#include "planner/families/table.h"

/* Has the names of all rules that begin with a key of `prefixes` begin with its
 * text; of several keys the first counts. NULL: none. */
enum rf_status rf_spelling_apply(struct rf_family_table *table,
                                 const struct rf_jnode *prefixes,
                                 struct rf_err *err) RF_MUST_CHECK;

/*
 * Has a finished table speak as `tensors`, an object with their names, do: as
 * it is, or by the first of its "prefixes" in which a tensor of a decoder layer
 * has a rule. *out becomes what was replaced, "a.* for b.*", which the caller
 * frees, or NULL.
 */
enum rf_status rf_spelling_choose(struct rf_family_table *table,
                                  const json_t *tensors, char **out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

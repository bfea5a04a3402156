/* Private to spec*.c: reading one side of a scenario. */
#ifndef RF_PLANNER_SPEC_SIDE_H
#define RF_PLANNER_SPEC_SIDE_H

#include "planner/scenario/spec.h"

/* Fills a zeroed side, defaults included; see rf_spec_from_json(). What `side`
 * points to is the scenario's to free, after a failure, too. */
enum rf_status rf_side_from_json(const struct rf_jnode *node,
                                 struct rf_side_spec *side,
                                 const char *const *node_names,
                                 uint32_t n_node_names,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Chooses the nodes of a side that gives their number: the first that `other`
 * (NULL: none) does not have. Sides that name theirs stay as they are. */
enum rf_status rf_side_seat(const struct rf_jnode *node,
                            struct rf_side_spec *side,
                            const struct rf_side_spec *other,
                            uint32_t n_node_names,
                            struct rf_err *err) RF_MUST_CHECK;

#endif

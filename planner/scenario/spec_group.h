/* The groups in which a refit moves its tensors: a scenario's "group". */
#ifndef RF_PLANNER_SCENARIO_SPEC_GROUP_H
#define RF_PLANNER_SCENARIO_SPEC_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/scenario/spec_fields.h"

/* Groups in flight by default, and at most. */
#define RF_IN_FLIGHT 2
#define RF_IN_FLIGHT_MAX 16

enum rf_group_by {
    RF_GROUP_NOTHING, /* the refit is not cut into groups */
    RF_GROUP_LAYERS,
    RF_GROUP_BYTES,
};

struct rf_group_spec {
    enum rf_group_by by;
    uint64_t size;      /* of a group, in each stage: layers, or bytes */
    uint32_t in_flight; /* groups under way at a rank, 1 or more */
    bool serial_pp; /* in the order of training stages; else a group has tensors
                       of every stage */
};

/* Reads "group": an object, or a preset's name; NULL in `node`: no groups. */
enum rf_status rf_group_spec_read(const struct rf_jnode *node,
                                  struct rf_group_spec *out,
                                  const struct rf_spec_nodes *nodes,
                                  struct rf_err *err) RF_MUST_CHECK;
/* The object, also of a preset. A new reference; NULL: no groups. */
json_t *rf_group_spec_schema(void);
json_t *rf_group_spec_write(const struct rf_group_spec *group,
                            const struct rf_spec_nodes *nodes);

extern const struct rf_spec_field rf_group_fields[];

#endif

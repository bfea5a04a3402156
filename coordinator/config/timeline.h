/* "timeline" of cluster.json: the step of RL training that refits are part of.
 */
#ifndef RF_COORDINATOR_CONFIG_TIMELINE_H
#define RF_COORDINATOR_CONFIG_TIMELINE_H

#include <stdbool.h>

#include "common/err.h"
#include "common/json.h"

/* "timeline": one step of RL training around the refits. */
struct rf_timeline {
    double rollout_s, train_s, other_s;
    double refits; /* per step, usually 1 */
    bool given;
};

/* Reads "timeline" of `root`; where there is none, `given` is false.
 * RF_ERR_CONFIG with path and rule. */
enum rf_status rf_timeline_read(const struct rf_jnode *root,
                                struct rf_timeline *out,
                                struct rf_err *err) RF_MUST_CHECK;

#endif

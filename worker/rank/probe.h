/*
 * The step "probe": what this node's memory and the links between nodes can do,
 * measured with as many processes at once as the scenario has ranks on a node.
 */
#ifndef RF_WORKER_RANK_PROBE_H
#define RF_WORKER_RANK_PROBE_H

#include <stdatomic.h>

#include "transport/control/message_fields.h"
#include "transport/method/method.h"
#include "transport/method/module.h"

struct rf_probe {
    const struct rf_method_env *env;
    const struct rf_world *world; /* of the plan */
    int64_t deadline_ns;
    const struct rf_module *module; /* NULL: host memory */
    bool *plain_stores; /* set by "copy" in host memory: they were faster */
};

/*
 * "copy"; every rank of the attempt takes part. "gbytes_per_s" is this rank's
 * share when all ranks of its node copy at the same time, by whichever of
 * memcpy and streaming stores gives the node more in sum;
 * "single_gbytes_per_s" is what the node's first rank reaches alone. *out is
 * initialised.
 */
enum rf_status rf_probe_copy(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* "link"; every rank of the attempt takes part: goodput and latency of each of
 * "links", all at once, in the answer of its "to" only. *out is initialised. */
enum rf_status rf_probe_link(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif

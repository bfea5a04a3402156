/*
 * The step "probe": performance of this node's memory and of the links between
 * nodes, measured with as many processes at once as the scenario has ranks on a
 * node.
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
    bool converts;      /* this rank does, in a refit in host memory */
    bool *plain_stores; /* set by "copy" in host memory: memcpy was faster */
};

/*
 * "copy"; collective over the attempt. "gbytes_per_s" is this rank's share
 * while all ranks of its node copy, by memcpy or streaming stores, whichever
 * gives the node the higher sum; "single_gbytes_per_s" is the rate of the
 * node's first rank alone. Where the scenario has an encoding,
 * "scan_gbytes_per_s" is this rank's share while all compare two arrays; with
 * "quantize" in host memory "convert_gbytes_per_s" is that while those that
 * convert do. *out must be initialised.
 */
enum rf_status rf_probe_copy(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* "link"; collective over the attempt: goodput and latency of each of "links",
 * all at once, reported only by the link's "to". *out must be initialised. */
enum rf_status rf_probe_link(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif

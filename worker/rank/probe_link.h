/* Goodput and latency of the link between two nodes. See probe.h. */
#ifndef RF_WORKER_RANK_PROBE_LINK_H
#define RF_WORKER_RANK_PROBE_LINK_H

#include "worker/rank/probe.h"

/* "link"; every rank of the attempt takes part: goodput and latency of each of
 * "links", all at once, in the answer of its "to" only. *out is initialised. */
enum rf_status rf_probe_link(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif

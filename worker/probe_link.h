/* Goodput and latency of the link between two nodes. See probe.h. */
#ifndef RF_WORKER_PROBE_LINK_H
#define RF_WORKER_PROBE_LINK_H

#include "worker/probe.h"

enum rf_status rf_probe_link(const struct rf_probe *probe, const json_t *step,
                             json_t *result, struct rf_err *err) RF_MUST_CHECK;

#endif

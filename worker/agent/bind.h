/* `launch.bind`: the processors of the ranks of a node. */
#ifndef RF_WORKER_AGENT_BIND_H
#define RF_WORKER_AGENT_BIND_H

#include <sched.h>

#include "common/err.h"
#include "transport/control/message_fields.h"

struct rf_bind_how {
    const char *root;         /* of the kernel's files; "" for this machine */
    const cpu_set_t *allowed; /* processors to deal out */
    const struct rf_msg_bind *bind;      /* of BOOT */
    const struct rf_msg_topology *where; /* of the node's GPUs; or NULL */
};

/*
 * The processors of each slot, bind->slots sets; the caller frees *out.
 *
 * A slot is on the NUMA node of its GPU (slot n is GPU n) if that is so for all
 * slots of this cluster node; else slots are dealt out over NUMA nodes in
 * proportion to their cores, with a warning if the GPUs' nodes are at fault.
 * "numa" gives a slot all allowed processors of its node. "core" gives it whole
 * cores: an equal share of those of its node, none shared with another slot.
 *
 * RF_ERR_UNSUPPORTED, with the key and what to change, if the kernel names no
 * NUMA nodes ("numa") or a slot would have no core ("core").
 */
enum rf_status rf_bind_slots(const struct rf_bind_how *how, cpu_set_t **out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif

/* Places of this node's NICs and GPUs: NUMA node, PCI path, speed; and the NICs
 * nearest to each GPU. */
#ifndef RF_WORKER_HELPER_TOPOLOGY_H
#define RF_WORKER_HELPER_TOPOLOGY_H

#include "transport/control/message_fields.h"

/* Reads the kernel's files below `root` ("" for this machine). Left out: what is
 * no PCI device (loopback, bridges, USB), and GPUs that /sys does not show.
 * Never fails; the caller frees the struct. */
struct rf_msg_topology *rf_topology_find(const char *root,
                                         const struct rf_msg_gpu *gpus,
                                         size_t n_gpus);

#endif

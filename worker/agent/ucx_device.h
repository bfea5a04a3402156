/* The network interface for UCX where it has nothing better than TCP. */
#ifndef RF_WORKER_AGENT_UCX_DEVICE_H
#define RF_WORKER_AGENT_UCX_DEVICE_H

#include "transport/control/message_fields.h"

#define RF_UCX_DEVICE_VARIABLE "UCX_NET_DEVICES"

/* The interface with the node's data address; the caller frees it. NULL where
 * UCX chooses itself: UCX is unusable or not asked for, the node has an RDMA
 * adapter that can be opened, or the address is a loopback's or not the
 * node's. */
char *rf_ucx_device(const struct rf_msg_hello *hello);

#endif

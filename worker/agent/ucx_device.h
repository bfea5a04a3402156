/* Which interface UCX is to use where it has nothing better than TCP. */
#ifndef RF_WORKER_AGENT_UCX_DEVICE_H
#define RF_WORKER_AGENT_UCX_DEVICE_H

#include "transport/control/message_fields.h"

#define RF_UCX_DEVICE_VARIABLE "UCX_NET_DEVICES"

/* The interface that has the node's address for data. NULL where UCX chooses
 * for itself: it cannot be used or is not asked for, the node has an RDMA
 * adapter that can be opened, or the address is a loopback's or none of the
 * node's. To be freed. */
char *rf_ucx_device(const struct rf_msg_hello *hello);

#endif

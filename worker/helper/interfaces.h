/* The network interfaces and RDMA ports whose bytes are counted. */
#ifndef RF_WORKER_HELPER_INTERFACES_H
#define RF_WORKER_HELPER_INTERFACES_H

#include "transport/control/message_fields.h"

/*
 * Sets hello->interfaces from the files below `root` ("" for this machine): one
 * entry per NIC that is up, so that a byte is in the counters of one entry only.
 *
 * - Of interfaces stacked on each other (bonds, VLANs, bridges, macvlan) only
 *   the lowest count; these have no lower_* link in sysfs.
 * - A virtual port of a bridge or switch (a container's or a virtual machine's)
 *   does not count: its bytes to other nodes also pass a physical one.
 * - Tunnels (neither Ethernet nor InfiniBand) and the loopback do not count.
 * - An interface and the RDMA port of the same adapter port are one entry; an
 *   RDMA port without an interface, or with that of an Ethernet bond, is an
 *   entry of its own.
 *
 * Never fails: unknown facts stay absent. Of more than RF_MSG_INTERFACES_MAX,
 * the first are listed.
 */
void rf_interfaces_find(const char *root, struct rf_msg_hello *hello);

#endif

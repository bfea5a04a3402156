/* Times of leases, in milliseconds; docs/PROTOCOL.md names them. */
#ifndef RF_TRANSPORT_NET_LEASE_TIMES_H
#define RF_TRANSPORT_NET_LEASE_TIMES_H

#define RF_LEASE_PERIOD_MS 2000
#define RF_LEASE_DEAD_MS 15000
/* Leases in quick succession after joining, to estimate clock offsets. */
#define RF_LEASE_BURST 5

#endif

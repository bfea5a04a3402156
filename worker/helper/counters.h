/* Counters of a node's network: bytes of each NIC, TCP's segments. */
#ifndef RF_WORKER_HELPER_COUNTERS_H
#define RF_WORKER_HELPER_COUNTERS_H

#include <stdio.h>

#include "transport/control/message_fields.h"

#define RF_COUNTERS_LOOPBACK "lo"

/*
 * Reads the counters of `n` interfaces (rf_interfaces_find()), since the
 * machine booted, from the files below `root` ("" for this machine) into `out`,
 * which has one entry for each, in order: /proc/net/dev; of RDMA ports
 * port_{xmit,rcv}_data, in words of 4 bytes; OutSegs and RetransSegs of
 * /proc/net/snmp. Never fails: counters that cannot be read are absent. Free
 * `out` with rf_schema_free().
 */
void rf_counters_read(const char *root,
                      const struct rf_msg_interface *interfaces, size_t n,
                      struct rf_msg_network *out);

/* Turns `now`, read later than `before`, into what was counted in between;
 * drops interfaces without counters then and now. A counter that fell is
 * absent; so are all bytes of a NIC if one of its counters fell, came, went or
 * stands still at the last number of 32 bits. */
void rf_counters_since(const struct rf_msg_network *before,
                       struct rf_msg_network *now);

/* A line of /proc/net/dev. */
#define RF_COUNTERS_NUMBERS 16
struct rf_counters_line {
    char name[64];
    uint64_t numbers[RF_COUNTERS_NUMBERS];
};

/* Opens /proc/net/dev below `root`; NULL if it cannot. */
FILE *rf_counters_open(const char *root);
/* The next interface; false at the end. */
bool rf_counters_next(FILE *file, struct rf_counters_line *out);

#endif

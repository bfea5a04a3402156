/* Leases: when to send one, what received ones reveal about clocks, and when a
 * silent node counts as dead. Pure: callers pass the time. */
#ifndef RF_COORDINATOR_CLUSTER_LEASE_H
#define RF_COORDINATOR_CLUSTER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/control/clock_offset.h"
#include "transport/control/message_fields.h"

/* Per node; zero-initialised. */
struct rf_lease {
    unsigned quick; /* left to send in quick succession */
    int64_t next_ns;
    int64_t heard_t, heard_at_ns; /* to be echoed */
    struct rf_clock_offset exchanges;
};

/* The node has joined: its first lease is due now. */
void rf_lease_begin(struct rf_lease *lease, int64_t now_ns);
/* Whether a lease is due; fills `out` if so. */
bool rf_lease_due(struct rf_lease *lease, int64_t now_ns, struct rf_msg *out);
/* Takes a lease from the node. */
void rf_lease_take(struct rf_lease *lease, const struct rf_msg_lease *message,
                   int64_t now_ns);

/*
 * Pauses of this process (stopped, or the machine asleep). It read nothing from
 * the nodes meanwhile, so for a while afterwards their silence does not count.
 */
struct rf_pauses {
    int64_t last_ns;
    int64_t patient_until_ns;
};

void rf_pauses_begin(struct rf_pauses *pauses, int64_t now_ns);
/* Call several times a second. Returns the length of the pause that just ended;
 * 0: none. */
int64_t rf_pauses_note(struct rf_pauses *pauses, int64_t now_ns);

/* How long a node last heard at `heard_ns` has been silent if that is too long;
 * otherwise 0. */
int64_t rf_lease_silence_ns(int64_t heard_ns, int64_t now_ns,
                            const struct rf_pauses *pauses);

#endif

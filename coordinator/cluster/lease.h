/*
 * Leases: when one is due, what those that arrive reveal about clocks, and when
 * a silent node counts as dead. Pure: the time is always given.
 */
#ifndef RF_COORDINATOR_CLUSTER_LEASE_H
#define RF_COORDINATOR_CLUSTER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/control/clock_offset.h"
#include "transport/control/message_fields.h"

/* One node's; zeroed at first. */
struct rf_lease {
    unsigned quick; /* still to be sent in quick succession */
    int64_t next_ns;
    int64_t heard_t, heard_at_ns; /* to be echoed */
    struct rf_clock_offset exchanges;
};

/* The node has joined: the first lease is due now. */
void rf_lease_begin(struct rf_lease *lease, int64_t now_ns);
/* Whether one is to be sent now; `out` is made for that. */
bool rf_lease_due(struct rf_lease *lease, int64_t now_ns, struct rf_msg *out);
/* One that has come from the node. */
void rf_lease_take(struct rf_lease *lease, const struct rf_msg_lease *message,
                   int64_t now_ns);

/*
 * This process is stopped at times, or the machine sleeps. What the nodes sent
 * meanwhile has not been read then, so their silence does not count for a while
 * after that.
 */
struct rf_pauses {
    int64_t last_ns;
    int64_t patient_until_ns;
};

void rf_pauses_begin(struct rf_pauses *pauses, int64_t now_ns);
/* To be called several times a second. The length of the pause that has just
 * ended, 0 when there was none. */
int64_t rf_pauses_note(struct rf_pauses *pauses, int64_t now_ns);

/* How long a node that was last heard of at `heard_ns` has been silent if that
 * is too long, otherwise 0. */
int64_t rf_lease_silence_ns(int64_t heard_ns, int64_t now_ns,
                            const struct rf_pauses *pauses);

#endif

/* See lease.h. */
#include "coordinator/cluster/lease.h"

#include "common/clock.h"

#define QUICK_NS (20 * RF_NS_PER_MS)
#define PERIOD_NS ((int64_t)RF_LEASE_PERIOD_MS * RF_NS_PER_MS)
#define DEAD_NS ((int64_t)RF_LEASE_DEAD_MS * RF_NS_PER_MS)
#define PAUSE_NS (5 * RF_NS_PER_S)

void rf_lease_begin(struct rf_lease *lease, int64_t now_ns)
{
    lease->quick = RF_LEASE_BURST;
    lease->next_ns = now_ns;
}

bool rf_lease_due(struct rf_lease *lease, int64_t now_ns, struct rf_msg *out)
{
    if (now_ns < lease->next_ns) {
        return false;
    }
    rf_msg_init(out, RF_MSG_LEASE);
    out->lease.t = now_ns;
    if (lease->heard_at_ns != 0) {
        out->lease.echo = lease->heard_t;
        out->lease.echo_at = lease->heard_at_ns;
    }
    lease->next_ns = now_ns + (lease->quick > 0 ? QUICK_NS : PERIOD_NS);
    lease->quick -= lease->quick > 0;
    return true;
}

void rf_lease_take(struct rf_lease *lease, const struct rf_msg_lease *message,
                   int64_t now_ns)
{
    lease->heard_t = message->t;
    lease->heard_at_ns = now_ns;
    if (message->echo > 0 && message->echo_at != RF_ABSENT_I64) {
        rf_clock_add(&lease->exchanges, message->echo, message->echo_at,
                     message->t, now_ns);
    }
}

void rf_pauses_begin(struct rf_pauses *pauses, int64_t now_ns)
{
    *pauses = (struct rf_pauses){.last_ns = now_ns, .patient_until_ns = now_ns};
}

int64_t rf_pauses_note(struct rf_pauses *pauses, int64_t now_ns)
{
    int64_t pause = now_ns - pauses->last_ns;
    pauses->last_ns = now_ns;
    if (pause <= PAUSE_NS) {
        return 0;
    }
    pauses->patient_until_ns = now_ns + 2 * PERIOD_NS;
    return pause;
}

int64_t rf_lease_silence_ns(int64_t heard_ns, int64_t now_ns,
                            const struct rf_pauses *pauses)
{
    int64_t silent = now_ns - heard_ns;
    return silent > DEAD_NS && now_ns >= pauses->patient_until_ns ? silent : 0;
}

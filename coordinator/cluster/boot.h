/* BOOT, the first message to an agent. */
#ifndef RF_COORDINATOR_CLUSTER_BOOT_H
#define RF_COORDINATOR_CLUSTER_BOOT_H

#include "coordinator/config/config.h"
#include "transport/messages.h"
#include "transport/tls.h"

struct rf_boot {
    const struct rf_config *config;
    uint32_t node;
    const char *run_id, *identity;
    const uint8_t *psk;                 /* NULL: the node has it already */
    const char *data_address;           /* NULL: the agent finds one */
    const char *connect_back;           /* an address of ours, or NULL */
    uint32_t port;                      /* of that */
    const struct rf_msg_shared *shared; /* or NULL */
};

/* With a new nonce; rf_msg_free() it. */
void rf_boot_fill(const struct rf_boot *boot, struct rf_msg *out);
/* The line that the agent answers with before anything else. malloc'ed. */
char *rf_boot_banner(const struct rf_msg_boot *boot);

#endif

/* BOOT, the first message to an agent. */
#ifndef RF_COORDINATOR_CLUSTER_BOOT_H
#define RF_COORDINATOR_CLUSTER_BOOT_H

#include "coordinator/config/config.h"
#include "transport/control/conn.h"
#include "transport/control/message_fields.h"

struct rf_boot_content {
    const struct rf_config *config;
    uint32_t node;
    const char *run_id, *identity;
    const uint8_t *psk;           /* NULL: the node has it already */
    const char *data_address;     /* NULL: the agent finds one */
    const char *connect_back;     /* an address of this machine, or NULL */
    uint32_t port;                /* of connect_back */
    struct rf_msg_shared *shared; /* or NULL */
    const char *reach_key;        /* or NULL */
};

/* Sends BOOT with a new nonce, which the agent repeats in its banner. An agent
 * that already has the key sends no banner. */
void rf_boot_content_send(const struct rf_boot_content *boot,
                          struct rf_conn *conn);

#endif

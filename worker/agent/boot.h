/* The BOOT message, and the time limits of an agent and its ranks. */
#ifndef RF_WORKER_AGENT_BOOT_H
#define RF_WORKER_AGENT_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "transport/control/message_fields.h"
#include "transport/control/tls.h"

struct rf_boot {
    struct rf_msg_boot message; /* owned, without the key */
    bool has_psk;
    uint8_t psk[RF_PSK_BYTES];
    struct rf_msg_boot_limits limits; /* none absent */
};

/* Fills *out from `asked`, BOOT's "limits" or NULL; absent limits get
 * defaults. */
void rf_boot_limits_init(const struct rf_msg_boot_limits *asked,
                         struct rf_msg_boot_limits *out);

/* Checks `message` and takes it over, on failure too: it is empty afterwards.
 * Wipes the key from it. RF_ERR_PROTOCOL if its members are inconsistent or the
 * protocol versions do not overlap; *out is then unchanged. */
enum rf_status rf_boot_read(struct rf_msg_boot *message, struct rf_boot *out,
                            struct rf_err *err) RF_MUST_CHECK;
/* Wipes the key. */
void rf_boot_free(struct rf_boot *boot);

#endif

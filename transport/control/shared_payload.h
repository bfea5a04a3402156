/*
 * A frame's payload, encoded once for any number of connections. Each keeps a
 * reference until the last byte is sent, so that a message to a thousand nodes
 * is in memory once. Reference counted, single-threaded. Wiped when freed: it
 * may hold secrets.
 */
#ifndef RF_TRANSPORT_CONTROL_SHARED_PAYLOAD_H
#define RF_TRANSPORT_CONTROL_SHARED_PAYLOAD_H

#include "transport/control/message_fields.h"

struct rf_shared_payload {
    enum rf_msg_type type;
    unsigned references;
    size_t size;
    char bytes[];
};

/* Each is returned with one reference, owned by the caller. */

/* Takes `json` (decref) and wipes its secrets. NULL: cannot be encoded. */
struct rf_shared_payload *rf_shared_payload_of_json(enum rf_msg_type type,
                                                    json_t *json);
struct rf_shared_payload *rf_shared_payload_of(const struct rf_msg *message);
struct rf_shared_payload *rf_shared_payload_of_bytes(enum rf_msg_type type,
                                                     const void *bytes,
                                                     size_t size);

struct rf_shared_payload *
rf_shared_payload_keep(struct rf_shared_payload *payload);
void rf_shared_payload_drop(
    struct rf_shared_payload *payload); /* NULL is fine */

#endif

/* See shared_payload.h. */
#include "transport/control/shared_payload.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static struct rf_shared_payload *make(enum rf_msg_type type, size_t size)
{
    struct rf_shared_payload *payload = rf_xmalloc(sizeof(*payload) + size);
    payload->type = type;
    payload->references = 1;
    payload->size = size;
    return payload;
}

/* Writes the text into a buffer of the final size: the growing buffer of
 * json_dumps() would leave copies of secrets in freed memory. */
struct rf_shared_payload *rf_shared_payload_of_json(enum rf_msg_type type,
                                                    json_t *json)
{
    const struct rf_schema *schema = rf_msg_schema((uint8_t)type);
    const size_t size = json_dumpb(json, NULL, 0, JSON_COMPACT);
    struct rf_shared_payload *payload = NULL;
    if (size > 0) {
        payload = make(type, size);
        (void)json_dumpb(json, payload->bytes, size, JSON_COMPACT);
    }
    if (schema != NULL) {
        rf_schema_wipe(schema, json);
    }
    json_decref(json);
    return payload;
}

struct rf_shared_payload *rf_shared_payload_of(const struct rf_msg *message)
{
    return rf_shared_payload_of_json(message->type, rf_msg_json(message));
}

struct rf_shared_payload *rf_shared_payload_of_bytes(enum rf_msg_type type,
                                                     const void *bytes,
                                                     size_t size)
{
    struct rf_shared_payload *payload = make(type, size);
    if (size > 0) {
        memcpy(payload->bytes, bytes, size);
    }
    return payload;
}

struct rf_shared_payload *
rf_shared_payload_keep(struct rf_shared_payload *payload)
{
    payload->references++;
    return payload;
}

void rf_shared_payload_drop(struct rf_shared_payload *payload)
{
    if (payload != NULL && --payload->references == 0) {
        explicit_bzero(payload->bytes, payload->size);
        free(payload);
    }
}

#include "transport/control/message_fields.h"

#include <string.h>

#include "transport/control/schema_plain.h"

#define X(name, FIELDS) RF_SCHEMA_DEFINE(name, FIELDS)
RF_SCHEMA_PARTS(X)
#undef X
#define X(TYPE, name, FIELDS) RF_SCHEMA_DEFINE(msg_##name, FIELDS)
RF_SCHEMA_MESSAGES(X)
#undef X

const struct rf_schema *rf_msg_schema(uint8_t type)
{
    switch (type) {
#define X(TYPE, name, FIELDS)                                                  \
    case RF_MSG_##TYPE:                                                        \
        return &rf_msg_##name##_schema;
        RF_SCHEMA_MESSAGES(X)
#undef X
    default:
        return NULL;
    }
}

/* The struct of a message's type in the union. */
static void *body_of(const struct rf_msg *message)
{
    return (void *)(uintptr_t)&message->boot;
}

enum rf_status rf_msg_decode(enum rf_msg_type type, json_t *payload,
                             struct rf_msg *out, struct rf_err *err)
{
    const struct rf_schema *schema = rf_msg_schema((uint8_t)type);
    out->type = type;
    return schema == NULL
               ? RF_OK
               : rf_schema_decode(schema, payload, rf_msg_name((uint8_t)type),
                                  body_of(out), err);
}

struct rf_msg_bad rf_msg_bad(enum rf_msg_type type, const json_t *payload,
                             const struct rf_err *why)
{
    const json_int_t attempt =
        json_integer_value(json_object_get(payload, "attempt"));
    const bool possible = attempt > 0 && attempt <= INT32_MAX;
    return (struct rf_msg_bad){
        .type = type, .attempt = possible ? (uint32_t)attempt : 0, .why = why};
}

bool rf_msg_read_plain(const struct rf_frame *frame, struct rf_msg *out)
{
    const struct rf_schema *schema = rf_msg_schema(frame->type);
    out->type = (enum rf_msg_type)frame->type;
    return schema != NULL &&
           rf_schema_read_plain(schema, (const char *)frame->payload,
                                frame->length, body_of(out));
}

enum rf_status rf_msg_read(const struct rf_frame *frame, struct rf_msg *out,
                           struct rf_err *err)
{
    json_t *payload = NULL;
    enum rf_status status;
    if (rf_msg_read_plain(frame, out)) {
        return RF_OK;
    }
    status = rf_msg_parse(frame, &payload, err);
    rf_msg_init(out, (enum rf_msg_type)frame->type);
    RF_THEN(status,
            rf_msg_decode((enum rf_msg_type)frame->type, payload, out, err));
    json_decref(payload);
    return status;
}

void rf_msg_init(struct rf_msg *message, enum rf_msg_type type)
{
    const struct rf_schema *schema = rf_msg_schema((uint8_t)type);
    memset(message, 0, sizeof(*message));
    message->type = type;
    if (schema != NULL) {
        rf_schema_init(schema, body_of(message));
    }
}

json_t *rf_msg_json(const struct rf_msg *message)
{
    const struct rf_schema *schema = rf_msg_schema((uint8_t)message->type);
    return schema != NULL ? rf_schema_encode(schema, body_of(message))
                          : json_object();
}

void rf_msg_free(struct rf_msg *message)
{
    const struct rf_schema *schema = rf_msg_schema((uint8_t)message->type);
    if (schema != NULL) {
        rf_schema_free(schema, body_of(message));
    }
}

bool rf_msg_answer_is_plain(const struct rf_msg_answer *answer)
{
    const struct rf_schema *schema = &rf_msg_answer_schema;
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        const void *result = NULL;
        if (field->kind == RF_FIELD_MAYBE) {
            memcpy(&result, (const char *)answer + field->offset,
                   sizeof(result));
        }
        if (result != NULL) {
            return false;
        }
    }
    return answer->ok;
}

/*
 * Messages: names, caps and payload parsing. Semantics are in
 * docs/PROTOCOL.md, members in message_fields.h.
 */
#include "transport/control/message_types.h"

#include "common/json.h"

const char *rf_msg_name(uint8_t type)
{
    switch (type) {
#define X(name, number, cap)                                                   \
    case number:                                                               \
        return #name;
        RF_MSG_MAP(X)
#undef X
    default:
        return NULL;
    }
}

uint32_t rf_msg_cap(uint8_t type)
{
    switch (type) {
#define X(name, number, cap)                                                   \
    case number:                                                               \
        return cap;
        RF_MSG_MAP(X)
#undef X
    default:
        return 0;
    }
}

enum rf_status rf_msg_parse(const struct rf_frame *frame, json_t **out,
                            struct rf_err *err)
{
    const char *name = rf_msg_name(frame->type);
    json_t *value = NULL;
    if (name == NULL || frame->type == RF_MSG_LOG) {
        return rf_err_set(err, RF_ERR_PROTOCOL, "frame type %u carries no JSON",
                          frame->type);
    }
    /* The parser's error text would quote the payload, which may hold a key. */
    if (rf_json_parse((const char *)frame->payload, frame->length, name, &value,
                      NULL) != RF_OK) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "bad message: %s of %u bytes: not strict JSON", name,
                          frame->length);
    }
    if (!json_is_object(value)) {
        json_decref(value);
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "bad message: %s: must be an object", name);
    }
    *out = value;
    return RF_OK;
}

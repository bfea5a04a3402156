/* Message payloads with hostile bytes: the first byte is the type, the rest the
 * payload. What is accepted is the same message when it is encoded and decoded
 * again; what is refused leaves nothing behind. */
#include <stdint.h>
#include <stdlib.h>

#include "transport/control/message_fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_empty(const struct rf_msg *message)
{
    struct rf_msg empty;
    json_t *wanted, *got = rf_msg_json(message);
    rf_msg_init(&empty, message->type);
    wanted = rf_msg_json(&empty);
    if (!json_equal(got, wanted)) {
        abort();
    }
    json_decref(got);
    json_decref(wanted);
}

static void must_survive(const struct rf_msg *message)
{
    struct rf_msg again;
    json_t *first = rf_msg_json(message), *copy = json_deep_copy(first);
    json_t *second;
    if (!json_is_object(first) ||
        rf_msg_decode(message->type, copy, &again, NULL) != RF_OK) {
        abort();
    }
    second = rf_msg_json(&again);
    if (!json_equal(first, second)) {
        abort();
    }
    json_decref(first);
    json_decref(second);
    json_decref(copy);
    rf_msg_free(&again);
}

/* Reading without JSON values gives what parsing does. */
static void must_be_parsed(const struct rf_frame *frame)
{
    struct rf_msg plain, parsed;
    json_t *payload = NULL, *a, *b;
    if (!rf_msg_read_plain(frame, &plain)) {
        return;
    }
    if (rf_msg_parse(frame, &payload, NULL) != RF_OK ||
        rf_msg_decode((enum rf_msg_type)frame->type, payload, &parsed, NULL) !=
            RF_OK) {
        abort();
    }
    a = rf_msg_json(&plain);
    b = rf_msg_json(&parsed);
    if (!json_equal(a, b)) {
        abort();
    }
    json_decref(a);
    json_decref(b);
    json_decref(payload);
    rf_msg_free(&plain);
    rf_msg_free(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_frame frame = {.rank = RF_FRAME_NO_RANK};
    struct rf_msg message;
    struct rf_err err = {.status = RF_OK};
    if (size < 1) {
        return 0;
    }
    frame.type = data[0];
    frame.length = (uint32_t)(size - 1);
    frame.payload = data + 1;
    must_be_parsed(&frame);
    if (rf_msg_read(&frame, &message, &err) == RF_OK) {
        must_survive(&message);
        rf_msg_free(&message);
    } else if (err.status != RF_ERR_PROTOCOL) {
        abort();
    }
    must_be_empty(&message);
    return 0;
}

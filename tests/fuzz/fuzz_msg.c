/* Message payloads with hostile bytes: the first byte is the type, the rest the
 * payload. What is accepted is an object and survives being written again. */
#include <stdint.h>
#include <stdlib.h>

#include "transport/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_frame frame = {.rank = RF_FRAME_NO_RANK};
    struct rf_err err;
    json_t *value = NULL;
    char *text;
    if (size < 1) {
        return 0;
    }
    frame.type = data[0];
    frame.length = (uint32_t)(size - 1);
    frame.payload = data + 1;
    if (rf_msg_parse(&frame, &value, &err) != RF_OK) {
        if (value != NULL) {
            abort();
        }
        return 0;
    }
    text = json_dumps(value, JSON_COMPACT);
    if (!json_is_object(value) || text == NULL) {
        abort();
    }
    free(text);
    json_decref(value);
    return 0;
}

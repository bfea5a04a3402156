/* What methods share. */
#include "transport/method/method.h"

#include <stdlib.h>

#include "common/system_calls.h"

void rf_blobs_free(struct rf_blob *blobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(blobs[i].data);
        blobs[i] = (struct rf_blob){NULL, 0};
    }
}

void rf_method_yardstick_key(uint8_t key[RF_DATA_KEY_BYTES])
{
    key[0] ^= 0xff;
}

enum rf_status rf_method_probe(const struct rf_method_ops *method,
                               struct rf_err *err)
{
    RF_TRY(rf_system_calls_try(method->calls, err));
    return method->probe != NULL ? method->probe(err) : RF_OK;
}

/* What methods share. */
#include "transport/method/method.h"

#include <stdlib.h>
#include <string.h>

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

void rf_method_one_way(const void *state, struct rf_copy_ways *out)
{
    (void)state;
    memset(out, 0, sizeof(*out));
}

const void *rf_method_in_arena(const struct rf_piece *piece,
                               uint64_t stride[RF_BOX_DIMS], void *state)
{
    (void)piece;
    (void)stride;
    (void)state;
    return NULL;
}

bool rf_method_leaves_none(size_t op, const void *state)
{
    (void)op;
    (void)state;
    return false;
}

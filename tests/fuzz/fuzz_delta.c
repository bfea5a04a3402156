/*
 * Any bytes as a block of changes (transport/delta/delta_block.h). The first
 * three say of how many elements, and of how many bytes each. What is accepted
 * must lie inside the block, ascend, and be the same when encoded again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/delta/delta_block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rf_delta_scratch scratch;

/* Decoded once more from what it is encoded to. */
static void encode_again(const struct rf_delta_changes *changes,
                         struct rf_delta_how how)
{
    static struct rf_delta_scratch other;
    uint8_t *out = malloc(rf_delta_bound(changes->count, changes->width));
    struct rf_delta_changes again;
    size_t bytes;
    if (out == NULL) {
        abort();
    }
    how.diff = false; /* the old elements are not known */
    bytes = rf_delta_encode(changes, how, out);
    if (!rf_delta_decode(out, bytes, changes->count, changes->width, &other,
                         &again, &how) ||
        again.n != changes->n ||
        (again.at != NULL &&
         memcmp(again.at, changes->at, changes->n * sizeof(*again.at)) != 0) ||
        memcmp(again.values, changes->values,
               (size_t)changes->n * changes->width) != 0) {
        abort();
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_delta_changes changes;
    struct rf_delta_how how;
    uint32_t count, width;
    uint8_t *dst;
    if (size < 3) {
        return 0;
    }
    count = 1u + (data[0] | (uint32_t)data[1] << 8);
    width = 1u << data[2] % 4;
    if (!rf_delta_decode(data + 3, size - 3, count, width, &scratch, &changes,
                         &how)) {
        return 0;
    }
    for (uint32_t i = 0; changes.at != NULL && i < changes.n; i++) {
        if (changes.at[i] >= count ||
            (i > 0 && changes.at[i] <= changes.at[i - 1])) {
            abort();
        }
    }
    dst = calloc(count, width);
    if (dst == NULL) {
        abort();
    }
    rf_delta_apply(&changes, how, 0, changes.n, 0, dst);
    free(dst);
    if (how.positions != RF_DELTA_RUNS || changes.n > 0) {
        encode_again(&changes, how);
    }
    return 0;
}

/*
 * The frame reader with hostile bytes: whatever the input, the frames read are
 * the same when it arrives in pieces (the first byte sets their size) as when
 * it arrives at once, and no more memory is held than has arrived.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/hash.h"
#include "transport/control/frame.h"
#include "transport/control/message_types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t read_all(const uint8_t *data, size_t size, size_t step,
                         enum rf_status *end)
{
    struct rf_frame_reader reader;
    struct rf_hash hash;
    rf_hash_init(&hash);
    rf_frame_reader_init(&reader, rf_msg_cap);
    *end = RF_OK;
    for (size_t at = 0; at < size && *end == RF_OK; at += step) {
        struct rf_frame frame;
        bool got = true;
        if (rf_frame_reader_feed(&reader, data + at, RF_MIN(step, size - at)) !=
            RF_OK) {
            abort();
        }
        while (*end == RF_OK && got) {
            *end = rf_frame_reader_next(&reader, &frame, &got, NULL);
            if (got) {
                rf_hash_u64(&hash, frame.type);
                rf_hash_u64(&hash, frame.rank);
                rf_hash_bytes(&hash, frame.payload, frame.length);
            }
        }
        if (reader.capacity > 2 * size + 1024 || reader.parsed > reader.used) {
            abort();
        }
    }
    rf_frame_reader_free(&reader);
    return hash.a ^ hash.b ^ hash.length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum rf_status whole, pieces;
    if (size < 2) {
        return 0;
    }
    if (read_all(data + 1, size - 1, size, &whole) !=
            read_all(data + 1, size - 1, data[0] % 61u + 1, &pieces) ||
        whole != pieces) {
        abort();
    }
    return 0;
}

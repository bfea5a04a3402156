/* Plan digest: two independently keyed chains of the SplitMix64 finaliser. */
#include "common/hash.h"

#include <stdio.h>
#include <string.h>

#include "common/pattern.h"

void rf_hash_init(struct rf_hash *hash)
{
    *hash =
        (struct rf_hash){.a = 0x243F6A8885A308D3u, .b = 0x13198A2E03707344u};
}

void rf_hash_u64(struct rf_hash *hash, uint64_t value)
{
    hash->a = rf_mix64(hash->a ^ value) + 0x9E3779B97F4A7C15u;
    hash->b = rf_mix64(hash->b + value) ^ 0xD1B54A32D192ED03u;
    hash->length++;
}

void rf_hash_bytes(struct rf_hash *hash, const void *data, size_t size)
{
    const uint8_t *in = data;
    rf_hash_u64(hash, size);
    for (; size >= 8; size -= 8, in += 8) {
        uint64_t word;
        memcpy(&word, in, 8);
        rf_hash_u64(hash, word);
    }
    if (size > 0) {
        uint64_t word = 0;
        memcpy(&word, in, size);
        rf_hash_u64(hash, word);
    }
}

void rf_hash_text(const struct rf_hash *hash, char out[RF_HASH_TEXT_SIZE])
{
    snprintf(out, RF_HASH_TEXT_SIZE, "%016llx%016llx",
             (unsigned long long)rf_mix64(hash->a ^ hash->length),
             (unsigned long long)rf_mix64(hash->b + hash->length));
}

/*
 * Plan digest: two independently keyed chains of the SplitMix64 finaliser. The
 * words of a record are first summed as folded 128-bit products of keyed pairs,
 * as in NH (Black et al., UMAC, 1999). No product waits for another, so a
 * record costs little more than its multiplications.
 */
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

__extension__ typedef unsigned __int128 wide;

static uint64_t fold(uint64_t x, uint64_t y)
{
    wide product = (wide)x * y;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The sums over words [from, n) of a record; `from` is even. */
static struct rf_hash_tail sum_up(const uint64_t *words, size_t from, size_t n)
{
    uint64_t key = 0x452821E638D01377u + from * 0x9E3779B97F4A7C15u;
    struct rf_hash_tail sums = {0, 0};
    for (size_t i = from; i < n; i += 2) {
        uint64_t x = words[i], y = i + 1 < n ? words[i + 1] : 0;
        uint64_t next = key + 0x9E3779B97F4A7C15u;
        sums.a += fold(x ^ key, y ^ next);
        sums.b += fold(x + next, y ^ ~key);
        key = next + 0x9E3779B97F4A7C15u;
    }
    return sums;
}

struct rf_hash_tail rf_hash_tail_of(const uint64_t *words, size_t head,
                                    size_t n)
{
    return sum_up(words, head, n);
}

void rf_hash_record_with(struct rf_hash *hash, const uint64_t *words,
                         size_t head, const struct rf_hash_tail *tail, size_t n)
{
    struct rf_hash_tail first = sum_up(words, 0, head);
    rf_hash_u64(hash, n);
    rf_hash_u64(hash, first.a + tail->a);
    rf_hash_u64(hash, first.b + tail->b);
}

void rf_hash_record(struct rf_hash *hash, const uint64_t *words, size_t n)
{
    static const struct rf_hash_tail nothing = {0, 0};
    rf_hash_record_with(hash, words, n, &nothing, n);
}

void rf_hash_text(const struct rf_hash *hash, char out[RF_HASH_TEXT_SIZE])
{
    snprintf(out, RF_HASH_TEXT_SIZE, "%016llx%016llx",
             (unsigned long long)rf_mix64(hash->a ^ hash->length),
             (unsigned long long)rf_mix64(hash->b + hash->length));
}

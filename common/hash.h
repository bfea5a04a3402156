/*
 * A 128-bit digest for comparing plans between processes of one run. Not
 * cryptographic: it detects mistakes, not attacks.
 */
#ifndef RF_COMMON_HASH_H
#define RF_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

struct rf_hash {
    uint64_t a, b, length;
};

#define RF_HASH_TEXT_SIZE 33 /* 32 hexadecimal digits and a NUL */

void rf_hash_init(struct rf_hash *hash);
void rf_hash_u64(struct rf_hash *hash, uint64_t value);
void rf_hash_bytes(struct rf_hash *hash, const void *data, size_t size);
/* Hashes a record of n words in one step. Its words are mixed independently of
 * each other, which takes a fraction of the time of n calls to
 * rf_hash_u64(). */
void rf_hash_record(struct rf_hash *hash, const uint64_t *words, size_t n);
/* rf_hash_record() in two parts, for records that differ only in their first
 * words: the contribution of the words from `head` (even) on, and then the
 * record of n words, of which the first `head` are passed with that
 * contribution. */
struct rf_hash_tail {
    uint64_t a, b;
};
struct rf_hash_tail rf_hash_tail_of(const uint64_t *words, size_t head,
                                    size_t n);
void rf_hash_record_with(struct rf_hash *hash, const uint64_t *words,
                         size_t head, const struct rf_hash_tail *tail,
                         size_t n);
void rf_hash_text(const struct rf_hash *hash, char out[RF_HASH_TEXT_SIZE]);

#endif

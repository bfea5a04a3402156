/* The plan digest: equal input gives equal text, any change another one. */
#include <string.h>

#include "common/hash.h"
#include "tests/unit/unit.h"

static void digest(const void *data, size_t size, char out[RF_HASH_TEXT_SIZE])
{
    struct rf_hash hash;
    rf_hash_init(&hash);
    rf_hash_bytes(&hash, data, size);
    rf_hash_text(&hash, out);
}

TEST(test_hash_text_is_32_digits_and_repeatable)
{
    char one[RF_HASH_TEXT_SIZE], two[RF_HASH_TEXT_SIZE];
    digest("abc", 3, one);
    digest("abc", 3, two);
    ck_assert_uint_eq(strlen(one), 32);
    ck_assert_uint_eq(strspn(one, "0123456789abcdef"), 32);
    ck_assert_str_eq(one, two);
}

/* Digests of plans are compared between builds and stored in results: this
 * pins the function. */
TEST(test_hash_known_answer)
{
    char text[RF_HASH_TEXT_SIZE];
    digest("refit", 5, text);
    ck_assert_str_eq(text, "570ea6f36a344aeab615186d32b25786");
}

TEST(test_hash_sees_every_bit)
{
    unsigned char data[24] = {0};
    char before[RF_HASH_TEXT_SIZE], after[RF_HASH_TEXT_SIZE];
    digest(data, sizeof(data), before);
    for (size_t bit = 0; bit < 8 * sizeof(data); bit++) {
        data[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        digest(data, sizeof(data), after);
        ck_assert_str_ne(before, after);
        data[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
}

TEST(test_hash_sees_length_and_order)
{
    struct rf_hash hash;
    char one[RF_HASH_TEXT_SIZE], two[RF_HASH_TEXT_SIZE];
    digest("a\0", 1, one);
    digest("a\0", 2, two); /* zero bytes at the end count */
    ck_assert_str_ne(one, two);
    rf_hash_init(&hash);
    rf_hash_u64(&hash, 1);
    rf_hash_u64(&hash, 2);
    rf_hash_text(&hash, one);
    rf_hash_init(&hash);
    rf_hash_u64(&hash, 2);
    rf_hash_u64(&hash, 1);
    rf_hash_text(&hash, two);
    ck_assert_str_ne(one, two);
}

static void record(const uint64_t *words, size_t n, char out[RF_HASH_TEXT_SIZE])
{
    struct rf_hash hash;
    rf_hash_init(&hash);
    rf_hash_record(&hash, words, n);
    rf_hash_text(&hash, out);
}

TEST(test_hash_of_a_record_sees_every_bit_and_the_order)
{
    uint64_t words[5] = {7, 0, 11, 7, 0};
    char before[RF_HASH_TEXT_SIZE], after[RF_HASH_TEXT_SIZE];
    record(words, 5, before);
    for (size_t bit = 0; bit < 8 * sizeof(words); bit++) {
        words[bit / 64] ^= (uint64_t)1 << (bit % 64);
        record(words, 5, after);
        ck_assert_str_ne(before, after);
        words[bit / 64] ^= (uint64_t)1 << (bit % 64);
    }
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = i + 1; k < 5; k++) {
            uint64_t swapped[5];
            memcpy(swapped, words, sizeof(words));
            swapped[i] = words[k];
            swapped[k] = words[i];
            record(swapped, 5, after);
            ck_assert_int_eq(strcmp(before, after) == 0, words[i] == words[k]);
        }
    }
    record(words, 4, after); /* a zero word at the end counts */
    ck_assert_str_ne(before, after);
}

TEST(test_hash_of_a_record_in_two_parts_is_that_of_the_whole)
{
    const uint64_t words[7] = {1, 2, 3, 5, 8, 13, 21};
    for (size_t head = 0; head < 7; head += 2) {
        struct rf_hash whole, parts;
        struct rf_hash_tail tail = rf_hash_tail_of(words, head, 7);
        rf_hash_init(&whole);
        rf_hash_init(&parts);
        rf_hash_record(&whole, words, 7);
        rf_hash_record_with(&parts, words, head, &tail, 7);
        ck_assert_mem_eq(&parts, &whole, sizeof(whole));
    }
}

/* Checked allocation and arithmetic. */
#include <signal.h>
#include <stdlib.h>

#include "common/mem.h"
#include "tests/unit/unit.h"

TEST(test_mem_product_and_sum_detect_overflow)
{
    uint64_t out = 42;
    ck_assert(rf_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 31, &out));
    ck_assert_uint_eq(out, UINT64_C(1) << 63);
    ck_assert(!rf_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    ck_assert(rf_add_u64(UINT64_MAX - 1, 1, &out));
    ck_assert_uint_eq(out, UINT64_MAX);
    ck_assert(!rf_add_u64(UINT64_MAX, 1, &out));
    ck_assert_uint_eq(out, UINT64_MAX); /* untouched by the failure */
}

TEST(test_mem_rounding)
{
    ck_assert_uint_eq(rf_align_up(0, 64), 0);
    ck_assert_uint_eq(rf_align_up(1, 64), 64);
    ck_assert_uint_eq(rf_align_up(64, 64), 64);
    ck_assert_uint_eq(rf_align_up(10, 3), 12);
    ck_assert_uint_eq(rf_div_up(0, 5), 0);
    ck_assert_uint_eq(rf_div_up(10, 5), 2);
    ck_assert_uint_eq(rf_div_up(11, 5), 3);
    ck_assert_uint_eq(rf_div_up(UINT64_MAX, 2), UINT64_C(1) << 63);
}

TEST(test_mem_checked_calloc_zeroes_and_refuses_overflow)
{
    /* volatile: the compiler would otherwise refuse the constant itself */
    volatile size_t huge = SIZE_MAX;
    unsigned char *bytes = rf_calloc(3, 5);
    ck_assert_ptr_nonnull(bytes);
    for (int i = 0; i < 15; i++) {
        ck_assert_uint_eq(bytes[i], 0);
    }
    free(bytes);
    ck_assert_ptr_null(rf_calloc(huge / 2, 3));
    bytes = rf_calloc(0, huge);
    ck_assert_ptr_nonnull(bytes);
    free(bytes);
}

SIGNAL_TEST(test_mem_abort_when_a_checked_product_overflows, SIGABRT)
{
    volatile size_t huge = SIZE_MAX;
    free(rf_xrealloc(NULL, huge, 2));
}

TEST(test_mem_array_grows_and_keeps_its_elements)
{
    AUTO_FREE int *numbers = NULL;
    size_t n = 0, cap = 0;
    for (int i = 0; i < 1000; i++) {
        RF_PUSH(numbers, n, cap, i * i);
    }
    ck_assert_uint_eq(n, 1000);
    ck_assert_uint_ge(cap, n);
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(numbers[i], i * i);
    }
}

TEST(test_mem_texts_are_copies)
{
    char word[] = "abc";
    AUTO_FREE char *copy = rf_xstrdup(word);
    AUTO_FREE char *text = rf_xasprintf("%s-%d", word, 5);
    word[0] = 'X';
    ck_assert_str_eq(copy, "abc");
    ck_assert_str_eq(text, "abc-5");
}

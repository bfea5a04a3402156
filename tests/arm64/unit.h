/*
 * In place of tests/unit/unit.h, where there is no Check for the processor:
 * tests run before main(), in one process, which the first failure ends.
 */
#ifndef RF_TESTS_UNIT_UNIT_H
#define RF_TESTS_UNIT_UNIT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "tests/lib/auto.h"

extern int tests_passed;

#define LOOP_TEST(name, n)                                                     \
    static void name(int _i);                                                  \
    __attribute__((constructor)) static void name##_run(void)                  \
    {                                                                          \
        for (int i = 0; i < (int)(n); i++, tests_passed++) {                   \
            name(i);                                                           \
        }                                                                      \
    }                                                                          \
    static void name(int _i __attribute__((unused)))
#define TEST(name) LOOP_TEST(name, 1)

#define ck_assert_msg(condition, ...)                                          \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                    \
            fprintf(stderr, __VA_ARGS__);                                      \
            fprintf(stderr, "\n");                                             \
            exit(EXIT_FAILURE);                                                \
        }                                                                      \
    } while (0)
#define ck_assert(condition) ck_assert_msg(condition, "not so: %s", #condition)
#define ck_assert_int_eq(a, b) ck_assert((a) == (b))
#define ck_assert_uint_eq(a, b) ck_assert((a) == (b))
#define ck_assert_uint_le(a, b) ck_assert((a) <= (b))
#define ck_assert_uint_lt(a, b) ck_assert((a) < (b))
#define ck_assert_uint_ge(a, b) ck_assert((a) >= (b))
#define ck_assert_uint_gt(a, b) ck_assert((a) > (b))
#define ck_assert_ptr_nonnull(a) ck_assert((a) != NULL)
#define ck_assert_mem_eq(a, b, n) ck_assert(memcmp(a, b, n) == 0)
#define ck_assert_mem_ne(a, b, n) ck_assert(memcmp(a, b, n) != 0)

#endif

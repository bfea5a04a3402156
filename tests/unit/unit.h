/*
 * Unit tests that list themselves: a file test_box.c is the suite "box", and
 * what stands in it belongs to the suite in the order of its lines.
 *
 *     FIXTURE(set_up, tear_down)
 *
 *     TEST(test_box_of_nothing_has_no_parts)
 *     {
 *         ck_assert(...);
 *     }
 *
 *     LOOP_TEST(test_box_parts_make_it_up, RF_ARRAY_SIZE(boxes))
 *     {
 *         const struct rf_box *box = &boxes[_i]; ...
 *     }
 *
 * Each test, each turn of a loop, is a process of its own.
 */
#ifndef RF_TESTS_UNIT_UNIT_H
#define RF_TESTS_UNIT_UNIT_H

#include <check.h>
#include <stdbool.h>

#include "common/compiler.h"
#include "tests/lib/asserts.h"
#include "tests/lib/auto.h"
#include "tests/lib/json_at.h"

/* What a line adds to its case; main.c finds it by the linker's section. */
struct unit_entry {
    TTest test; /* of a line that is no test: place alone */
    /* False: leave out the rest of the file. NULL: begin a case called so. */
    bool (*add)(TCase *tests, const TTest *test);
};

#define UNIT_ENTRY(id, name, fn, add)                                          \
    static const struct unit_entry id##_entry = {                              \
        {name, fn, __FILE__, __LINE__}, add};                                  \
    static const struct unit_entry *const id##_at                              \
        __attribute__((section("unit_entries"), used)) = &id##_entry;

#define UNIT_ADD(id, name, fn, ...)                                            \
    static bool id##_add(TCase *tests CK_ATTRIBUTE_UNUSED,                     \
                         const TTest *test CK_ATTRIBUTE_UNUSED)                \
    {                                                                          \
        return __VA_ARGS__;                                                    \
    }                                                                          \
    UNIT_ENTRY(id, name, fn, id##_add)

#define UNIT_TEST(name, ...)                                                   \
    static void name(int _i);                                                  \
    UNIT_ADD(name, #name, name, (__VA_ARGS__, true))                           \
    static void name(int _i CK_ATTRIBUTE_UNUSED)

#define TEST(name) UNIT_TEST(name, tcase_add_test(tests, test))
/* With _i from 0 to n - 1. */
#define LOOP_TEST(name, n)                                                     \
    UNIT_TEST(name, tcase_add_loop_test(tests, test, 0, (int)(n)))
/* It has to end by the signal. */
#define SIGNAL_TEST(name, signal)                                              \
    UNIT_TEST(name, tcase_add_test_raise_signal(tests, test, signal))

#define UNIT_LINE(line, ...) UNIT_LINE_(line, __VA_ARGS__)
#define UNIT_LINE_(line, ...) UNIT_ADD(unit_line_##line, "", NULL, __VA_ARGS__)
#define UNIT_CASE(line, name) UNIT_CASE_(line, name)
#define UNIT_CASE_(line, name) UNIT_ENTRY(unit_line_##line, name, NULL, NULL)

/* Around each test of the case, in its process; NULL: nothing. */
#define FIXTURE(set_up, tear_down)                                             \
    UNIT_LINE(__LINE__,                                                        \
              (tcase_add_checked_fixture(tests, set_up, tear_down), true))
/* In seconds, for each test of the case. */
#define LIMIT(seconds)                                                         \
    UNIT_LINE(__LINE__, (tcase_set_timeout(tests, seconds), true))
/* For CK_INCLUDE_TAGS and CK_EXCLUDE_TAGS. */
#define TAG(name) UNIT_LINE(__LINE__, (tcase_set_tags(tests, name), true))
/* The rest of the file is left out where this is not so. */
#define NEEDS(condition) UNIT_LINE(__LINE__, (condition))
/* The lines that follow form a case with fixtures, limit and tags of its own;
 * those above the first one form a case called after the file. */
#define CASE(name) UNIT_CASE(__LINE__, name)

#endif

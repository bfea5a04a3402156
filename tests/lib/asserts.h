/* Assertions that most tests use. */
#ifndef RF_TESTS_LIB_ASSERTS_H
#define RF_TESTS_LIB_ASSERTS_H

#include <check.h>
#include <string.h>

#define assert_says(text, part)                                                \
    do {                                                                       \
        const char *text_ = (text), *part_ = (part);                           \
        ck_assert_msg(strstr(text_, part_) != NULL, "\"%s\" lacks \"%s\"",     \
                      text_, part_);                                           \
    } while (0)

/* Fails the test with the text of `err` unless the call gives RF_OK. */
#define assert_ok(call, err) ck_assert_msg((call) == RF_OK, "%s", (err).text)

#define assert_fails(call, status, err, part)                                  \
    do {                                                                       \
        ck_assert_int_eq(call, status);                                        \
        assert_says((err).text, part);                                         \
    } while (0)

#endif

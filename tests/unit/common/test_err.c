/* Error texts: setting, wrapping, truncation, absent error objects. */
#include <errno.h>
#include <string.h>

#include "common/err.h"
#include "tests/unit/unit.h"

TEST(test_err_set_fills_status_and_text)
{
    struct rf_err err = {.status = RF_OK};
    ck_assert_int_eq(rf_err_set(&err, RF_ERR_IO, "file %d", 7), RF_ERR_IO);
    ck_assert_int_eq(err.status, RF_ERR_IO);
    ck_assert_str_eq(err.text, "file 7");
}

TEST(test_err_errno_appends_the_reason)
{
    struct rf_err err;
    rf_err_errno(&err, RF_ERR_IO, ENOENT, "open %s", "x");
    ck_assert_str_eq(err.text, "open x: No such file or directory");
    rf_err_errno(&err, RF_ERR_IO, EMFILE, "open x");
    ck_assert_str_eq(err.text, "open x: Too many open files (raise the limit "
                               "with `ulimit -n`)");
}

TEST(test_err_wrap_puts_context_first_and_keeps_status)
{
    struct rf_err err;
    rf_err_set(&err, RF_ERR_TIMEOUT, "timed out");
    rf_err_wrap(&err, "connect");
    rf_err_wrap(&err, "launch %s", "node03");
    ck_assert_int_eq(err.status, RF_ERR_TIMEOUT);
    ck_assert_str_eq(err.text, "launch node03: connect: timed out");
}

TEST(test_err_within_wraps_a_failure_only)
{
    struct rf_err err;
    rf_err_set(&err, RF_ERR_IO, "closed");
    ck_assert_int_eq(rf_err_within(RF_OK, &err, "launch"), RF_OK);
    ck_assert_str_eq(err.text, "closed");
    ck_assert_int_eq(rf_err_within(RF_ERR_IO, &err, "launch %s", "node03"),
                     RF_ERR_IO);
    ck_assert_int_eq(err.status, RF_ERR_IO);
    ck_assert_str_eq(err.text, "launch node03: closed");
}

TEST(test_err_marks_a_text_that_did_not_fit)
{
    struct rf_err err;
    char word[2 * sizeof(err.text)];
    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    rf_err_set(&err, RF_ERR_IO, "%s", word);
    ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
    ck_assert_int_eq(err.text[sizeof(err.text) - 2], '+');
    rf_err_wrap(&err, "context");
    ck_assert_int_eq(strncmp(err.text, "context: aaa", 12), 0);
    ck_assert_int_eq(err.text[sizeof(err.text) - 2], '+');
}

TEST(test_err_object_may_be_absent)
{
    ck_assert_int_eq(rf_err_set(NULL, RF_ERR_IO, "x"), RF_ERR_IO);
    ck_assert_int_eq(rf_err_errno(NULL, RF_ERR_IO, EIO, "x"), RF_ERR_IO);
    rf_err_wrap(NULL, "x");
    ck_assert_int_eq(rf_err_within(RF_ERR_IO, NULL, "x"), RF_ERR_IO);
}

TEST(test_err_every_status_has_its_own_text)
{
    static const enum rf_status all[] = {
#define X(name, value, text) RF_##name,
        RF_STATUS_MAP(X)
#undef X
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(all); i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_int_ne(all[i], all[j]);
            ck_assert_str_ne(rf_strstatus(all[i]), rf_strstatus(all[j]));
        }
    }
    ck_assert_str_eq(rf_strstatus((enum rf_status)99), "unknown status");
}

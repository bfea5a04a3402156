/* Error texts. See err.h for the contract. */
#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

const char *rf_strstatus(enum rf_status status)
{
    switch (status) {
#define X(name, value, text)                                                   \
    case RF_##name:                                                            \
        return text;
        RF_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

/* `wanted`: length of the text before truncation. */
static void finish_text(struct rf_err *err, int wanted)
{
    rf_text_fit(err->text, sizeof(err->text), wanted);
    rf_text_clean(err->text, strlen(err->text));
}

enum rf_status rf_err_set(struct rf_err *err, enum rf_status status,
                          const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        err->status = status;
        finish_text(err, vsnprintf(err->text, sizeof(err->text), fmt, args));
        va_end(args);
    }
    return status;
}

/* Advice for an errno; "" if there is none. */
static const char *advice_for(int errno_value)
{
    switch (errno_value) {
    case EMFILE:
        return " (raise the limit with `ulimit -n`)";
    case EFBIG:
        return " (check the limit of file size, `ulimit -f`)";
    default:
        return "";
    }
}

enum rf_status rf_err_errno(struct rf_err *err, enum rf_status status,
                            int errno_value, const char *fmt, ...)
{
    if (err != NULL) {
        char what[sizeof(err->text)];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        err->status = status;
        finish_text(err,
                    snprintf(err->text, sizeof(err->text), "%s: %s%s", what,
                             strerror(errno_value), advice_for(errno_value)));
    }
    return status;
}

static void wrap(struct rf_err *err, const char *fmt, va_list args)
{
    if (err != NULL) {
        char old[sizeof(err->text)];
        char what[sizeof(err->text)];
        memcpy(old, err->text, sizeof(old));
        vsnprintf(what, sizeof(what), fmt, args);
        finish_text(
            err, snprintf(err->text, sizeof(err->text), "%s: %s", what, old));
    }
}

void rf_err_wrap(struct rf_err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    wrap(err, fmt, args);
    va_end(args);
}

enum rf_status rf_err_within(enum rf_status status, struct rf_err *err,
                             const char *fmt, ...)
{
    if (status != RF_OK) {
        va_list args;
        va_start(args, fmt);
        wrap(err, fmt, args);
        va_end(args);
    }
    return status;
}

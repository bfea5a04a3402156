/*
 * Errors: a status code for the program, a text for the person.
 *
 * A function that can fail returns enum rf_status (RF_OK or a negative member)
 * and takes a `struct rf_err *err` last, which may be NULL. It fills `err` with
 * what went wrong and where; callers add context on the way up with
 * rf_err_within() and never read the text to decide what to do. Only the layer
 * that ends an error's journey reports it. Valid C and C++ (nvcc).
 */
#ifndef RF_COMMON_ERR_H
#define RF_COMMON_ERR_H

#include "common/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RF_STATUS_MAP(X)                                                       \
    X(OK, 0, "success")                                                        \
    X(ERR_NOMEM, -1, "out of memory")                                          \
    X(ERR_USAGE, -2, "usage error")                                            \
    X(ERR_CONFIG, -3, "configuration error")                                   \
    X(ERR_IO, -4, "input/output error")                                        \
    X(ERR_PROTOCOL, -5, "protocol error")                                      \
    X(ERR_AUTH, -6, "authentication failed")                                   \
    X(ERR_TIMEOUT, -7, "timed out")                                            \
    X(ERR_PEER, -8, "peer lost")                                               \
    X(ERR_ABORTED, -9, "aborted")                                              \
    X(ERR_UNSUPPORTED, -10, "unsupported")                                     \
    X(ERR_VERIFY, -11, "verification mismatch")                                \
    X(ERR_LAUNCH, -12, "launch failed")                                        \
    X(ERR_DEVICE, -13, "device error")                                         \
    X(ERR_INTERNAL, -14, "internal error")

enum rf_status {
#define X(name, value, text) RF_##name = (value),
    RF_STATUS_MAP(X)
#undef X
};

/* Error text: valid UTF-8 without control characters (rf_text_clean), truncated
 * to fit and then ending in '+'. Starts out empty. */
struct rf_err {
    enum rf_status status;
    char text[1024];
};

/* The fixed text of a status, e.g. "timed out"; never NULL. */
const char *rf_strstatus(enum rf_status status);

/* Sets `err` (if not NULL) to `status` and the formatted text. Returns
 * `status`, so that `return rf_err_set(err, RF_ERR_IO, "…")` reads well. */
enum rf_status rf_err_set(struct rf_err *err, enum rf_status status,
                          const char *fmt, ...) RF_PRINTF(3, 4);

/* Like rf_err_set(), with ": <strerror(errno_value)>" appended, and advice
 * where a process limit is the cause. */
enum rf_status rf_err_errno(struct rf_err *err, enum rf_status status,
                            int errno_value, const char *fmt, ...)
    RF_PRINTF(4, 5);

/* Puts "<formatted text>: " before the text of an error that is already set;
 * keeps the status. */
void rf_err_wrap(struct rf_err *err, const char *fmt, ...) RF_PRINTF(2, 3);

/* Wraps the error of a call that failed: nothing for RF_OK. Returns `status`, as
 * in `return rf_err_within(connect_to(peer, err), err, "launch %s", name)`. */
enum rf_status rf_err_within(enum rf_status status, struct rf_err *err,
                             const char *fmt, ...)
    RF_PRINTF(3, 4) RF_MUST_CHECK;

/* Returns the status of `call` unless it is RF_OK. Only for functions that hold
 * no resource yet. */
#define RF_TRY(call)                                                           \
    do {                                                                       \
        const enum rf_status rf_tried = (call);                                \
        if (rf_tried != RF_OK) {                                               \
            return rf_tried;                                                   \
        }                                                                      \
    } while (0)

/* Runs the next of several steps unless an earlier one failed. */
#define RF_THEN(status, call)                                                  \
    do {                                                                       \
        if ((status) == RF_OK) {                                               \
            (status) = (call);                                                 \
        }                                                                      \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif

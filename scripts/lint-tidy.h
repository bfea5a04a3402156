/*
 * Given to clang-tidy before every file but those that define these functions.
 * The analyser looks at one file at a time and would think that a call like
 * rf_err_set(err, RF_ERR_IO, …) may return RF_OK, and go on from there into
 * code that only runs after a success.
 */
#include "common/json.h"

#define rf_err_set(err, status, ...)                                           \
    (rf_err_set(err, status, __VA_ARGS__), (status))
#define rf_err_errno(err, status, ...)                                         \
    (rf_err_errno(err, status, __VA_ARGS__), (status))
#define rf_err_wrap(err, status, ...)                                          \
    (rf_err_wrap(err, status, __VA_ARGS__), (status))
#define rf_jnode_fail(node, err, ...)                                          \
    (rf_jnode_fail(node, err, __VA_ARGS__), RF_ERR_CONFIG)

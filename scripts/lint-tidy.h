/*
 * clang-tidy includes this before every file except those that define these
 * functions. The analyser sees one file at a time and would assume that a call
 * like rf_err_set(err, RF_ERR_IO, …) may return RF_OK, and follow code that
 * runs only after a success.
 */
#include "common/json.h"

#define rf_err_set(err, status, ...)                                           \
    (rf_err_set(err, status, __VA_ARGS__), (status))
#define rf_err_errno(err, status, ...)                                         \
    (rf_err_errno(err, status, __VA_ARGS__), (status))
#define rf_jnode_fail(node, err, ...)                                          \
    (rf_jnode_fail(node, err, __VA_ARGS__), RF_ERR_CONFIG)

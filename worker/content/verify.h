/*
 * Compares an arena with its expected content: a checkpoint in any kind of
 * memory, the pattern in memory that is used in place.
 */
#ifndef RF_WORKER_CONTENT_VERIFY_H
#define RF_WORKER_CONTENT_VERIFY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/method/memory.h"

/* Implements rf_memory_ops.verify; `abort` (may be NULL) ends it early. */
enum rf_status rf_verify(const struct rf_verify_job *job,
                         const struct rf_memory_ops *memory,
                         const atomic_bool *abort, struct rf_verify_result *out,
                         struct rf_err *err) RF_MUST_CHECK;

#endif

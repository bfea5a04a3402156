/*
 * An arena compared with what it should hold: with a checkpoint in memory of
 * any kind, with the pattern in memory that is used in place.
 */
#ifndef RF_WORKER_CONTENT_VERIFY_H
#define RF_WORKER_CONTENT_VERIFY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/method/memory.h"

/* See rf_memory_ops.verify, which it does; `abort` (NULL: nothing) ends it. */
enum rf_status rf_verify(const struct rf_verify_job *job,
                         const struct rf_memory_ops *memory,
                         const atomic_bool *abort, struct rf_verify_result *out,
                         struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Compares an arena with its expected content: the pattern with the memory's
 * kernels, if it has some.
 */
#ifndef RF_WORKER_CONTENT_VERIFY_H
#define RF_WORKER_CONTENT_VERIFY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/method/memory.h"

/* Compares every byte of every piece with the content (cast to the side's
 * dtype), and padding with the poison; `abort` (may be NULL) ends it early. */
enum rf_status rf_verify(const struct rf_content_job *job,
                         const struct rf_memory_ops *memory,
                         const atomic_bool *abort, struct rf_verify_result *out,
                         struct rf_err *err) RF_MUST_CHECK;

#endif

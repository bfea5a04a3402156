/*
 * Writes content into an arena: a checkpoint with several threads; the pattern
 * with the memory's kernels, if it has some.
 */
#ifndef RF_WORKER_CONTENT_FILL_H
#define RF_WORKER_CONTENT_FILL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/method/memory.h"

/* Progress of reading; other threads may look at it meanwhile. */
struct rf_reading {
    const atomic_bool *abort; /* may be NULL */
    atomic_ullong read_bytes; /* from files */
    atomic_ullong done_bytes; /* of content written */
    atomic_ullong of_bytes;   /* of content in total */
};

/* Writes the job's content into all pieces of its arena: in the *training*
 * side's dtype, and its cast on an inference side of another dtype. Padding
 * gets the poison. `reading` may be NULL. */
enum rf_status rf_fill(const struct rf_content_job *job,
                       const struct rf_memory_ops *memory,
                       struct rf_reading *reading,
                       struct rf_err *err) RF_MUST_CHECK;

#endif

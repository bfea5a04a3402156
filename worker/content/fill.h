/*
 * Writes content into an arena: a checkpoint, with several threads, into any
 * kind of memory; the pattern into memory that is used in place.
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

struct rf_fill_job {
    const struct rf_plan *plan;
    enum rf_side side;
    uint32_t rank;
    uint64_t iteration;
    const struct rf_memory_ops *memory;
    const struct rf_arena *arena;
    struct rf_reading *reading; /* may be NULL */
};

/* Writes the iteration's content into all pieces of the rank's side; see
 * rf_memory_ops.fill. */
enum rf_status rf_fill(const struct rf_fill_job *job,
                       struct rf_err *err) RF_MUST_CHECK;

#endif

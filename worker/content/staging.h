/*
 * The content of a rank's side, block by block: parts of one piece in one
 * logical tensor, each of about the size that is read from a file, or copied to
 * a device, at once. Where the process can use an arena's addresses, blocks are
 * worked on in place; else in buffers of the memory's kind, in which a block's
 * runs follow each other.
 */
#ifndef RF_WORKER_CONTENT_STAGING_H
#define RF_WORKER_CONTENT_STAGING_H

#include <stdatomic.h>

#include "transport/method/memory.h"
#include "worker/content/content.h"

/* Threads that read a checkpoint; each reads a block at a time. */
#define RF_READ_THREADS 4

/* Threads for the content of a plan: the pattern is made by the caller's alone,
 * as each core has its rank. */
unsigned rf_read_threads(const struct rf_plan *plan);

struct rf_block {
    uint32_t piece; /* of the rank's layout */
    uint32_t item;  /* bytes of an element */
    struct rf_box box;
    uint64_t bytes;
};

/* All pieces of a rank's side, in their order, in blocks of 4 MiB, or of one
 * index of the outermost dimension where that is more. Freed with free(); NULL
 * where there is none. */
struct rf_block *rf_blocks_of(const struct rf_plan *plan, enum rf_side side,
                              uint32_t rank, size_t *n_out);

/* Elements of a block that follow each other in memory. */
struct rf_staged_run {
    struct rf_content_span span; /* `end`: where its block ends */
    uint32_t item;               /* bytes of an element */
    uint8_t *at;
    uint64_t bytes;
};

enum rf_staged { RF_STAGE_IN, RF_STAGE_OUT }; /* into, out of the arena */

struct rf_staging {
    const struct rf_memory_ops *memory;
    const struct rf_plan *plan;
    enum rf_side side;
    uint32_t rank;
    const struct rf_arena *arena;
    rf_base_of_fn base_of; /* may be NULL */
    void *base_data;
    enum rf_staged way;
    unsigned threads;         /* at most RF_READ_THREADS */
    const atomic_bool *abort; /* NULL: nothing ends it */
    /* Works on one run, in any of the threads; those of a block come in their
     * order, in one thread. */
    enum rf_status (*work)(const struct rf_staged_run *run, unsigned thread,
                           void *data, struct rf_err *err);
    void *data;
};

/* Works on blocks of the staging's side; from the rank's data thread. */
enum rf_status rf_staging_run(const struct rf_staging *staging,
                              const struct rf_block *blocks, size_t n,
                              struct rf_err *err) RF_MUST_CHECK;

#endif

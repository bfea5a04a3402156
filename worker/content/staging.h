/*
 * Processes the content of a rank's side in blocks. A block is part of one
 * piece in one logical tensor, about the size of one file read or one device
 * copy. Blocks are processed in place where the process can address the arena,
 * else in buffers of the memory's kind, which hold a block's runs back to back.
 */
#ifndef RF_WORKER_CONTENT_STAGING_H
#define RF_WORKER_CONTENT_STAGING_H

#include <stdatomic.h>

#include "transport/method/memory.h"
#include "worker/content/content.h"

/* Threads that read a checkpoint; each reads a block at a time. */
#define RF_READ_THREADS 4

/* Threads for the content of a plan. The pattern takes only the caller's, since
 * every core has a rank. */
unsigned rf_read_threads(const struct rf_plan *plan);

struct rf_block {
    uint32_t piece; /* of the arena's layout */
    uint32_t item;  /* bytes of an element */
    struct rf_box box;
    uint64_t bytes;
};

/* All pieces of the job's arena, in order, as blocks of at most 4 MiB, or of one
 * index of the outermost dimension if that is larger. NULL if there are none.
 * Freed with free(). */
struct rf_block *rf_blocks_of(const struct rf_content_job *job, size_t *n_out);

/* Elements of a block that are contiguous in memory. */
struct rf_staged_run {
    struct rf_content_span span; /* `end`: end of its block */
    uint32_t item;               /* bytes of an element */
    uint8_t *at;
    uint64_t bytes;
};

enum rf_staged { RF_STAGE_IN, RF_STAGE_OUT }; /* into, out of the arena */

struct rf_staging {
    const struct rf_content_job *job;
    const struct rf_memory_ops *memory;
    enum rf_staged way;
    unsigned threads;         /* at most RF_READ_THREADS */
    const atomic_bool *abort; /* may be NULL */
    /* Processes one run, in any thread. The runs of a block come in order and
     * in one thread. */
    enum rf_status (*work)(const struct rf_staged_run *run, unsigned thread,
                           void *data, struct rf_err *err);
    void *data;
};

/* Processes blocks of the staging's side. Call from the rank's data thread. */
enum rf_status rf_staging_run(const struct rf_staging *staging,
                              const struct rf_block *blocks, size_t n,
                              struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * How the content of blocks gets to and from an arena: where the process can
 * use its addresses, in place; else through a buffer of the memory's kind, in
 * which a block's runs follow each other.
 */
#ifndef RF_WORKER_CONTENT_STAGING_H
#define RF_WORKER_CONTENT_STAGING_H

#include "transport/method/memory.h"
#include "worker/content/blocks.h"

/* Threads that read a checkpoint; each reads a block at a time. */
#define RF_READ_THREADS 4
#define RF_READ_BLOCK_BYTES (UINT64_C(4) << 20)

/* Threads for the content of a plan: the pattern is made by the caller's alone,
 * as each core has its rank. */
unsigned rf_read_threads(const struct rf_plan *plan);

struct rf_staging {
    const struct rf_memory_ops *memory;
    void *buffers; /* RF_READ_THREADS of `each` bytes; NULL: in place */
    uint64_t each;
};

/* For any of `blocks`. */
enum rf_status rf_staging_create(const struct rf_memory_ops *memory,
                                 const struct rf_block *blocks, size_t n,
                                 struct rf_staging *out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_staging_free(struct rf_staging *staging);

/* The buffer of number `i` < RF_READ_THREADS; NULL: in place. */
uint8_t *rf_staging_buffer(const struct rf_staging *staging, size_t i);

enum rf_staged { RF_STAGE_IN, RF_STAGE_OUT }; /* into, out of the arena */

/* Copies a block between its place and a buffer; from the rank's data thread.
 */
enum rf_status rf_staging_copy(const struct rf_staging *staging,
                               enum rf_staged way, const struct rf_plan *plan,
                               const struct rf_piece *piece,
                               const struct rf_block *block,
                               const struct rf_place *place, uint8_t *buffer,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

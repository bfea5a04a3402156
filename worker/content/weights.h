/*
 * Weights before "quantize": the pattern of common/pattern.h, or the bytes of
 * a checkpoint (model->files), in a side's dtype.
 *
 * The pattern is made in the training side's dtype; a checkpoint's elements are
 * cast to it. Both are then cast to the inference side's dtype where that
 * differs. Only the exact rules of reference_cast.h are used.
 */
#ifndef RF_WORKER_CONTENT_WEIGHTS_H
#define RF_WORKER_CONTENT_WEIGHTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "transport/method/memory.h"

/* Elements per request that still fit the first caches. */
#define RF_CONTENT_CHUNK UINT64_C(4096)

struct rf_weights;

/* Weights of the job's side in its iteration, or before: families are those of
 * plan->weights. The job's plan and files must outlive them. Refuses dtype pairs
 * without an exact rule. Adds bytes read from files to *read_bytes (may be
 * NULL). Single-threaded: each thread needs its own. */
enum rf_status rf_weights_create(const struct rf_content_job *job,
                                 atomic_ullong *read_bytes,
                                 struct rf_weights **out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_weights_destroy(struct rf_weights *weights); /* NULL is fine */

/* Elements [first, first + count) of one logical tensor (row-major). `end`
 * limits the read-ahead of files: later requests go up to that element; 0:
 * there are none. */
struct rf_content_span {
    uint32_t family, layer_index, expert;
    uint64_t first, count, end;
    uint64_t column, columns; /* of the last dimension, where the spans of its
                                 block are; none: all */
};

/* Writes the span to `dst`, which needs no alignment. Fails only for
 * checkpoints. */
enum rf_status rf_weights_read(struct rf_weights *weights,
                               const struct rf_content_span *span, void *dst,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

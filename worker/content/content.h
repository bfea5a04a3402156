/*
 * What weights contain: the pattern of common/pattern.h, or the bytes of a
 * checkpoint (model->files), in the dtype of a side.
 *
 * The pattern is made in the training side's dtype. A checkpoint's elements are
 * cast to the training side's dtype. Either is cast to the inference side's
 * dtype where that differs; only exact rules of reference_cast.h are used.
 */
#ifndef RF_WORKER_CONTENT_CONTENT_H
#define RF_WORKER_CONTENT_CONTENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "planner/plan/plan.h"

/* Most elements a caller should ask for at once to stay in the first caches. */
#define RF_CONTENT_CHUNK UINT64_C(4096)

struct rf_content;

/* Content of one side in one iteration; the plan must outlive it. Refuses dtype
 * pairs without an exact rule. What is read from files is added to *read_bytes
 * (NULL: nobody counts). For one thread; each of several has its own. */
enum rf_status rf_content_create(const struct rf_plan *plan, enum rf_side side,
                                 uint64_t iteration, atomic_ullong *read_bytes,
                                 struct rf_content **out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_content_destroy(struct rf_content *content); /* NULL is fine */

/* Elements [first, first + count) of one logical tensor (row-major). Files are
 * read ahead, but not from element `end` on: up to there more will be asked
 * for; 0: nothing more will. */
struct rf_content_span {
    uint32_t family, layer_index, expert;
    uint64_t first, count, end;
};

/* Writes them to `dst`, which needs no alignment. Fails only for checkpoints.
 */
enum rf_status rf_content_read(struct rf_content *content,
                               const struct rf_content_span *span, void *dst,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

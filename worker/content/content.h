/*
 * Content of an arena: weights (weights.h), or what "quantize" makes of them
 * (converted_content.h).
 */
#ifndef RF_WORKER_CONTENT_CONTENT_H
#define RF_WORKER_CONTENT_CONTENT_H

#include "worker/content/weights.h"

struct rf_content;

/* What the job's arena gets or must have; as rf_weights_create(). */
enum rf_status rf_content_create(const struct rf_content_job *job,
                                 atomic_ullong *read_bytes,
                                 struct rf_content **out,
                                 struct rf_err *err) RF_MUST_CHECK;
/* Whether it is the pattern alone, which is all that kernels know. */
bool rf_content_is_pattern(const struct rf_content_job *job);

void rf_content_destroy(struct rf_content *content); /* NULL is fine */

/* Writes a span, of a family of the job's arena, to `dst`, which needs no
 * alignment. Fails for checkpoints, and for weights that cannot be
 * converted. */
enum rf_status rf_content_read(struct rf_content *content,
                               const struct rf_content_span *span, void *dst,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

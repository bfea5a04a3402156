/*
 * What "quantize" must make of weights, for verification: from the weights
 * themselves, not from what arrived. A byte that was wrong before conversion,
 * but is hidden by rounding, is found by comparing what arrived.
 */
#ifndef RF_WORKER_CONTENT_CONVERTED_CONTENT_H
#define RF_WORKER_CONTENT_CONVERTED_CONTENT_H

#include "worker/content/weights.h"

struct rf_converted_content;

/* What `rank` has of them. The weights are in bfloat16 where they are
 * converted; they and `plan` must outlive the result. */
struct rf_converted_content *
rf_converted_content_create(const struct rf_plan *plan, uint32_t rank,
                            struct rf_weights *weights);
void rf_converted_content_destroy(struct rf_converted_content *content);

/* A span of one of the results. RF_ERR_UNSUPPORTED names the
 * tensor and the element that is infinite or NaN. */
enum rf_status rf_converted_content_read(struct rf_converted_content *content,
                                         const struct rf_content_span *span,
                                         void *dst,
                                         struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Quantisation in host memory, and verification of quantised content in any
 * memory. See planner/plan/quantize.h for parts and offsets, and convert.h for
 * the arithmetic.
 */
#ifndef RF_WORKER_CONTENT_QUANTIZE_H
#define RF_WORKER_CONTENT_QUANTIZE_H

#include "transport/method/memory.h"

/* The quantizer hooks of rf_memory_host. RF_ERR_UNSUPPORTED names the tensor
 * and the element that is infinite or NaN. */
enum rf_status rf_quantizer_create(const struct rf_content_job *arrived,
                                   const struct rf_quantize *what,
                                   const struct rf_arena *result, void **out,
                                   struct rf_err *err);
enum rf_status rf_quantizer_amax(void *quantizer, float *amax,
                                 struct rf_err *err);
enum rf_status rf_quantizer_run(void *quantizer, const float *amax, int64_t *ns,
                                struct rf_err *err);
void rf_quantizer_destroy(void *quantizer);

/*
 * Makes the content of the job's iteration again, quantises it here, and
 * compares every value and scale with the job's arena, which holds `what` and
 * is read through `memory`; base_of is not used. The scales of tensors follow
 * from their whole content, wherever its ranks are. Adds mismatches to *out,
 * and describes the first if *out has none yet; leaves checked_bytes unchanged.
 */
enum rf_status rf_quantizer_verify(const struct rf_content_job *job,
                                   const struct rf_quantize *what,
                                   const struct rf_memory_ops *memory,
                                   struct rf_verify_result *out,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Quantising in host memory, and verifying what was quantised in any memory.
 * See planner/plan/quantize.h for what and where.
 */
#ifndef RF_WORKER_CONTENT_QUANTIZE_H
#define RF_WORKER_CONTENT_QUANTIZE_H

#include "transport/method/memory.h"

/* The hooks of host memory. */
enum rf_status rf_quantizer_create(const struct rf_quantizer_env *env,
                                   void **out, struct rf_err *err);
enum rf_status rf_quantizer_run(void *quantizer, int64_t *ns,
                                struct rf_err *err);
void rf_quantizer_destroy(void *quantizer);

/*
 * Makes the content of the job's iteration once more, quantises that here, and
 * compares every fp8 value and scale with the job's arena, which is read
 * through `memory` and holds `what`; base_of does not matter. Mismatches add to
 * *out, whose checked_bytes is left alone; the first one is described where
 * *out has none yet.
 */
enum rf_status rf_quantizer_verify(const struct rf_verify_job *job,
                                   const struct rf_quantize *what,
                                   const struct rf_memory_ops *memory,
                                   struct rf_verify_result *out,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * Quantising in host memory. See planner/plan/quantize.h for parts and offsets,
 * and convert.h for the arithmetic.
 */
#ifndef RF_WORKER_CONTENT_QUANTIZE_H
#define RF_WORKER_CONTENT_QUANTIZE_H

#include "transport/method/memory.h"
#include "worker/content/convert.h"

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
enum rf_status rf_quantizer_part(void *quantizer, const float *amax,
                                 const struct rf_quantize_rows *rows,
                                 struct rf_err *err);
void rf_quantizer_destroy(void *quantizer);

/* Rows of a matrix that cannot be converted, and their first element. */
struct rf_quantize_place {
    uint32_t family, layer_index, expert; /* before conversion */
    uint64_t row, column;
};

/* RF_ERR_UNSUPPORTED that names the tensor and the element. */
enum rf_status rf_quantize_refuse(const struct rf_converted *converted,
                                  const struct rf_quantize_place *place,
                                  const struct rf_convert_rows *rows,
                                  struct rf_err *err);

#endif

/* Shapes and types of tensors in JSON, and the size limits of a model. */
#ifndef RF_PLANNER_MODEL_SHAPE_JSON_H
#define RF_PLANNER_MODEL_SHAPE_JSON_H

#include "common/json.h"
#include "planner/model/model.h"

#define RF_MODEL_MAX_LAYERS 65536
#define RF_MODEL_MAX_EXPERTS 65536
#define RF_MODEL_MAX_HEADS 1048576
#define RF_MODEL_MAX_SIZE (UINT64_C(1) << 40) /* of any one dimension */

/* Reads "shape": an array of 1 to 5 positive integers. */
enum rf_status rf_shape_from_json(const struct rf_jnode *object, uint32_t *ndim,
                                  uint64_t shape[RF_TENSOR_MAX_DIMS],
                                  struct rf_err *err) RF_MUST_CHECK;

/* Reads a dtype member; absent leaves *out. */
enum rf_status rf_dtype_from_json(const struct rf_jnode *object,
                                  const char *key, enum rf_dtype *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The JSON Schemas of what both accept: new references. `prefixed`: also as
 * "torch.bfloat16". */
json_t *rf_shape_schema(void);
json_t *rf_dtype_schema(bool prefixed);

/* One of `values` for each dimension of a tensor on disk, after that of the
 * experts where they share it. A new reference. */
json_t *rf_shape_to_json(const struct rf_family *family, uint64_t experts,
                         const uint64_t *values);

#endif

/* Shapes and types of tensors in JSON. See shape_json.h. */
#include "planner/model/shape_json.h"

#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"

enum rf_status rf_shape_from_json(const struct rf_jnode *object, uint32_t *ndim,
                                  uint64_t shape[RF_TENSOR_MAX_DIMS],
                                  struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, "shape");
    size_t count = json_array_size(node.value);
    RF_TRY(rf_jnode_require(object, "shape", err));
    if (!json_is_array(node.value) || count < 1 || count > RF_TENSOR_MAX_DIMS) {
        return rf_jnode_wrong(&node, err,
                              "must be an array of 1 to %d sizes (tensors of "
                              "rank 0 or above %d are not supported)",
                              RF_TENSOR_MAX_DIMS, RF_TENSOR_MAX_DIMS);
    }
    for (size_t i = 0; i < count; i++) {
        struct rf_jnode size = rf_jnode_at(&node, i);
        if (!json_is_integer(size.value) ||
            json_integer_value(size.value) < 1) {
            return rf_jnode_wrong(&size, err,
                                  "must be a positive integer (empty tensors "
                                  "are not supported)");
        }
        shape[i] = (uint64_t)json_integer_value(size.value);
    }
    *ndim = (uint32_t)count;
    return RF_OK;
}

enum rf_status rf_dtype_from_json(const struct rf_jnode *object,
                                  const char *key, enum rf_dtype *out,
                                  struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    const char *name = NULL;
    RF_TRY(rf_jnode_string(object, key, &name, err));
    if (name == NULL ||
        rf_dtype_parse(strncmp(name, "torch.", 6) == 0 ? name + 6 : name,
                       out)) {
        return RF_OK;
    }
    return rf_jnode_fail(
        &node, err, "unknown dtype \"%.40s\"; known: " RF_DTYPE_NAMES, name);
}

json_t *rf_shape_schema(void)
{
    return rf_json_schema_list(rf_json_schema_integer(1, INT64_MAX), 1,
                               RF_TENSOR_MAX_DIMS);
}

json_t *rf_dtype_schema(bool prefixed)
{
    static const char *const names[] = {
#define X(name, torch, safetensors, bytes) torch, safetensors, "torch." torch,
        RF_DTYPE_MAP(X)
#undef X
    };
    json_t *list = json_array();
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        if (prefixed || i % 3 != 2) {
            json_array_append_new(list, json_string(names[i]));
        }
    }
    return json_pack("{s:o}", "enum", list);
}

json_t *rf_shape_to_json(const struct rf_family *family, uint64_t experts,
                         const uint64_t *values)
{
    json_t *shape = json_array();
    if (family->stacked) {
        json_array_append_new(shape, json_integer((json_int_t)experts));
    }
    for (uint32_t d = 0; d < family->ndim; d++) {
        json_array_append_new(shape, json_integer((json_int_t)values[d]));
    }
    return shape;
}

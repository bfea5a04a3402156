/*
 * Any bytes as the start of a safetensors file. The first byte says how many
 * bytes of data the file has after what is given. What is accepted must lie in
 * the file, whole, one tensor after the other.
 */
#include <stdint.h>
#include <stdlib.h>

#include "checkpoint/safetensors.h"
#include "planner/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t tensor_bytes(const json_t *tensor)
{
    enum rf_dtype dtype = RF_F64;
    const json_t *shape = json_object_get(tensor, "shape");
    const char *name = json_string_value(json_object_get(tensor, "dtype"));
    uint64_t bytes;
    if (name == NULL || !rf_dtype_parse(name, &dtype)) {
        abort();
    }
    bytes = rf_dtype_bytes(dtype);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        bytes *= (uint64_t)json_integer_value(json_array_get(shape, i));
    }
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_err err = {0};
    json_t *manifest, *tensor;
    const char *name;
    uint64_t file_bytes, total = 0;
    if (size < 1) {
        return 0;
    }
    manifest = json_object();
    file_bytes = size - 1 + data[0];
    if (rf_safetensors_read(data + 1, size - 1, file_bytes, "input", manifest,
                            &err) != RF_OK) {
        if (err.text[0] == '\0' || json_object_size(manifest) != 0) {
            abort();
        }
        json_decref(manifest);
        return 0;
    }
    json_object_foreach (manifest, name, tensor) {
        uint64_t offset =
            (uint64_t)json_integer_value(json_object_get(tensor, "offset"));
        uint64_t bytes = tensor_bytes(tensor);
        if (bytes == 0 || offset < 8 || offset > file_bytes ||
            bytes > file_bytes - offset) {
            abort();
        }
        total += bytes;
    }
    if (total == 0 || total > file_bytes) {
        abort();
    }
    json_decref(manifest);
    return 0;
}

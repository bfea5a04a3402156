/*
 * The header of a safetensors file: 8 bytes with its length (little endian),
 * that many bytes of JSON, then the data, to which all offsets refer.
 *
 * Nothing in the header is believed: lengths are checked against the file,
 * sizes against shape and dtype, and the tensors, sorted by offset, must tile
 * the data without overlap or gap up to the end of the file. What cannot be
 * planned is refused as well: rank 0 or above 5, empty tensors, dtypes that are
 * not in the table. A file that fails adds nothing to the manifest.
 */
#include "checkpoint/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/model/model.h"
#include "planner/model/shape_json.h"

#define LENGTH_BYTES 8
#define HEADER_MAX_BYTES (UINT64_C(100) << 20) /* the format's own limit */

struct extent {
    const char *name; /* borrowed from the header */
    uint64_t begin, end;
};

struct header_reader {
    struct rf_jnode root;
    uint64_t data_offset, data_bytes;
    struct extent *extents;
    size_t n, cap;
    struct rf_err *err;
};

static enum rf_status check_lengths(const uint8_t *head, uint64_t head_bytes,
                                    uint64_t file_bytes, const char *file,
                                    uint64_t *header_bytes, struct rf_err *err)
{
    uint64_t length = 0;
    if (file_bytes < LENGTH_BYTES || head_bytes < LENGTH_BYTES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: too short for a safetensors file", file);
    }
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        length = length << 8 | head[i];
    }
    if (length > HEADER_MAX_BYTES || length > file_bytes - LENGTH_BYTES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: the header claims %llu bytes, the file has "
                          "%llu and %llu are allowed",
                          file, (unsigned long long)length,
                          (unsigned long long)file_bytes,
                          (unsigned long long)HEADER_MAX_BYTES);
    }
    if (length > head_bytes - LENGTH_BYTES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: the header has %llu bytes, only %llu were read",
                          file, (unsigned long long)length,
                          (unsigned long long)(head_bytes - LENGTH_BYTES));
    }
    if (length == 0 || head[LENGTH_BYTES] != '{') {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: not a safetensors file: its header does not "
                          "start with \"{\"",
                          file);
    }
    *header_bytes = length;
    return RF_OK;
}

static enum rf_status check_metadata(const struct rf_jnode *node,
                                     struct rf_err *err)
{
    const char *key;
    json_t *value;
    bool texts = json_is_object(node->value);
    json_object_foreach (node->value, key, value) {
        texts &= json_is_string(value);
    }
    return texts ? RF_OK
                 : rf_jnode_fail(node, err, "must be an object of strings");
}

/* "data_offsets": [begin, end] inside the data. */
static enum rf_status read_offsets(const struct header_reader *reader,
                                   const struct rf_jnode *node,
                                   struct extent *extent)
{
    struct rf_jnode list = rf_jnode_get(node, "data_offsets");
    const json_t *begin = json_array_get(list.value, 0);
    const json_t *end = json_array_get(list.value, 1);
    if (json_array_size(list.value) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end) || json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin)) {
        return rf_jnode_wrong(&list, reader->err,
                              "must be two offsets, the first not above the "
                              "second");
    }
    extent->begin = (uint64_t)json_integer_value(begin);
    extent->end = (uint64_t)json_integer_value(end);
    if (extent->end > reader->data_bytes) {
        return rf_jnode_fail(&list, reader->err,
                             "ends at %llu, past the %llu bytes of data in "
                             "the file",
                             (unsigned long long)extent->end,
                             (unsigned long long)reader->data_bytes);
    }
    return RF_OK;
}

static enum rf_status read_tensor(struct header_reader *reader,
                                  const char *name)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    struct rf_jnode node = rf_jnode_get(&reader->root, name);
    struct extent extent = {.name = name};
    uint64_t shape[RF_TENSOR_MAX_DIMS], bytes;
    uint32_t ndim = 0;
    enum rf_dtype dtype = RF_F32;
    enum rf_status status;
    if ((status = rf_jnode_check_keys(&node, keys, reader->err)) != RF_OK ||
        (status = rf_jnode_require(&node, "dtype", reader->err)) != RF_OK ||
        (status = rf_dtype_from_json(&node, "dtype", &dtype, reader->err)) !=
            RF_OK ||
        (status = rf_shape_from_json(&node, &ndim, shape, reader->err)) !=
            RF_OK ||
        (status = read_offsets(reader, &node, &extent)) != RF_OK) {
        return status;
    }
    bytes = rf_dtype_bytes(dtype);
    for (uint32_t d = 0; d < ndim; d++) {
        if (!rf_mul_u64(bytes, shape[d], &bytes)) {
            return rf_jnode_fail(&node, reader->err,
                                 "shape has more bytes than 64 bits count");
        }
    }
    if (bytes != extent.end - extent.begin) {
        return rf_jnode_fail(&node, reader->err,
                             "shape and dtype make %llu bytes, data_offsets "
                             "%llu",
                             (unsigned long long)bytes,
                             (unsigned long long)(extent.end - extent.begin));
    }
    RF_PUSH(reader->extents, reader->n, reader->cap, extent);
    return RF_OK;
}

static int compare_extents(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static enum rf_status check_tiling(struct header_reader *reader)
{
    uint64_t at = 0;
    const char *before = "the start of the data";
    if (reader->n == 0) {
        return rf_jnode_fail(&reader->root, reader->err, "has no tensors");
    }
    qsort(reader->extents, reader->n, sizeof(*reader->extents),
          compare_extents);
    for (size_t i = 0; i < reader->n; i++) {
        const struct extent *extent = &reader->extents[i];
        if (extent->begin != at) {
            return rf_jnode_fail(
                &reader->root, reader->err,
                "%.100s begins at %llu and %s %.100s, which "
                "ends at %llu",
                extent->name, (unsigned long long)extent->begin,
                extent->begin < at ? "overlaps" : "leaves a gap after", before,
                (unsigned long long)at);
        }
        at = extent->end;
        before = extent->name;
    }
    if (at != reader->data_bytes) {
        return rf_jnode_fail(&reader->root, reader->err,
                             "the tensors end at %llu, but the file has %llu "
                             "bytes of data",
                             (unsigned long long)at,
                             (unsigned long long)reader->data_bytes);
    }
    return RF_OK;
}

/* Moves the tensors into `manifest`, all or, when one is there already, none.
 * They are not copied: a header may have a million of them. */
static enum rf_status add_found(struct header_reader *reader, json_t *manifest)
{
    json_t *file;
    for (size_t i = 0; i < reader->n; i++) {
        const char *name = reader->extents[i].name;
        if (json_object_get(manifest, name) != NULL) {
            return rf_jnode_fail(&reader->root, reader->err,
                                 "%.100s is in another file too", name);
        }
    }
    file = json_string(reader->root.file);
    for (size_t i = 0; i < reader->n; i++) {
        const struct extent *extent = &reader->extents[i];
        json_t *tensor = json_object_get(reader->root.value, extent->name);
        json_object_del(tensor, "data_offsets");
        json_object_set(tensor, "file", file);
        json_object_set_new(
            tensor, "offset",
            json_integer((json_int_t)(reader->data_offset + extent->begin)));
        json_object_set(manifest, extent->name, tensor);
        json_object_del(reader->root.value, extent->name); /* frees the name */
    }
    json_decref(file);
    return RF_OK;
}

static enum rf_status read_header(struct header_reader *reader)
{
    enum rf_status status = RF_OK;
    const char *name;
    json_t *value;
    if (!json_is_object(reader->root.value)) {
        return rf_jnode_fail(&reader->root, reader->err, "must be an object");
    }
    json_object_foreach (reader->root.value, name, value) {
        if (status != RF_OK) {
            break;
        }
        if (strcmp(name, "__metadata__") == 0) {
            struct rf_jnode node = rf_jnode_get(&reader->root, name);
            status = check_metadata(&node, reader->err);
        } else {
            status = read_tensor(reader, name);
        }
    }
    return status != RF_OK ? status : check_tiling(reader);
}

enum rf_status rf_safetensors_read(const void *head, uint64_t head_bytes,
                                   uint64_t file_bytes, const char *file,
                                   json_t *manifest, struct rf_err *err)
{
    struct header_reader reader = {.err = err};
    uint64_t header_bytes = 0;
    json_t *header = NULL;
    enum rf_status status =
        check_lengths(head, head_bytes, file_bytes, file, &header_bytes, err);
    RF_THEN(status, rf_json_parse((const char *)head + LENGTH_BYTES,
                                  (size_t)header_bytes, file, &header, err));
    if (status != RF_OK) {
        return status;
    }
    reader.root = rf_jnode_root(header, file);
    reader.data_offset = LENGTH_BYTES + header_bytes;
    reader.data_bytes = file_bytes - reader.data_offset;
    status = read_header(&reader);
    RF_THEN(status, add_found(&reader, manifest));
    free(reader.extents);
    json_decref(header);
    return status;
}

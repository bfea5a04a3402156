/*
 * The header of a safetensors file: 8 bytes with its length (little endian),
 * that many bytes of JSON, then the data. Offsets count from the data's start.
 *
 * Nothing in the header is trusted: lengths are checked against the file, sizes
 * against shape and dtype, and the tensors, sorted by offset, must tile the
 * data without overlap or gap up to the end of the file. Tensors that cannot be
 * planned are refused as well: rank 0 or above 5, empty tensors, unknown
 * dtypes. A file that fails adds nothing to the manifest.
 */
#include "checkpoint/safetensors.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_members.h"
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
    const char *file;
    json_t *shared_file; /* shared by all its tensors, ... */
    json_t *shared;      /* ... as are equal dtypes and shapes, by their text */
    uint64_t data_offset, data_bytes;
    struct extent *extents;
    size_t n, cap;
};

enum rf_status rf_safetensors_length(const uint8_t head[8], uint64_t file_bytes,
                                     const char *file, uint64_t *out,
                                     struct rf_err *err)
{
    uint64_t length;
    memcpy(&length, head, LENGTH_BYTES);
    length = le64toh(length);
    if (length > HEADER_MAX_BYTES || length > file_bytes - LENGTH_BYTES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: claims a header of %llu bytes; the file has "
                          "%llu and the limit is %llu",
                          file, (unsigned long long)length,
                          (unsigned long long)file_bytes,
                          (unsigned long long)HEADER_MAX_BYTES);
    }
    *out = length;
    return RF_OK;
}

static enum rf_status check_lengths(const uint8_t *head, uint64_t head_bytes,
                                    uint64_t file_bytes, const char *file,
                                    uint64_t *header_bytes, struct rf_err *err)
{
    uint64_t length = 0;
    if (file_bytes < LENGTH_BYTES || head_bytes < LENGTH_BYTES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: too short for a safetensors file", file);
    }
    RF_TRY(rf_safetensors_length(head, file_bytes, file, &length, err));
    if (length > head_bytes - LENGTH_BYTES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: header truncated: %llu bytes, %llu read", file,
                          (unsigned long long)length,
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
                                   struct extent *extent, struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(node, "data_offsets");
    const json_t *begin = json_array_get(list.value, 0);
    const json_t *end = json_array_get(list.value, 1);
    if (json_array_size(list.value) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end) || json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin)) {
        return rf_jnode_wrong(&list, err,
                              "must be [begin, end] with begin <= end");
    }
    extent->begin = (uint64_t)json_integer_value(begin);
    extent->end = (uint64_t)json_integer_value(end);
    if (extent->end > reader->data_bytes) {
        return rf_jnode_fail(&list, err,
                             "ends at %llu, past the %llu bytes of data in "
                             "the file",
                             (unsigned long long)extent->end,
                             (unsigned long long)reader->data_bytes);
    }
    return RF_OK;
}

/* Replaces a member of a tensor by the equal one of another tensor, if any: a
 * million tensors have few shapes. */
static void share(const struct header_reader *reader, json_t *tensor,
                  const char *key, const char *text)
{
    json_t *known = json_object_get(reader->shared, text);
    if (known != NULL) {
        json_object_set(tensor, key, known);
    } else {
        json_object_set(reader->shared, text, json_object_get(tensor, key));
    }
}

/* Converts a header's tensor to a manifest entry. */
static void set_place(const struct header_reader *reader, json_t *tensor,
                      uint64_t begin)
{
    json_object_del(tensor, "data_offsets");
    json_object_set(tensor, "file", reader->shared_file);
    json_object_set_new(
        tensor, "offset",
        json_integer((json_int_t)(reader->data_offset + begin)));
}

static enum rf_status read_tensor(struct header_reader *reader,
                                  const struct rf_jnode *node, const char *name,
                                  struct rf_err *err)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    struct extent extent = {.name = name};
    char text[RF_SHAPE_TEXT_SIZE];
    uint64_t shape[RF_TENSOR_MAX_DIMS], bytes;
    uint32_t ndim = 0;
    enum rf_dtype dtype = RF_F32;
    RF_TRY(rf_jnode_check_keys(node, keys, err));
    RF_TRY(rf_jnode_require(node, "dtype", err));
    RF_TRY(rf_dtype_from_json(node, "dtype", &dtype, err));
    RF_TRY(rf_shape_from_json(node, &ndim, shape, err));
    RF_TRY(read_offsets(reader, node, &extent, err));
    bytes = rf_dtype_bytes(dtype);
    for (uint32_t d = 0; d < ndim; d++) {
        if (!rf_mul_u64(bytes, shape[d], &bytes)) {
            return rf_jnode_fail(node, err, "size in bytes exceeds 64 bits");
        }
    }
    if (bytes != extent.end - extent.begin) {
        return rf_jnode_fail(
            node, err, "shape and dtype give %llu bytes, data_offsets %llu",
            (unsigned long long)bytes,
            (unsigned long long)(extent.end - extent.begin));
    }
    RF_PUSH(reader->extents, reader->n, reader->cap, extent);
    set_place(reader, node->value, extent.begin);
    share(reader, node->value, "dtype", rf_dtype_header_name(dtype));
    share(reader, node->value, "shape", rf_shape_text(shape, ndim, text));
    return RF_OK;
}

static enum rf_status read_member(void *data, json_t *header, const char *name,
                                  struct rf_err *err)
{
    struct header_reader *reader = data;
    struct rf_jnode root = rf_jnode_root(header, reader->file);
    struct rf_jnode node = rf_jnode_get(&root, name);
    return strcmp(name, "__metadata__") == 0
               ? check_metadata(&node, err)
               : read_tensor(reader, &node, name, err);
}

static int compare_extents(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static enum rf_status check_tiling(struct header_reader *reader,
                                   const struct rf_jnode *root,
                                   struct rf_err *err)
{
    uint64_t at = 0;
    const char *before = "the start of the data";
    if (reader->n == 0) {
        return rf_jnode_fail(root, err, "has no tensors");
    }
    qsort(reader->extents, reader->n, sizeof(*reader->extents),
          compare_extents);
    for (size_t i = 0; i < reader->n; i++) {
        const struct extent *extent = &reader->extents[i];
        if (extent->begin != at) {
            return rf_jnode_fail(
                root, err,
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
        return rf_jnode_fail(root, err,
                             "the tensors end at %llu, but the file has %llu "
                             "bytes of data",
                             (unsigned long long)at,
                             (unsigned long long)reader->data_bytes);
    }
    return RF_OK;
}

/* Moves all tensors into `manifest`, or none if one already exists. They are
 * not copied: a header may have a million of them. */
static enum rf_status add_found(const struct header_reader *reader,
                                const struct rf_jnode *root, json_t *manifest,
                                struct rf_err *err)
{
    for (size_t i = 0; i < reader->n; i++) {
        const char *name = reader->extents[i].name;
        if (json_object_get(manifest, name) != NULL) {
            return rf_jnode_fail(root, err, "%.100s is in another file too",
                                 name);
        }
    }
    for (size_t i = 0; i < reader->n; i++) {
        const char *name = reader->extents[i].name;
        json_object_set(manifest, name, json_object_get(root->value, name));
        json_object_del(root->value, name); /* frees the name */
    }
    return RF_OK;
}

enum rf_status rf_safetensors_read(const void *head, uint64_t head_bytes,
                                   uint64_t file_bytes, const char *file,
                                   json_t *manifest, struct rf_err *err)
{
    struct header_reader reader = {.file = file};
    uint64_t header_bytes = 0;
    json_t *header = NULL;
    struct rf_jnode root;
    enum rf_status status;
    RF_TRY(
        check_lengths(head, head_bytes, file_bytes, file, &header_bytes, err));
    reader.shared_file = json_string(file);
    reader.shared = json_object();
    reader.data_offset = LENGTH_BYTES + header_bytes;
    reader.data_bytes = file_bytes - reader.data_offset;
    status = rf_json_members_read((const char *)head + LENGTH_BYTES,
                                  (size_t)header_bytes, file, read_member,
                                  &reader, &header, err);
    root = rf_jnode_root(header, file);
    RF_THEN(status, check_tiling(&reader, &root, err));
    RF_THEN(status, add_found(&reader, &root, manifest, err));
    free(reader.extents);
    json_decref(reader.shared);
    json_decref(reader.shared_file);
    json_decref(header);
    return status;
}

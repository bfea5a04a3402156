/* Safetensors headers: a good one, and every lie that one can tell. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/safetensors.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

/* A file's first bytes: length, then the header with ' for ". */
static uint8_t *head_of(const char *header, size_t *size)
{
    size_t length = strlen(header);
    uint8_t *head = malloc(8 + length);
    ck_assert_ptr_nonnull(head);
    for (int i = 0; i < 8; i++) {
        head[i] = (uint8_t)((uint64_t)length >> (8 * i));
    }
    for (size_t i = 0; i < length; i++) {
        head[8 + i] = header[i] == '\'' ? '"' : (uint8_t)header[i];
    }
    *size = 8 + length;
    return head;
}

/* Reads `header` as of a file with `data` bytes of data. */
static enum rf_status read_header(const char *header, uint64_t data,
                                  json_t *manifest, struct rf_err *err)
{
    size_t size;
    AUTO_FREE uint8_t *head = head_of(header, &size);
    return rf_safetensors_read(head, size, size + data, "x.safetensors",
                               manifest, err);
}

TEST(test_safetensors_tensors_share_equal_values)
{
    json_t *manifest = json_object(), *a, *b, *c;
    struct rf_err err = {0};
    assert_ok(
        read_header(
            "{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 16]}, "
            "'b': {'dtype': 'F32', 'shape': [4], 'data_offsets': [16, 32]}, "
            "'c': {'dtype': 'I32', 'shape': [2, 2], "
            "'data_offsets': [32, 48]}}",
            48, manifest, &err),
        err);
    a = json_object_get(manifest, "a");
    b = json_object_get(manifest, "b");
    c = json_object_get(manifest, "c");
    ck_assert_ptr_eq(json_object_get(a, "shape"), json_object_get(b, "shape"));
    ck_assert_ptr_eq(json_object_get(a, "dtype"), json_object_get(b, "dtype"));
    ck_assert_ptr_eq(json_object_get(a, "file"), json_object_get(c, "file"));
    ck_assert_uint_eq(json_array_size(json_object_get(c, "shape")), 2);
    ck_assert_str_eq(json_text_at(c, "dtype"), "I32");
    ck_assert_uint_eq(json_object_size(a), 4);
    json_decref(manifest);
}

TEST(test_safetensors_adds_tensors_with_their_places)
{
    static const char header[] =
        "{'__metadata__': {'format': 'pt'}, "
        "'b': {'dtype': 'BF16', 'shape': [3, 2], 'data_offsets': [16, 28]}, "
        "'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 16]}}   ";
    json_auto_t *manifest = json_object();
    const json_t *b;
    struct rf_err err = {0};
    assert_ok(read_header(header, 28, manifest, &err), err);
    ck_assert_uint_eq(json_object_size(manifest), 2);
    b = json_object_get(manifest, "b");
    ck_assert_int_eq(json_integer_at(b, "offset"),
                     (json_int_t)(8 + strlen(header) + 16));
    ck_assert_str_eq(json_text_at(b, "file"), "x.safetensors");
    ck_assert_str_eq(json_text_at(b, "dtype"), "BF16");
    ck_assert_uint_eq(json_array_size(json_object_get(b, "shape")), 2);
    /* the same tensor in a second file */
    assert_fails(read_header(header, 28, manifest, &err), RF_ERR_CONFIG, err,
                 "is in another file too");
    ck_assert_uint_eq(json_object_size(manifest), 2);
}

#define A_4 "'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 16]}"

static const struct {
    const char *header;
    uint64_t data;
    const char *says;
} lies[] = {
    {"", 0, "does not start with"},
    {"[]", 0, "does not start with"},
    {"{", 0, "x.safetensors:1"},
    {"{}", 0, "has no tensors"},
    {"{'__metadata__': {}}", 0, "has no tensors"},
    {"{'__metadata__': [], " A_4 "}", 16, "must be an object of strings"},
    {"{'__metadata__': {'a': 1}, " A_4 "}", 16, "must be an object of strings"},
    {"{" A_4 ", " A_4 "}", 16, "duplicate object key"},
    {"{" A_4 "} x", 16, "x.safetensors:1"},
    {"{" A_4 "}", 15, "past the 15 bytes of data"},
    {"{" A_4 "}", 17, "the tensors end at 16, but the file has 17"},
    {"{" A_4 ", 'b': {'dtype': 'U8', 'shape': [4], 'data_offsets': [15, 19]}}",
     19, "b begins at 15 and overlaps a, which ends at 16"},
    {"{" A_4 ", 'b': {'dtype': 'U8', 'shape': [4], 'data_offsets': [17, 21]}}",
     21, "b begins at 17 and leaves a gap after a"},
    {"{" A_4 ", 'b': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 16]}}",
     16, "overlaps"},
    {"{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [4, 20]}}", 20,
     "leaves a gap after the start of the data"},
    {"{'a': {'dtype': 'F64', 'shape': [4], 'data_offsets': [0, 16]}}", 16,
     "$.a: shape and dtype give 32 bytes, data_offsets 16"},
    {"{'a': {'dtype': 'F32', 'shape': [5], 'data_offsets': [0, 16]}}", 16,
     "shape and dtype give 20 bytes"},
    {"{'a': {'dtype': 'Q4', 'shape': [4], 'data_offsets': [0, 16]}}", 16,
     "$.a.dtype: unknown dtype"},
    {"{'a': {'shape': [4], 'data_offsets': [0, 16]}}", 16,
     "\"dtype\" is missing"},
    {"{'a': {'dtype': 'F32', 'shape': [4]}}", 16, "must be [begin, end]"},
    {"{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [16, 0]}}", 16,
     "must be [begin, end]"},
    {"{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [-16, 0]}}", 16,
     "must be [begin, end]"},
    {"{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 16, 3]}}", 16,
     "must be [begin, end]"},
    {"{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 1.5]}}", 16,
     "must be [begin, end]"},
    {"{'a': {'dtype': 'F32', 'shape': [], 'data_offsets': [0, 4]}}", 4,
     "rank 0 or above 5"},
    {"{'a': {'dtype': 'U8', 'shape': [1,1,1,1,1,4], 'data_offsets': [0, 4]}}",
     4, "rank 0 or above 5"},
    {"{'a': {'dtype': 'U8', 'shape': [0], 'data_offsets': [0, 0]}}", 0,
     "empty tensors are not supported"},
    {"{'a': {'dtype': 'F32', 'shape': [4611686018427387904, 4], "
     "'data_offsets': [0, 0]}}",
     0, "exceeds 64 bits"},
    {"{'a': {'dtype': 'U8', 'shape': [99999999999999999999], "
     "'data_offsets': [0, 0]}}",
     0, "too big"},
    {"{'a': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, 16], 'x': 1}}",
     16, "unknown key \"x\""},
    {"{'a': 4}", 16, "$.a: must be an object"},
};

LOOP_TEST(test_safetensors_refuses_a_header_that_lies, RF_ARRAY_SIZE(lies))
{
    json_auto_t *manifest = json_object();
    struct rf_err err = {0};
    assert_fails(read_header(lies[_i].header, lies[_i].data, manifest, &err),
                 RF_ERR_CONFIG, err, lies[_i].says);
    assert_says(err.text, "x.safetensors");
    ck_assert_uint_eq(json_object_size(manifest), 0);
}

TEST(test_safetensors_checks_the_length_before_reading)
{
    const uint8_t huge[16] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    const uint8_t long_one[16] = {100, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    json_auto_t *manifest = json_object();
    struct rf_err err = {0};
    assert_fails(rf_safetensors_read(huge, 16, 16, "x", manifest, &err),
                 RF_ERR_CONFIG, err,
                 "claims a header of 18446744073709551615 bytes");
    assert_fails(rf_safetensors_read(long_one, 16, 16, "x", manifest, &err),
                 RF_ERR_CONFIG, err, "claims a header of 100 bytes");
    assert_fails(rf_safetensors_read(long_one, 16, 1000, "x", manifest, &err),
                 RF_ERR_CONFIG, err, "x: header truncated: 100 bytes, 8 read");
    assert_fails(rf_safetensors_read(huge, 7, 7, "x", manifest, &err),
                 RF_ERR_CONFIG, err, "too short");
}

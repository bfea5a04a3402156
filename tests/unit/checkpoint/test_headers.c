/* What a checkpoint's folder says of its tensors. */
#include "checkpoint/headers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/fake_root.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

/* A file with one 2 × 3 tensor of F32. */
static void write_tensor(const char *path, const char *tensor)
{
    enum { LENGTH = 8, HEAD = 128, DATA = 24 };
    char bytes[LENGTH + HEAD + DATA] = "";
    int size = snprintf(bytes + LENGTH, HEAD,
                        "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                        "\"data_offsets\":[0,24]}}",
                        tensor);
    bytes[0] = (char)size;
    fake_root_write_bytes(path, bytes, LENGTH + (size_t)size + DATA);
}

FIXTURE(fake_root_enter, fake_root_leave)

TEST(test_headers_of_all_files_and_the_config_are_read)
{
    struct rf_err err = {0};
    json_auto_t *headers = NULL;
    const json_t *tensors;
    write_tensor("a.safetensors", "one");
    write_tensor("b.safetensors", "two");
    fake_root_write("config.json", "{\"model_type\": \"llama\"}");
    assert_ok(rf_checkpoint_headers_read(fake_root, &headers, &err), err);
    tensors = json_object_get(headers, "manifest");
    ck_assert_uint_eq(json_object_size(tensors), 2);
    ck_assert_str_eq(json_text_at(tensors, "two.file"), "b.safetensors");
    ck_assert_str_eq(json_text_at(headers, "folder"), fake_root);
    ck_assert_str_eq(json_text_at(headers, "config.model_type"), "llama");
}

TEST(test_all_files_with_bad_headers_are_named)
{
    struct rf_err err = {0};
    json_t *headers = NULL;
    fake_root_write("a.safetensors", "short");
    write_tensor("b.safetensors", "two");
    fake_root_write("c.safetensors", "a header of more bytes than there are");
    ck_assert_int_eq(rf_checkpoint_headers_read(fake_root, &headers, &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, "a.safetensors") != NULL &&
                      strstr(err.text, "b.safetensors") == NULL &&
                      strstr(err.text, "c.safetensors") != NULL,
                  "%s", err.text);
}

/* Ranks are given the path as JSON, and would fill with the pattern without. */
TEST(test_a_folder_that_ranks_cannot_be_told_is_refused)
{
    static const char name[] = "caf\xE9";
    struct rf_err err = {0};
    json_t *headers = NULL;
    ck_assert_int_eq(mkdir(name, 0700), 0);
    write_tensor("caf\xE9/a.safetensors", "one");
    assert_fails(rf_checkpoint_headers_read(name, &headers, &err),
                 RF_ERR_CONFIG, err, "not UTF-8");
}

static json_t *digests_of_folder(void)
{
    struct rf_err err = {0};
    json_t *headers = NULL, *digests;
    assert_ok(rf_checkpoint_headers_read(fake_root, &headers, &err), err);
    digests = rf_checkpoint_headers_digests(headers);
    json_decref(headers);
    return digests;
}

TEST(test_digests_of_headers_differ_only_for_the_file_that_does)
{
    json_auto_t *before, *after;
    write_tensor("a.safetensors", "one");
    write_tensor("b.safetensors", "two");
    fake_root_write("config.json", "{\"model_type\": \"llama\"}");
    before = digests_of_folder();
    ck_assert_uint_eq(json_object_size(before), 3);
    write_tensor("b.safetensors", "six");
    after = digests_of_folder();
    ck_assert(json_equal(json_object_get(before, "a.safetensors"),
                         json_object_get(after, "a.safetensors")));
    ck_assert(json_equal(json_object_get(before, "config.json"),
                         json_object_get(after, "config.json")));
    ck_assert(!json_equal(json_object_get(before, "b.safetensors"),
                          json_object_get(after, "b.safetensors")));
}

/* Versions of Jansson write numbers differently. */
TEST(test_digests_of_equal_values_are_equal)
{
    json_t *before, *after;
    write_tensor("a.safetensors", "one");
    fake_root_write("config.json", "{\"a\": [1e-6, 0.1], \"b\": {\"x\": true, "
                                   "\"y\": null}}");
    before = digests_of_folder();
    fake_root_write("config.json", "{\"b\": {\"y\": null, \"x\": true}, "
                                   "\"a\": [0.000001, 1e-1]}");
    after = digests_of_folder();
    ck_assert(json_equal(before, after));
    json_decref(after);
    fake_root_write("config.json", "{\"a\": [1e-6, 0.1], \"b\": {\"x\": false, "
                                   "\"y\": null}}");
    after = digests_of_folder();
    ck_assert(!json_equal(before, after));
    json_decref(before);
    json_decref(after);
}

static const struct {
    const char *a, *b;
} different[] = {
    {"{'a': 1}", "{'a': 2}"},
    {"{'a': 0.1}", "{'a': 0.2}"},
    {"{'a': 1}", "{'a': '1'}"},
    {"{'a': 1}", "{'a': 1.0}"},
    {"{'a': 'x'}", "{'a': 'y'}"},
    {"{'a': [1, 2]}", "{'a': [2, 1]}"},
    {"{'a': [[1], 2]}", "{'a': [1, [2]]}"},
    {"{'a': 1, 'b': 2}", "{'a': 2, 'b': 1}"},
    {"{'a': {'b': 1}, 'c': {}}", "{'a': {}, 'c': {'b': 1}}"},
    {"{'a': null}", "{'a': false}"},
    {"{'a': null}", "{}"},
};

LOOP_TEST(test_digests_of_different_values_differ, RF_ARRAY_SIZE(different))
{
    json_auto_t *a, *b;
    write_tensor("a.safetensors", "one");
    fake_root_write("config.json", Q(different[_i].a));
    a = digests_of_folder();
    fake_root_write("config.json", Q(different[_i].b));
    b = digests_of_folder();
    ck_assert(!json_equal(a, b));
}

/* Members of a JSON object one by one: what is read and kept, and that texts
 * are refused as when they are read whole. */
#include <string.h>

#include "common/json.h"
#include "common/json_members.h"
#include "tests/unit/unit.h"

static enum rf_status read_text(const char *text, rf_json_member_fn each,
                                void *data, json_t **out, struct rf_err *err)
{
    return rf_json_members_read(text, strlen(text), "f.json", each, data, out,
                                err);
}

/* Collects the keys, and empties what objects hold. */
static enum rf_status collect(void *data, json_t *object, const char *key,
                              struct rf_err *err)
{
    json_t *keys = data, *value = json_object_get(object, key);
    (void)err;
    ck_assert_uint_eq(json_object_size(object), json_array_size(keys) + 1);
    ck_assert_ptr_eq(key,
                     json_object_iter_key(json_object_iter_at(object, key)));
    json_array_append_new(keys, json_string(key));
    if (json_is_object(value)) {
        json_object_clear(value);
    }
    return RF_OK;
}

TEST(test_json_members_are_shown_in_turn_and_kept_as_they_are_left)
{
    static const char text[] = " {\"a\":1.5e3,\n\"\\u0062\\\"\" : {\"x\": [{}]}"
                               "\t, \"c\": [\"}\"] ,\r\"\xC3\xA9\":true} \n";
    struct rf_err err = {0};
    json_auto_t *keys = json_array(), *object = NULL;
    json_auto_t *want = json_pack("[s, s, s, s]", "a", "b\"", "c", "\xC3\xA9");
    json_auto_t *left = json_pack("{s:f, s:{}, s:[s], s:b}", "a", 1500.0, "b\"",
                                  "c", "}", "\xC3\xA9", 1);
    assert_ok(read_text(text, collect, keys, &object, &err), err);
    ck_assert(json_equal(keys, want));
    ck_assert(json_equal(object, left));
}

TEST(test_json_members_of_an_empty_object_are_none)
{
    struct rf_err err = {0};
    json_auto_t *keys = json_array(), *object = NULL;
    assert_ok(read_text(" { } ", collect, keys, &object, &err), err);
    ck_assert_uint_eq(json_object_size(object), 0);
    ck_assert_uint_eq(json_array_size(keys), 0);
}

static enum rf_status refuse_b(void *data, json_t *object, const char *key,
                               struct rf_err *err)
{
    size_t *seen = data;
    *seen = json_object_size(object);
    return strcmp(key, "b") == 0 ? rf_err_set(err, RF_ERR_NOMEM, "no b")
                                 : RF_OK;
}

TEST(test_json_members_end_with_the_one_that_is_refused)
{
    struct rf_err err = {0};
    json_t *object = NULL;
    size_t seen = 0;
    ck_assert_int_eq(read_text("{\"a\": 1, \"b\": 2, \"c\": 3", refuse_b, &seen,
                               &object, &err),
                     RF_ERR_NOMEM);
    ck_assert_str_eq(err.text, "no b");
    ck_assert_uint_eq(seen, 2);
    ck_assert_ptr_null(object);
}

static const char *const bad[] = {
    "",
    "{",
    "}",
    "null",
    "[1",
    "{} {}",
    "{\"a\"",
    "{\"a\":",
    "{\"a\": 1",
    "{\"a\": 1,",
    "{\"a\": 1,}",
    "{\"a\": 1,, \"b\": 2}",
    "{\"a\": 1\n \"b\": 2}",
    "{\"a\" 1}",
    "{\"a\": 1]",
    "{\"a\": 1} x",
    "{\"a\": 1}\xff",
    "{\"a\": 1\xff}",
    "{\"a\": \"\xff\"}",
    "{\"\xc0\xaf\": 1}",
    "{a: 1}",
    "{1: 1}",
    "{[]: 1}",
    "{\"a\": 1,\n \"a\": 2}",
    "{\"a\": 1, \"\\u0061\": 2}",
    "{\"a\": {\"b\": 1, \"b\": 2}}",
    "{\"a\": 99999999999999999999}",
    "{\"a\": 1e999}",
    "{\"a\": NaN}",
    "{\"\\u0000\": 1}",
    "\xEF\xBB\xBF{}",
    "{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
};

LOOP_TEST(test_json_members_are_refused_as_the_whole_text_is,
          RF_ARRAY_SIZE(bad))
{
    struct rf_err err = {0}, whole = {0};
    json_t *keys = json_array(), *none = NULL;
    const char *text = bad[_i];
    ck_assert_int_eq(read_text(text, collect, keys, &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_int_eq(rf_json_parse(text, strlen(text), "f.json", &none, &whole),
                     RF_ERR_CONFIG);
    ck_assert_ptr_null(none);
    ck_assert_str_eq(err.text, whole.text);
    json_decref(keys);
}

TEST(test_json_members_of_a_list_are_refused)
{
    struct rf_err err = {0};
    json_t *keys = json_array(), *none = NULL;
    ck_assert_int_eq(read_text("[1]", collect, keys, &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "f.json: $: must be an object, not [1]");
    ck_assert_int_eq(
        rf_json_members_read("{\0}", 3, "f.json", collect, keys, &none, &err),
        RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "f.json: NUL byte at offset 1");
    ck_assert_ptr_null(none);
    json_decref(keys);
}

/* Where two JSON values differ. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/records/records_differ.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

static const struct {
    const char *a, *b, *where; /* NULL: nowhere */
} differ[] = {
    {"{'list': [{'x': 1}], 'k': 1}", "{'list': [{'x': 1}], 'k': 1}", NULL},
    {"{'list': [{'x': 1}], 'k': 1}", "{'list': [{'x': 2}], 'k': 1}",
     ".list[0].x"},
    {"{'list': [{'x': 1}]}", "{'list': [{'x': 1}], 'new': true}", ".new"},
    /* Other programs write 2.0 as 2. */
    {"{'x': [2.0], 'y': 1}", "{'x': [2], 'y': 1.5}", ".y"},
};

LOOP_TEST(test_difference_names_the_place, RF_ARRAY_SIZE(differ))
{
    json_auto_t *a = quoted_json("%s", differ[_i].a);
    json_auto_t *b = quoted_json("%s", differ[_i].b);
    AUTO_FREE char *where = rf_json_difference(a, b);
    ck_assert_pstr_eq(where, differ[_i].where);
}

TEST(test_difference_gives_the_values)
{
    json_auto_t *a = quoted_json("{'k': {'x': 1}}");
    json_auto_t *b = quoted_json("{'k': {'x': 2, 'y': 3}}");
    const json_t *in_a = a, *in_b = a;
    free(rf_json_difference_at(a, b, &in_a, &in_b));
    ck_assert_int_eq(json_integer_value(in_a), 1);
    ck_assert_int_eq(json_integer_value(in_b), 2);
    json_object_set_new(json_object_get(b, "k"), "x", json_integer(1));
    free(rf_json_difference_at(a, b, &in_a, &in_b));
    ck_assert_ptr_null(in_a);
    ck_assert_int_eq(json_integer_value(in_b), 3);
    free(rf_json_difference_at(b, a, &in_b, &in_a));
    ck_assert_ptr_null(in_a);
    ck_assert_int_eq(json_integer_value(in_b), 3);
}

static bool count_cb(const char *path, const json_t *in_a, const json_t *in_b,
                     void *data)
{
    size_t *n = data;
    (void)in_a;
    (void)in_b;
    ck_assert_ptr_eq(strstr(path, "x"), path);
    return ++*n < 2;
}

TEST(test_difference_gives_all_places_until_it_is_told_to_stop)
{
    json_auto_t *a = quoted_json("{'p': 1, 'q': [2, 3], 'r': 4}");
    json_auto_t *b = quoted_json("{'p': 1, 'q': [3, 3]}");
    json_auto_t *c = quoted_json("{'p': 2, 'q': [3]}");
    size_t n = 0;
    ck_assert(rf_json_each_difference("x", b, b, count_cb, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert(!rf_json_each_difference("x", a, b, count_cb, &n));
    ck_assert_uint_eq(n, 2);
    ck_assert(!rf_json_each_difference("x", a, c, count_cb, &n));
    ck_assert_uint_eq(n, 3);
}

/* Where two JSON values differ. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/records/records_differ.h"
#include "tests/unit/unit.h"

TEST(test_difference_names_the_place)
{
    json_auto_t *a = json_pack("{s:[{s:i}], s:i}", "list", "x", 1, "k", 1);
    json_auto_t *b = json_pack("{s:[{s:i}], s:i}", "list", "x", 2, "k", 1);
    char *where = rf_json_difference(a, b);
    ck_assert_str_eq(where, ".list[0].x");
    free(where);
    ck_assert_ptr_null(rf_json_difference(a, a));
    json_object_set_new(b, "new", json_true());
    json_array_set_new(json_object_get(b, "list"), 0,
                       json_pack("{s:i}", "x", 1));
    where = rf_json_difference(a, b);
    ck_assert_str_eq(where, ".new");
    free(where);
}

TEST(test_difference_gives_the_values)
{
    json_auto_t *a = json_pack("{s:{s:i}}", "k", "x", 1);
    json_auto_t *b = json_pack("{s:{s:i, s:i}}", "k", "x", 2, "y", 3);
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

/* Other programs write 2.0 as 2. */
TEST(test_difference_takes_numbers_for_their_values)
{
    json_auto_t *a = json_pack("{s:[f], s:i}", "x", 2.0, "y", 1);
    json_auto_t *b = json_pack("{s:[i], s:f}", "x", 2, "y", 1.5);
    AUTO_FREE char *where = rf_json_difference(a, b);
    ck_assert_str_eq(where, ".y");
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
    json_auto_t *a =
        json_pack("{s:i, s:[i, i], s:i}", "p", 1, "q", 2, 3, "r", 4);
    json_auto_t *b = json_pack("{s:i, s:[i, i]}", "p", 1, "q", 3, 3);
    json_auto_t *c = json_pack("{s:i, s:[i]}", "p", 2, "q", 3);
    size_t n = 0;
    ck_assert(rf_json_each_difference("x", b, b, count_cb, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert(!rf_json_each_difference("x", a, b, count_cb, &n));
    ck_assert_uint_eq(n, 2);
    ck_assert(!rf_json_each_difference("x", a, c, count_cb, &n));
    ck_assert_uint_eq(n, 3);
}

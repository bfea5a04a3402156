/* Where two JSON values differ. */
#include <check.h>
#include <stdlib.h>

#include "coordinator/difference.h"

START_TEST(test_difference_names_the_place)
{
    json_t *a = json_pack("{s:[{s:i}], s:i}", "list", "x", 1, "k", 1);
    json_t *b = json_pack("{s:[{s:i}], s:i}", "list", "x", 2, "k", 1);
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
    json_decref(a);
    json_decref(b);
}
END_TEST

Suite *test_difference_suite(void);
Suite *test_difference_suite(void)
{
    Suite *suite = suite_create("difference");
    TCase *tests = tcase_create("difference");
    tcase_add_test(tests, test_difference_names_the_place);
    suite_add_tcase(suite, tests);
    return suite;
}

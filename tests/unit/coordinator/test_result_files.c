/* Reading result folders back: which run a result belongs to. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "coordinator/result_files.h"

static char top[64];

static void setup(void)
{
    snprintf(top, sizeof(top), "/tmp/refit-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
}

static void teardown(void)
{
    char *command = rf_xasprintf("rm -rf '%s'", top);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static void make_folder(const char *folder)
{
    char *path = rf_xasprintf("%s/%s", top, folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    free(path);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char *path = rf_xasprintf("%s/%s/%s", top, folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    free(path);
}

static void make_run(const char *folder)
{
    make_folder(folder);
    write_file(folder, "run.json", "{}");
    write_file(folder, "read.json",
               "{\"schema_version\": 1, \"name\": \"read\", \"summary\": {}}");
    write_file(folder, "split.json",
               "{\"schema_version\": 1, \"name\": \"split\", \"summary\": {}}");
}

static void add(struct rf_result_set *set, const char *folder)
{
    struct rf_err err = {0};
    char *path = rf_xasprintf("%s/%s", top, folder);
    ck_assert_msg(rf_result_set_add(set, path, &err) == RF_OK, "%s", err.text);
    free(path);
}

START_TEST(test_result_files_of_one_folder_are_one_run)
{
    struct rf_result_set set = {0};
    make_run("first");
    add(&set, "first/");
    ck_assert_uint_eq(set.n, 2); /* not run.json, but what begins with r */
    ck_assert_str_eq(set.files[0].name, "read");
    ck_assert_str_eq(set.files[0].run, "first");
    ck_assert(!rf_result_set_has_runs(&set));
    rf_result_set_free(&set);
}
END_TEST

START_TEST(test_result_files_have_the_order_of_the_run)
{
    struct rf_result_set set = {0};
    make_run("first");
    write_file("first", "alone.json",
               "{\"schema_version\": 1, \"name\": \"alone\", \"summary\": {}}");
    write_file("first", "run.json",
               "{\"scenarios\": [{\"name\": \"split\"}, {\"name\": \"lost\"}, "
               "{\"name\": \"read\"}]}");
    add(&set, "first");
    ck_assert_uint_eq(set.n, 3);
    ck_assert_str_eq(set.files[0].name, "split");
    ck_assert_str_eq(set.files[1].name, "read");
    ck_assert_str_eq(set.files[2].name, "alone");
    rf_result_set_free(&set);
}
END_TEST

START_TEST(test_result_files_name_the_run_of_each)
{
    struct rf_result_set set = {0};
    make_run("first");
    make_run("second");
    add(&set, _i == 0 ? "first" : ".");
    if (_i == 0) {
        add(&set, "second");
    }
    ck_assert_uint_eq(set.n, 4);
    ck_assert_str_eq(set.files[1].run, "first");
    ck_assert_str_eq(set.files[2].run, "second");
    ck_assert(rf_result_set_has_runs(&set));
    rf_result_set_free(&set);
}
END_TEST

START_TEST(test_result_files_tell_folders_of_one_name_apart)
{
    struct rf_result_set set = {0};
    make_folder("a");
    make_folder("b");
    make_run("a/same");
    make_run("b/same");
    add(&set, "a/same");
    add(&set, "b/same");
    ck_assert_str_eq(set.files[0].run, "same");
    ck_assert_ptr_nonnull(strstr(set.files[2].run, "/b/same"));
    ck_assert_str_eq(set.files[2].run, set.files[3].run);
    rf_result_set_free(&set);
}
END_TEST

START_TEST(test_result_files_given_twice_are_taken_once)
{
    struct rf_result_set set = {0};
    make_run("first");
    add(&set, "first");
    add(&set, "./first/");
    add(&set, "");
    ck_assert_uint_eq(set.n, 2);
    ck_assert_uint_eq(set.n_repeated, 4);
    rf_result_set_free(&set);
}
END_TEST

START_TEST(test_result_files_of_an_empty_folder_are_an_error)
{
    struct rf_result_set set = {0};
    struct rf_err err = {0};
    ck_assert_int_eq(rf_result_set_add(&set, top, &err), RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, top));
}
END_TEST

Suite *test_result_files_suite(void);
Suite *test_result_files_suite(void)
{
    Suite *suite = suite_create("result_files");
    TCase *tests = tcase_create("result_files");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_result_files_of_one_folder_are_one_run);
    tcase_add_test(tests, test_result_files_have_the_order_of_the_run);
    tcase_add_loop_test(tests, test_result_files_name_the_run_of_each, 0, 2);
    tcase_add_test(tests, test_result_files_tell_folders_of_one_name_apart);
    tcase_add_test(tests, test_result_files_given_twice_are_taken_once);
    tcase_add_test(tests, test_result_files_of_an_empty_folder_are_an_error);
    suite_add_tcase(suite, tests);
    return suite;
}

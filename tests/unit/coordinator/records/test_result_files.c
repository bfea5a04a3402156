/* Reading result folders back: which run a result belongs to. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/result_files.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/logged.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_result_set, rf_result_set_free)

static void write_file(const char *folder, const char *name, const char *text)
{
    AUTO_FREE char *path = rf_xasprintf("%s/%s", folder, name);
    fake_root_write(path, Q(text));
}

static void make_run(const char *folder)
{
    fake_root_run("mkdir -p %s", folder);
    write_file(folder, "run.json", "{}");
    write_file(folder, "read.json",
               "{'schema_version': 1, 'name': 'read', 'summary': {}}");
    write_file(folder, "split.json",
               "{'schema_version': 1, 'name': 'split', 'summary': {}}");
}

static void add(struct rf_result_set *set, const char *folder)
{
    struct rf_err err = {0};
    assert_ok(rf_result_set_add(set, fake_root_path(folder), &err), err);
}

FIXTURE(fake_root_make, fake_root_remove)

TEST(test_result_files_of_one_folder_are_one_run)
{
    AUTO(rf_result_set) set = {0};
    make_run("first");
    add(&set, "first/");
    ck_assert_uint_eq(set.n, 2); /* not run.json, but what begins with r */
    ck_assert_str_eq(set.files[0].name, "read");
    ck_assert_str_eq(set.files[0].run, "first");
    ck_assert(!rf_result_set_has_runs(&set));
}

TEST(test_result_files_have_the_order_of_the_run)
{
    AUTO(rf_result_set) set = {0};
    make_run("first");
    write_file("first", "alone.json",
               "{'schema_version': 1, 'name': 'alone', 'summary': {}}");
    write_file("first", "run.json",
               "{'scenarios': [{'name': 'split'}, {'name': 'lost'}, {'name': "
               "'read'}]}");
    add(&set, "first");
    ck_assert_uint_eq(set.n, 3);
    ck_assert_str_eq(set.files[0].name, "split");
    ck_assert_str_eq(set.files[1].name, "read");
    ck_assert_str_eq(set.files[2].name, "alone");
}

LOOP_TEST(test_result_files_name_the_run_of_each, 2)
{
    AUTO(rf_result_set) set = {0};
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
}

TEST(test_result_files_tell_folders_of_one_name_apart)
{
    AUTO(rf_result_set) set = {0};
    make_run("a/same");
    make_run("b/same");
    add(&set, "a/same");
    add(&set, "b/same");
    ck_assert_str_eq(set.files[0].run, "a/same");
    ck_assert_str_eq(set.files[1].run, "a/same");
    ck_assert_str_eq(set.files[2].run, "b/same");
    ck_assert_str_eq(set.files[3].run, "b/same");
}

TEST(test_result_files_given_twice_are_taken_once)
{
    AUTO(rf_result_set) set = {0};
    make_run("first");
    add(&set, "first");
    add(&set, "./first/");
    add(&set, "");
    ck_assert_uint_eq(set.n, 2);
    ck_assert_uint_eq(set.n_repeated, 4);
}

TEST(test_result_files_may_be_named_themselves)
{
    AUTO(rf_result_set) set = {0};
    struct rf_err err = {0};
    make_run("first");
    add(&set, "first/split.json");
    add(&set, "first/split.json");
    ck_assert_uint_eq(set.n, 1);
    ck_assert_uint_eq(set.n_repeated, 1);
    ck_assert_str_eq(set.files[0].name, "split");
    ck_assert_str_eq(set.files[0].run, "first");
    assert_fails(
        rf_result_set_add(&set, fake_root_path("first/run.json"), &err),
        RF_ERR_CONFIG, err, "first/run.json: not a record of a scenario");
}

TEST(test_result_files_of_an_empty_folder_are_an_error)
{
    struct rf_result_set set = {0};
    struct rf_err err = {0};
    assert_fails(rf_result_set_add(&set, fake_root, &err), RF_ERR_CONFIG, err,
                 fake_root);
}

/* Files that are no record of a scenario, and what is said of them. */
static const struct {
    const char *text, *why;
} bad[] = {
    {"", "bad.json:"},
    {"{'schema_version': 1, 'name': 'bad', 'summ", "bad.json:1:"},
    {"{\"schema_version\": 1, \"name\": \"\xff\", \"summary\": {}}",
     "save the file as UTF-8"},
    {"{'schema_version': 99, 'name': 'bad', 'summary': {}}",
     "schema_version 99"},
    {"{'schema_version': -1, 'name': 'bad', 'summary': {}}",
     "schema_version -1"},
    {"{'schema_version': 1, 'name': 7, 'summary': {}}", "no scenario name"},
    {"{'schema_version': 1, 'summary': {}}", "no scenario name"},
    {"{'schema_version': 1, 'name': 'read', 'summary': {}}",
     "copy of read.json"},
    {"{'foo': 1}", "schema_version is missing"},
    {"[1, 2]", "schema_version is missing"},
    {"{'schema_version': '1', 'name': 'bad', 'summary': {}}",
     "schema_version is not an integer"},
    {"{'schema_version': 1, 'name': 'bad'}", "not a record with a summary"},
};

LOOP_TEST(test_result_files_that_are_bad_are_named_and_left_out,
          RF_ARRAY_SIZE(bad))
{
    AUTO(rf_result_set) set = {0};
    make_run("first");
    write_file("first", "bad.json", bad[_i].text);
    write_file("first", "run.json",
               "{'scenarios': [{'name': 'bad', 'status': 'ok'}]}");
    logged_begin();
    add(&set, "first");
    add(&set, "first/"); /* says nothing again */
    logged_expect(RF_LOG_WARN, 1);
    ck_assert_uint_eq(set.n, 2);
    ck_assert_uint_eq(set.n_bad, 1);
    assert_says(logged, bad[_i].why);
    assert_says(logged, "first/bad.json");
}

TEST(test_result_files_take_a_folder_with_nothing_but_bad_ones)
{
    AUTO(rf_result_set) set = {0};
    fake_root_run("mkdir -p first/folder.json");
    write_file("first", "run.json", "{'scen");
    write_file("first", "bad.json", "{");
    logged_begin();
    add(&set, "first");
    logged_expect(RF_LOG_WARN, 3);
    ck_assert_uint_eq(set.n, 0);
    ck_assert_uint_eq(set.n_bad, 3);
}

TEST(test_result_files_of_one_scenario_are_all_left_out)
{
    AUTO(rf_result_set) set = {0};
    const char *record = "{'schema_version': 1, 'name': 'q', 'summary': {}}";
    make_run("first");
    write_file("first", "x1.json", record);
    write_file("first", "x2.json", record);
    logged_begin();
    add(&set, "first");
    logged_expect(RF_LOG_WARN, 2);
    ck_assert_uint_eq(set.n, 2);
    ck_assert_str_eq(set.files[0].name, "read");
    ck_assert_str_eq(set.files[1].name, "split");
    ck_assert_uint_eq(set.n_bad, 2);
    assert_says(
        logged,
        "x1.json: left out: duplicate record of scenario q, also in x2.json");
    assert_says(
        logged,
        "x2.json: left out: duplicate record of scenario q, also in x1.json");
}

/* Whoever wrote the files writes no lines of the log. */
TEST(test_result_files_are_spoken_of_in_one_line_each)
{
    AUTO(rf_result_set) set = {0};
    make_run("first");
    write_file("first", "run.json",
               "{\"scenarios\": [{\"name\": \"x\\nerror: forged\", "
               "\"status\": \"ok\\nerror: forged\"}]}");
    write_file("first", "a\nerror: forged.json", "{");
    write_file("first", "named.json",
               "{\"schema_version\": 1, \"name\": \"y\\nerror: forged\", "
               "\"summary\": {}}");
    logged_begin();
    add(&set, "first");
    logged_expect(RF_LOG_WARN, 2);
    ck_assert_msg(strstr(logged, "\nerror") == NULL, "%s", logged);
    assert_says(logged, "x error: forged");
    ck_assert_uint_eq(set.n, 3);
    for (size_t i = 0; i < set.n; i++) {
        ck_assert_ptr_null(strchr(set.files[i].name, '\n'));
    }
}

/* The result folder: when files appear, resuming, what is left on failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/store.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/record_text.h"
#include "coordinator/store/results.h"
#include "tests/lib/result_lab.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

static struct rf_results *open_results(void)
{
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    assert_ok(rf_results_open(&result_lab.settings, result_lab.config,
                              result_lab.model, &results, &err),
              err);
    return results;
}

/* The file that is to be stored, and what storing ended with. */
static struct told {
    char *path, *file;
    unsigned times;
    bool failed;
    char text[1024];
} seen;

static void store_op(char *path, char *text, json_t *record, unsigned n_folders,
                     void *data)
{
    for (unsigned n = n_folders; n > 0; n--) { /* the outer ones first */
        char *folder = rf_xstrdup(path);
        for (unsigned up = 0; up < n; up++) {
            *strrchr(folder, '/') = '\0';
        }
        (void)mkdir(folder, 0755);
        free(folder);
    }
    ck_assert_ptr_eq(data, &seen);
    ck_assert_ptr_null(seen.path);
    seen.path = path;
    seen.file = text != NULL ? text : rf_record_text(record);
}

static void done_op(const struct rf_err *why, void *data)
{
    ck_assert_ptr_eq(data, &seen);
    seen.times++;
    seen.failed = why != NULL;
    snprintf(seen.text, sizeof(seen.text), "%s", why != NULL ? why->text : "");
}

static const struct rf_results_ops ops = {store_op, done_op};

/* Stores the folder's files one after another. */
static bool settle(struct rf_results *results)
{
    while (seen.path != NULL) {
        struct told now = seen;
        struct rf_err why = {0};
        enum rf_status status;
        ck_assert_str_eq(rf_results_storing(results), now.path);
        status = rf_store(now.path, now.file, strlen(now.file), &why);
        seen.path = NULL;
        rf_results_stored(results, status == RF_OK ? NULL : &why);
        free(now.path);
        free(now.file);
    }
    ck_assert_ptr_null(rf_results_storing(results));
    ck_assert_uint_eq(seen.times, 1);
    return !seen.failed;
}

static bool store(struct rf_results *results, const struct rf_attempt *attempt)
{
    seen = (struct told){0};
    rf_results_serve(results, &ops, &seen);
    rf_results_store(results, attempt);
    return settle(results);
}

static bool finish(struct rf_results *results, int exit_code)
{
    seen = (struct told){0};
    rf_results_serve(results, &ops, &seen);
    rf_results_finish(results, exit_code);
    return settle(results);
}

static json_t *read_json(const char *in, const char *name)
{
    AUTO_FREE char *path = rf_xasprintf("%s/%s", in, name);
    json_t *value = NULL;
    struct rf_err err = {0};
    assert_ok(rf_json_load(path, 1 << 24, &value, &err), err);
    return value;
}

FIXTURE(result_lab_open, result_lab_close)

TEST(test_results_run_json_exists_from_the_start)
{
    AUTO(rf_results) *results = open_results();
    json_auto_t *run = read_json(rf_results_folder(results), "run.json");
    ck_assert_str_eq(rf_result_text(run, NULL, "status"), "running");
    ck_assert(json_is_null(json_object_get(run, "probe")));
    ck_assert_str_eq(
        rf_result_text(json_at(run, "scenarios[1]"), NULL, "status"),
        "not run");
}

static void resume_with(const char *folder, uint32_t n_repeats)
{
    result_lab.settings.resume = folder;
    result_lab.settings.n_repeats = n_repeats;
}

/* One attempt at a scenario, stored as a repeat. */
static void store_repeat(struct rf_results *results, size_t index,
                         uint32_t repeat, bool ok)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(index);
    attempt->repeat = repeat;
    attempt->outcome = ok ? RF_OUTCOME_OK : RF_OUTCOME_FAILED;
    ck_assert_msg(store(results, attempt), "%s", seen.text);
}

TEST(test_results_have_every_repeat_on_disk_as_soon_as_it_ends)
{
    AUTO(rf_results) *results;
    json_t *run, *record;
    resume_with(NULL, 2);
    results = open_results();
    ck_assert_uint_eq(rf_results_repeats(results), 2);
    run = read_json(rf_results_folder(results), "run.json");
    ck_assert_int_eq(json_integer_at(run, "repeat"), 2);
    for (uint32_t r = 0; r < 2; r++) {
        store_repeat(results, 0, r, true);
        record = read_json(rf_results_folder(results), "one.json");
        ck_assert_uint_eq(json_array_size(json_object_get(record, "repeats")),
                          r + 1);
        ck_assert_uint_eq(
            json_array_size(json_object_get(record, "iterations")),
            (size_t)3 * (r + 1));
        json_decref(record);
    }
    json_decref(run);
}

TEST(test_results_that_are_resumed_keep_complete_repeats)
{
    struct rf_results *results;
    const bool expected[] = {true, false, false, false, true, false};
    AUTO_FREE char *folder;
    json_auto_t *record;
    resume_with(NULL, 3);
    results = open_results();
    store_repeat(results, 0, 0, true);
    store_repeat(results, 1, 0, false);
    store_repeat(results, 0, 1, false);
    store_repeat(results, 0, 2, true);
    folder = rf_xstrdup(rf_results_folder(results));
    rf_results_close(results);
    resume_with(folder, 0);
    results = open_results();
    ck_assert_uint_eq(rf_results_repeats(results), 3);
    ck_assert_mem_eq(rf_results_complete(results), expected, sizeof(expected));
    ck_assert(!rf_results_all_complete(results));
    store_repeat(results, 0, 1, true);
    record = read_json(folder, "one.json");
    ck_assert_str_eq(rf_result_text(record, NULL, "status"), "ok");
    ck_assert_uint_eq(json_array_size(json_object_get(record, "iterations")),
                      9);
    rf_results_close(results);
}

TEST(test_results_may_be_repeated_more_often_but_not_less)
{
    struct rf_results *results;
    struct rf_err err = {0};
    json_auto_t *before, *after;
    AUTO_FREE char *folder;
    resume_with(NULL, 0);
    results = open_results();
    store_repeat(results, 0, 0, true);
    folder = rf_xstrdup(rf_results_folder(results));
    rf_results_close(results);
    resume_with(folder, 2); /* from 1 */
    results = open_results();
    ck_assert(rf_results_complete(results)[0]);
    ck_assert(!rf_results_complete(results)[2]);
    store_repeat(results, 0, 1, true);
    rf_results_close(results);
    before = read_json(folder, "run.json");
    resume_with(folder, 1);
    assert_fails(rf_results_open(&result_lab.settings, result_lab.config,
                                 result_lab.model, &results, &err),
                 RF_ERR_CONFIG, err, "started with --repeat 2");
    after = read_json(folder, "run.json");
    ck_assert(json_equal(before, after));
}

TEST(test_results_without_repeats_do_not_speak_of_them)
{
    AUTO(rf_results) *results;
    json_auto_t *record, *run;
    resume_with(NULL, 1);
    results = open_results();
    store_repeat(results, 0, 0, true);
    record = read_json(rf_results_folder(results), "one.json");
    run = read_json(rf_results_folder(results), "run.json");
    ck_assert_ptr_null(json_object_get(record, "repeats"));
    ck_assert_ptr_null(rf_result_value(record, "summary", "repeats"));
    ck_assert_ptr_null(json_at(record, "iterations[0].repeat"));
    ck_assert_ptr_null(json_object_get(run, "repeat"));
}

TEST(test_results_are_stored_one_by_one)
{
    AUTO(rf_results) *results = open_results();
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    const char *in = rf_results_folder(results);
    AUTO_FREE char *csv = rf_xasprintf("%s/summary.csv", in);
    json_auto_t *run, *record;
    ck_assert_msg(store(results, attempt), "%s", seen.text);
    record = read_json(in, "one.json");
    ck_assert_str_eq(rf_result_text(record, NULL, "run_id"),
                     rf_results_run_id(results));
    ck_assert_int_eq(access(csv, R_OK), 0);
    ck_assert(finish(results, 1));
    run = read_json(in, "run.json");
    ck_assert_str_eq(rf_result_text(run, NULL, "status"), "failed");
    ck_assert_uint_eq(json_array_size(json_at(run, "probe.nodes")), 2);
    ck_assert_str_eq(
        rf_result_text(json_at(run, "scenarios[0]"), NULL, "status"), "ok");
}

/* As a resumed run may have them. */
TEST(test_results_are_shown_in_the_order_of_the_file)
{
    AUTO(rf_results) *results = open_results();
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    for (size_t i = 2; i-- > 0;) {
        AUTO(rf_attempt) *attempt = result_lab_attempt(i);
        ck_assert(store(results, attempt));
    }
    rf_results_print(results, file);
    fclose(file);
    assert_says(text, "\none ");
    assert_says(strstr(text, "\none "), "\ntwo ");
}

TEST(test_results_that_are_not_stored_are_not_in_the_index)
{
    AUTO(rf_results) *results = open_results();
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    const char *in = rf_results_folder(results);
    AUTO_FREE char *obstacle = rf_xasprintf("%s/one.json", in);
    json_auto_t *run;
    ck_assert_int_eq(mkdir(obstacle, 0700), 0);
    ck_assert(!store(results, attempt));
    ck_assert_msg(strstr(seen.text, "result of one not stored: ") != NULL, "%s",
                  seen.text);
    ck_assert(finish(results, 1));
    run = read_json(in, "run.json");
    ck_assert_str_eq(
        rf_result_text(json_at(run, "scenarios[0]"), NULL, "status"),
        "not run");
    ck_assert_int_eq(rmdir(obstacle), 0);
}

TEST(test_results_discard_leaves_nothing)
{
    struct rf_results *results = open_results();
    ck_assert_int_eq(access(result_lab.settings.out, F_OK), 0);
    rf_results_discard(results);
    rf_results_close(results);
    ck_assert_int_ne(access(result_lab.settings.out, F_OK), 0);
}

/* A run of which scenario `one` is complete; gives the folder's name. */
static char *unfinished_run(void)
{
    AUTO(rf_results) *results = open_results();
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    char *in = rf_xstrdup(rf_results_folder(results));
    ck_assert(store(results, attempt));
    return in;
}

TEST(test_results_resume_knows_what_is_complete)
{
    AUTO_FREE char *in = unfinished_run();
    AUTO(rf_results) *results;
    json_auto_t *before = read_json(in, "run.json");
    result_lab.settings.resume = in;
    results = open_results();
    ck_assert(rf_results_complete(results)[0]);
    ck_assert(!rf_results_complete(results)[1]);
    ck_assert_str_eq(rf_results_run_id(results),
                     rf_result_text(before, NULL, "run_id"));
    rf_results_discard(results); /* what was there stays */
    json_decref(read_json(in, "one.json"));
}

/* Whoever changed the file: records are made with it. */
TEST(test_results_resume_takes_any_run_id)
{
    AUTO_FREE char *in = unfinished_run(),
                   *path = rf_xasprintf("%s/run.json", in);
    AUTO(rf_results) *results;
    AUTO(rf_attempt) *attempt;
    json_t *run = read_json(in, "run.json");
    json_object_set_new(run, "run_id",
                        json_string("0123456789abcd\xe2\x82\xac\xe2\x82\xac"));
    ck_assert_int_eq(rf_json_store(run, path, NULL), RF_OK);
    json_decref(run);
    result_lab.settings.resume = in;
    results = open_results();
    ck_assert_str_eq(rf_results_run_id(results), "0123456789abcd+");
    attempt = result_lab_attempt(1);
    ck_assert(store(results, attempt));
    run = read_json(in, "two.json");
    ck_assert_str_eq(rf_result_text(run, NULL, "run_id"), "0123456789abcd+");
    json_decref(run);
}

TEST(test_results_resume_without_nodes_forgets_nothing)
{
    struct rf_results *results = open_results();
    AUTO_FREE char *in = rf_xstrdup(rf_results_folder(results));
    char kernel[] = "Linux 9";
    struct rf_msg_hello hello;
    json_t *before, *now;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    hello.kernel = kernel;
    rf_results_node(results, 0, &hello);
    ck_assert(finish(results, 1));
    rf_results_close(results);
    before = read_json(in, "run.json");
    result_lab.settings.resume = in;
    results = open_results();
    now = read_json(in, "run.json");
    ck_assert_str_eq(rf_result_text(now, NULL, "status"), "running");
    ck_assert_str_eq(
        rf_result_text(json_at(now, "environment[0]"), NULL, "kernel"),
        "Linux 9");
    json_decref(now);
    rf_results_discard(results); /* the launch has failed */
    rf_results_close(results);
    now = read_json(in, "run.json");
    ck_assert(json_equal(before, now));
    json_decref(now);
    json_decref(before);
}

TEST(test_results_resume_of_some_keeps_the_others)
{
    static const char *const globs[] = {"two"};
    char line[4096];
    AUTO_FREE char *in = unfinished_run(), *csv;
    struct rf_results *results;
    struct rf_attempt *attempt;
    unsigned lines = 0;
    const json_t *index;
    json_auto_t *run;
    FILE *file;
    ck_assert_int_eq(rf_config_select(result_lab.config, globs, 1, false, NULL),
                     RF_OK);
    result_lab.settings.resume = in;
    results = open_results();
    attempt = result_lab_attempt(0);
    ck_assert(store(results, attempt));
    rf_attempt_destroy(attempt);
    rf_results_close(results);
    run = read_json(in, "run.json");
    index = json_object_get(run, "scenarios");
    ck_assert_uint_eq(json_array_size(index), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *entry = json_array_get(index, i);
        ck_assert_str_eq(rf_result_text(entry, NULL, "name"),
                         i == 0 ? "one" : "two");
        ck_assert_str_eq(rf_result_text(entry, NULL, "status"), "ok");
    }
    csv = rf_xasprintf("%s/summary.csv", in);
    file = fopen(csv, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        lines++;
    }
    ck_assert_uint_eq(lines, 3); /* heads, one, two */
    fclose(file);
}

/* The text of a file of the folder; the caller frees it. */
static char *read_text(const char *in, const char *name)
{
    char *path = rf_xasprintf("%s/%s", in, name), *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    free(path);
    return text;
}

/* Scenario `two` alone of a folder in which `one` has failed. */
TEST(test_results_resume_of_some_is_not_ok_beside_failures)
{
    static const char *const globs[] = {"two"};
    struct rf_results *results = open_results();
    struct rf_attempt *attempt = result_lab_attempt(0);
    struct rf_fault fault = rf_fault_make(0, 0, RF_ERR_PEER, "gone");
    char *in = rf_xstrdup(rf_results_folder(results)), *csv;
    json_t *run;
    rf_attempt_add_fault(attempt, &fault);
    ck_assert(store(results, attempt));
    rf_attempt_destroy(attempt);
    rf_results_close(results);
    result_lab.settings.resume = in;
    results = open_results(); /* all: `one` keeps its record till it ends */
    run = read_json(in, "run.json");
    ck_assert_str_eq(
        rf_result_text(json_at(run, "scenarios[0]"), NULL, "status"), "failed");
    json_decref(run);
    attempt = result_lab_attempt(1);
    ck_assert(store(results, attempt));
    rf_attempt_destroy(attempt);
    rf_results_close(results);
    csv = read_text(in, "summary.csv");
    assert_cell(csv, 0, "scenario", "one");
    assert_cell(csv, 0, "status", "failed");
    assert_cell(csv, 1, "scenario", "two");
    free(csv);
    ck_assert_int_eq(rf_config_select(result_lab.config, globs, 1, false, NULL),
                     RF_OK);
    results = open_results();
    ck_assert(finish(results, 0));
    rf_results_close(results);
    run = read_json(in, "run.json");
    ck_assert_str_eq(rf_result_text(run, NULL, "status"), "failed");
    ck_assert_int_eq(json_integer_at(run, "exit_code"), 0);
    json_decref(run);
    free(in);
}

/* It ended while nodes were asked for a checkpoint that this machine has now.
 */
TEST(test_results_resume_takes_the_model_that_a_run_never_learnt)
{
    AUTO_FREE char *in = unfinished_run();
    json_t *run = read_json(in, "run.json");
    AUTO(rf_results) *results;
    AUTO_FREE char *path = rf_xasprintf("%s/run.json", in);
    json_object_set_new(run, "model", json_null());
    ck_assert_int_eq(json_dump_file(run, path, 0), 0);
    json_decref(run);
    result_lab.settings.resume = in;
    results = open_results();
    run = read_json(in, "run.json");
    ck_assert_ptr_nonnull(json_at(run, "model.digest"));
    json_decref(run);
}

/* A model's file may change under an equal cluster.json. */
TEST(test_results_resume_refuses_another_model)
{
    AUTO_FREE char *in = unfinished_run();
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    json_object_set_new(result_lab.config->model, "comment", json_true());
    result_lab.settings.resume = in;
    assert_fails(rf_results_open(&result_lab.settings, result_lab.config,
                                 result_lab.model, &results, &err),
                 RF_ERR_CONFIG, err, "its model differs");
    assert_says(err.text, "$.digest");
}

TEST(test_results_resume_refuses_another_configuration)
{
    AUTO_FREE char *in = unfinished_run();
    char *text = rf_xstrdup(result_lab_cluster),
         *at = strstr(text, "'iterations': 3");
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    at[strlen("'iterations': ")] = '4';
    result_lab_unload();
    result_lab_load(text);
    result_lab.settings.resume = in;
    assert_fails(rf_results_open(&result_lab.settings, result_lab.config,
                                 result_lab.model, &results, &err),
                 RF_ERR_CONFIG, err, "$.scenarios[0].iterations");
    free(text);
}

TEST(test_results_one_coordinator_at_a_time)
{
    struct rf_results *first = open_results(), *second = NULL;
    struct rf_err err = {0};
    result_lab.settings.resume = rf_results_folder(first);
    assert_fails(rf_results_open(&result_lab.settings, result_lab.config,
                                 result_lab.model, &second, &err),
                 RF_ERR_CONFIG, err, "another refit-coord");
    rf_results_close(first);
}

/* Index 0: all levels are ours; 1: the first was there. */
LOOP_TEST(test_results_make_missing_parents_and_remove_only_those, 2)
{
    const char *base = result_lab.settings.out;
    AUTO_FREE char *out = rf_xasprintf("%s/b//c", base);
    struct rf_results *results;
    if (_i == 1) {
        ck_assert_int_eq(mkdir(base, 0755), 0);
    }
    result_lab.settings.out = out;
    results = open_results();
    ck_assert_int_eq(access(out, F_OK), 0);
    rf_results_discard(results);
    rf_results_close(results);
    ck_assert_int_ne(access(out, F_OK), 0);
    ck_assert_int_eq(access(base, F_OK), _i == 1 ? 0 : -1);
    if (_i == 1) {
        ck_assert_int_eq(rmdir(base), 0); /* empty */
    }
    result_lab.settings.out = base;
}

TEST(test_results_folder_that_cannot_be_made)
{
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    struct rf_results_settings bad = result_lab.settings;
    bad.out = "/dev/null/results";
    assert_fails(rf_results_open(&bad, result_lab.config, result_lab.model,
                                 &results, &err),
                 RF_ERR_CONFIG, err, "/dev/null/results");
}

TEST(test_results_folder_that_cannot_be_made_leaves_no_parent)
{
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    char *name = result_lab.config->name;
    result_lab.config->name =
        rf_xasprintf("%0300d", 0); /* longer than names may be */
    ck_assert_int_eq(rf_results_open(&result_lab.settings, result_lab.config,
                                     result_lab.model, &results, &err),
                     RF_ERR_CONFIG);
    ck_assert_int_ne(access(result_lab.settings.out, F_OK), 0);
    free(result_lab.config->name);
    result_lab.config->name = name;
}

static unsigned mode_of(const char *in, const char *name)
{
    AUTO_FREE char *path = rf_xasprintf("%s/%s", in, name);
    struct stat file;
    ck_assert_int_eq(stat(path, &file), 0);
    return file.st_mode & 07777;
}

LOOP_TEST(test_results_are_not_for_all_to_write_whatever_the_umask_is, 3)
{
    static const struct {
        mode_t umask;
        unsigned folder, file;
    } cases[] = {{0, 0755, 0644}, {022, 0755, 0644}, {077, 0700, 0600}};
    mode_t before = umask(cases[_i].umask);
    AUTO(rf_results) *results = open_results();
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    const char *in = rf_results_folder(results);
    ck_assert(store(results, attempt));
    umask(before);
    ck_assert_uint_eq(mode_of(result_lab.settings.out, "."), cases[_i].folder);
    ck_assert_uint_eq(mode_of(in, "."), cases[_i].folder);
    ck_assert_uint_eq(mode_of(in, "run.json"), cases[_i].file);
    ck_assert_uint_eq(mode_of(in, "one.json"), cases[_i].file);
    ck_assert_uint_eq(mode_of(in, "summary.csv"), cases[_i].file);
}

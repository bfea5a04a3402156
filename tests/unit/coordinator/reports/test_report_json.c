/* The document of `report --json`. */

#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/reports/report_json.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_result_set, rf_result_set_free)

static void add(struct rf_result_set *set, const char *run, const char *name,
                const char *status)
{
    struct rf_result_file file = {.path = rf_xstrdup(name),
                                  .name = rf_xstrdup(name),
                                  .folder = rf_xstrdup(run),
                                  .run = rf_xstrdup(run),
                                  .result =
                                      result_record(name, status, 50, 0.9)};
    json_object_set_new(
        file.result, "environment",
        json_loads("[{\"host\": \"a\", \"cpu\": \"big\", \"cpus\": 8, "
                   "\"memory_bytes\": -1, \"gpus\": [{\"name\": \"H\"}]}]",
                   0, NULL));
    RF_PUSH(set->files, set->n, set->cap, file);
}

TEST(test_json_says_once_what_a_run_shares)
{
    AUTO(rf_result_set) set = {0};
    json_auto_t *document;
    const json_t *runs, *node;
    add(&set, "one", "x", "ok");
    add(&set, "one", "y", "failed");
    add(&set, "two", "x", "ok");
    document = rf_report_json(&set);
    runs = json_object_get(document, "runs");
    ck_assert_uint_eq(json_array_size(runs), 2);
    ck_assert_int_eq(json_integer_at(runs, "[0].not_ok"), 1);
    node = json_at(runs, "[1].nodes[0]");
    ck_assert_str_eq(rf_result_text(node, NULL, "cpu"), "big");
    ck_assert(json_is_null(json_object_get(node, "memory_bytes")));
    ck_assert_str_eq(json_text_at(node, "gpus[0]"), "H");
}

TEST(test_json_names_a_model_that_all_of_a_run_have)
{
    AUTO(rf_result_set) set = {0};
    json_t *document, *run;
    add(&set, "one", "x", "ok");
    add(&set, "one", "y", "ok");
    for (size_t i = 0; i < 2; i++) {
        json_object_set_new(set.files[i].result, "model",
                            json_pack("{s:s, s:s}", "name", i == 0 ? "a" : "b",
                                      "dtype", "float16"));
    }
    document = rf_report_json(&set);
    run = json_at(document, "runs[0]");
    ck_assert(json_is_null(json_object_get(run, "model")));
    ck_assert_int_eq(json_integer_at(run, "models"), 2);
    ck_assert_str_eq(rf_result_text(run, NULL, "dtype"), "float16");
    json_decref(document);
}

TEST(test_json_has_the_columns_of_csv)
{
    AUTO(rf_result_set) set = {0};
    json_auto_t *document;
    const json_t *row;
    add(&set, "one", "x", "ok");
    document = rf_report_json(&set);
    row = json_at(document, "results[0]");
    for (const struct rf_result_field *f = rf_result_fields; f->key != NULL;
         f++) {
        ck_assert_msg(f->column == NULL ||
                          json_object_get(row, f->column) != NULL,
                      "no %s", f->column);
    }
    ck_assert_str_eq(rf_result_text(row, NULL, "run"), "one");
    ck_assert_double_eq(json_number_value(json_object_get(row, "median_ms")),
                        50);
    ck_assert(json_is_null(json_object_get(row, "median_low_ms")));
    ck_assert_uint_eq(json_array_size(json_object_get(row, "flags")), 0);
}

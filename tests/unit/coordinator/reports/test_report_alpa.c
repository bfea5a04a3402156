/* Results in Alpa's format, beside the specs of its own suite. */
#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/reports/report_alpa.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

static json_t *side_json(const char *mesh, const char *spec)
{
    return json_pack("{s:s, s:o, s:o}", "layout", "spec", "mesh",
                     json_loads(mesh, 0, NULL), "spec",
                     json_loads(spec, 0, NULL));
}

static json_t *record(const char *mesh, const char *spec, const char *strategy,
                      const char *balance)
{
    json_t *result = result_record("x", "ok", 1000, 0.9);
    json_t *scenario = json_object_get(result, "scenario");
    json_object_set_new(scenario, "train", side_json(mesh, spec));
    json_object_set_new(scenario, "infer", side_json("[1, 1]", "[\"R\"]"));
    json_object_set_new(scenario, "strategy", json_string(strategy));
    json_object_set_new(scenario, "balance", json_string(balance));
    json_object_set_new(
        result, "cluster",
        json_loads("{\"model\": {\"tensor\": {\"shape\": [16, 4]}}}", 0, NULL));
    json_object_set_new(
        result, "iterations",
        json_loads("[{\"refit_ms\": 1000}, {\"refit_ms\": 3000}]", 0, NULL));
    return result;
}

static const struct {
    const char *mesh, *spec, *text;
} specs[] = {
    {"[2, 4]", "[\"S0\", \"R\", \"R\"]",
     "ShardingSpec((Chunked(2), NoSharding(), NoSharding()), "
     "(ShardedAxis(axis=0), Replicated(replicas=4)))"},
    {"[2, 4]", "[\"R\", \"R\", \"R\"]",
     "ShardingSpec((NoSharding(), NoSharding(), NoSharding()), "
     "(Replicated(replicas=8),))"},
    {"[2, 4]", "[\"R\", \"S01\", \"R\"]",
     "ShardingSpec((NoSharding(), Chunked(8), NoSharding()), "
     "(ShardedAxis(axis=0),))"},
    {"[2, 4]", "[\"S1\", \"R\"]",
     "ShardingSpec((Chunked(4), NoSharding()), (Replicated(replicas=2), "
     "ShardedAxis(axis=0)))"},
    {"[1, 4]", "[\"S1\", \"R\"]",
     "ShardingSpec((Chunked(4), NoSharding()), (ShardedAxis(axis=0),))"},
    {"[2, 4]", "[\"S1\", \"S0\"]",
     "ShardingSpec((Chunked(4), Chunked(2)), (ShardedAxis(axis=1), "
     "ShardedAxis(axis=0)))"},
    {"[1, 1]", "[\"R\"]",
     "ShardingSpec((NoSharding(),), "
     "(Replicated(replicas=1),))"},
};

LOOP_TEST(test_alpa_specs_read_as_its_own, RF_ARRAY_SIZE(specs))
{
    json_auto_t *result =
        record(specs[_i].mesh, specs[_i].spec, "broadcast", "order");
    struct rf_err err = {0};
    json_auto_t *entry = rf_report_alpa_entry(result, &err);
    ck_assert_msg(entry != NULL, "%s", err.text);
    ck_assert_str_eq(rf_result_text(entry, NULL, "src_sharding_spec"),
                     specs[_i].text);
}

static const struct {
    const char *strategy, *balance, *mode, *theirs;
    bool allgather;
} modes[] = {
    {"send_recv", "size", "send_recv", "normal", false},
    {"allgather", "size", "send_recv", "normal", true},
    {"broadcast", "none", "broadcast", "no_loadbalance", false},
    {"broadcast", "order", "broadcast", "loadbalance_order", false},
    {"hierarchical", "size", NULL, NULL, false},
    {"broadcast", "time", NULL, NULL, false},
};

LOOP_TEST(test_alpa_modes_and_times_are_its_own_or_left_out,
          RF_ARRAY_SIZE(modes))
{
    json_auto_t *result = record("[2, 4]", "[\"S0\", \"R\"]",
                                 modes[_i].strategy, modes[_i].balance);
    struct rf_err err = {0};
    json_auto_t *entry = rf_report_alpa_entry(result, &err);
    if (modes[_i].mode == NULL) {
        ck_assert_ptr_null(entry);
        assert_says(err.text, "Alpa has no strategy");
    } else {
        ck_assert_str_eq(rf_result_text(entry, NULL, "resharding_mode"),
                         modes[_i].mode);
        ck_assert_str_eq(
            rf_result_text(entry, NULL, "resharding_loadbalance_mode"),
            modes[_i].theirs);
        ck_assert_int_eq(
            json_is_true(json_object_get(entry, "use_local_allgather")),
            modes[_i].allgather);
        ck_assert_double_eq_tol(
            json_number_value(json_object_get(entry, "exec_time_mean")), 2,
            1e-12);
        ck_assert_double_eq_tol(
            json_number_value(json_object_get(entry, "exec_time_var")), 1,
            1e-12);
    }
}

TEST(test_alpa_has_neither_models_nor_failures)
{
    json_auto_t *model = result_record("x", "ok", 50, 0.9);
    json_auto_t *failed =
        record("[2, 4]", "[\"S0\", \"R\"]", "send_recv", "size");
    struct rf_err err = {0};
    ck_assert_ptr_null(rf_report_alpa_entry(model, &err));
    assert_says(err.text, "is not of one tensor");
    json_object_set_new(failed, "status", json_string("failed"));
    ck_assert_ptr_null(rf_report_alpa_entry(failed, &err));
    assert_says(err.text, "its status is failed");
}

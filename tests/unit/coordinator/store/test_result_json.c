/* The record of a scenario: every field, with known answers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/record_text.h"
#include "coordinator/store/result_json.h"
#include "tests/lib/auto_planner.h"
#include "tests/lib/result_lab.h"
#include "tests/unit/unit.h"

/* As it stands in its file. */
static json_t *record_of(const struct rf_attempt *attempt)
{
    json_auto_t *nodes = json_pack("[{s:s}, {s:s}]", "host", "a", "host", "b"),
                *made;
    struct rf_err err = {0};
    AUTO_FREE char *text;
    struct rf_result_run run = {.config = result_lab.config,
                                .model = result_lab.model,
                                .run_id = "0123",
                                .folder = "/the results",
                                .maker = result_lab.settings.maker,
                                .environment = nodes};
    json_t *record = NULL;
    made = rf_result_json(&run, attempt);
    text = rf_record_text(made);
    ck_assert_msg(rf_json_parse(text, strlen(text), "record", &record, &err) ==
                      RF_OK,
                  "%s", err.text);
    return record;
}

static double number(const json_t *record, const char *object, const char *key)
{
    double value = NAN;
    ck_assert_msg(rf_result_number(record, object, key, &value), "%s.%s",
                  object, key);
    return value;
}

FIXTURE(result_lab_open, result_lab_close)

TEST(test_results_record_has_no_replay_without_a_plan)
{
    AUTO(rf_attempt) *planned = result_lab_attempt(0);
    AUTO(rf_attempt) *refused = rf_attempt_create(1, 1, NULL);
    json_auto_t *a = record_of(planned), *b = record_of(refused);
    ck_assert_str_eq(rf_result_text(a, NULL, "replay"),
                     "refit-coord rerun '/the results/one.json'");
    ck_assert(json_is_null(json_object_get(b, "replay")));
}

TEST(test_results_record_has_every_field)
{
    static const char *const keys[] = {"schema_version",
                                       "tool",
                                       "run_id",
                                       "argv",
                                       "replay",
                                       "started_at",
                                       "finished_at",
                                       "status",
                                       "errors",
                                       "environment",
                                       "model",
                                       "scenario",
                                       "plan",
                                       "iterations",
                                       "summary",
                                       "bound",
                                       "memory",
                                       "verification",
                                       "warmup_iterations",
                                       "schedule",
                                       "setup",
                                       "cluster",
                                       "name",
                                       "schedule_bound",
                                       "flags",
                                       "iterations_ended_by"};
    static const char *const plan_keys[] = {
        "digest",           "transfers",        "bytes_total",
        "bytes_local",      "bytes_intra_node", "bytes_inter_node",
        "max_send_bytes",   "max_recv_bytes",   "bound_send_bytes",
        "bound_recv_bytes", "plan_ms"};
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record = record_of(attempt);
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        ck_assert_msg(json_object_get(record, keys[i]) != NULL, "%s", keys[i]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(plan_keys); i++) {
        ck_assert_msg(json_object_get(json_object_get(record, "plan"),
                                      plan_keys[i]) != NULL,
                      "plan.%s", plan_keys[i]);
    }
    ck_assert_str_eq(rf_result_text(record, NULL, "status"), "ok");
    ck_assert_str_eq(rf_result_text(record, "head", "libuv"), "1.2.3");
    ck_assert_str_ne(rf_result_text(record, "head", "kernel"), "-");
    ck_assert_uint_eq(json_array_size(json_object_get(record, "memory")), 4);
}

static double setup_of(const json_t *record, const char *key)
{
    const json_t *value =
        json_object_get(json_object_get(record, "setup"), key);
    ck_assert_msg(json_is_real(value), "%s", key);
    return json_real_value(value);
}

/* Connecting is part of the ranks' preparation; planning came before the run.
 */
TEST(test_results_setup_adds_up_to_its_total)
{
    static const char *const keys[] = {
        "launch_ms",    "plan_ms",   "store_ms",  "prepare_ms",
        "connect_ms",   "probe_ms",  "fill_ms",   "refit_ms",
        "yardstick_ms", "verify_ms", "export_ms", "close_ms"};
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record;
    double sum = 0;
    attempt->begun_ns = 5000000;
    attempt->finished_ns = attempt->begun_ns;
    for (int64_t p = 0; p < RF_PHASES; p++) {
        attempt->phase_ns[p] = (p + 1) * 1000000;
        attempt->finished_ns += attempt->phase_ns[p];
    }
    attempt->scenario->built_ns = 9000000;
    attempt->ranks[1].connect_ns = 1500000;
    record = record_of(attempt);
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        sum += setup_of(record, keys[i]);
    }
    ck_assert_double_eq_tol(sum, setup_of(record, "total_ms"), 1e-6);
    ck_assert_double_eq_tol(setup_of(record, "plan_ms"), 9, 1e-6);
    ck_assert_double_eq_tol(setup_of(record, "connect_ms"), 1.5, 1e-6);
    ck_assert_double_eq_tol(setup_of(record, "prepare_ms"), 2.5, 1e-6);
}

TEST(test_results_iteration_takes_as_long_as_its_slowest_rank)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record = record_of(attempt);
    const json_t *list = json_object_get(record, "iterations");
    const json_t *first = json_array_get(list, 0);
    const json_t *rank = json_at(first, "ranks[3]");
    ck_assert_uint_eq(json_array_size(list), 3);
    ck_assert_uint_eq(
        json_array_size(json_object_get(record, "warmup_iterations")), 1);
    ck_assert_int_eq(json_integer_at(first, "index"), 0);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "refit_ms")), 14, 1e-9);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "span_ms")), 14.3, 1e-9);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "start_skew_us")), 300, 1e-9);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(rank, "unattributed_ms")), 7.5, 1e-9);
    ck_assert_int_eq(json_integer_at(rank, "received_bytes"), 203);
}

TEST(test_results_have_times_that_some_ranks_report)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record = record_of(attempt);
    const json_t *list = json_object_get(record, "iterations");
    const json_t *ranks = json_at(list, "[0].ranks");
    const json_t *first = json_array_get(ranks, 0);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "device_ms")), 9, 1e-9);
    ck_assert_ptr_null(json_at(ranks, "[1].device_ms"));
    ck_assert_ptr_null(json_at(ranks, "[0].quantize_ms"));
    ck_assert_ptr_null(json_at(ranks, "[0].amax_ms"));
    ck_assert_double_eq_tol(
        json_number_value(json_at(ranks, "[1].quantize_ms")), 1.25, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_at(ranks, "[1].amax_ms")),
                            0.25, 1e-9);
}

TEST(test_results_summary_bound_and_efficiency_are_known)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record = record_of(attempt);
    double total = (double)attempt->scenario->plan->totals.bytes_total;
    ck_assert_double_eq_tol(number(record, "summary", "median_ms"), 15, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "mean_ms"), 15, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "min_ms"), 14, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "max_ms"), 16, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "stddev_ms"), 1, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "algbw_gbytes_per_s"),
                            total / 1e6 / 15, 1e-9);
    ck_assert(number(record, "bound", "ms") > 0);
    ck_assert_double_eq_tol(number(record, "bound", "efficiency"),
                            number(record, "bound", "ms") / 15, 1e-9);
    ck_assert_str_ne(rf_result_text(record, "bound", "resource"), "-");
}

TEST(test_results_summary_has_the_memory_of_the_largest_rank)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_t *record = record_of(attempt);
    ck_assert(
        json_is_null(rf_result_value(record, "summary.memory", "peak_bytes")));
    json_decref(record);
    attempt->closed = true;
    attempt->ranks[0].host_peak_bytes = 5000;
    attempt->ranks[1].host_peak_bytes = 7000;
    attempt->ranks[1].has_device = true;
    attempt->ranks[1].device.foreign_bytes = 300;
    attempt->ranks[2].device_peak_bytes = 9000;
    record = record_of(attempt);
    ck_assert_double_eq_tol(number(record, "summary.memory", "peak_bytes"),
                            7000, 0.5);
    ck_assert_double_eq_tol(
        number(record, "summary.memory", "predicted_bytes"),
        (double)rf_scenario_rank_bytes(attempt->scenario, 1), 0.5);
    ck_assert_double_eq_tol(number(record, "summary.memory", "host_peak_bytes"),
                            7000, 0.5);
    ck_assert_double_eq_tol(
        number(record, "summary.memory", "device_peak_bytes"), 9000, 0.5);
    ck_assert_double_eq_tol(number(record, "summary.memory", "foreign_bytes"),
                            300, 0.5);
    json_decref(record);
}

TEST(test_results_summary_has_means_over_ranks_of_each_stage)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record;
    attempt->closed = true;
    for (uint32_t r = 0; r < 4; r++) {
        attempt->ranks[r].host_peak_bytes = 1000 * (r + 1);
        attempt->ranks[r].has_stages = true;
        attempt->ranks[r].stages =
            (struct rf_msg_memory_stages){.before_bytes = 10,
                                          .prepared_bytes = 100 * r,
                                          .refit_bytes = 200 * r,
                                          .after_bytes = 30};
    }
    record = record_of(attempt);
    ck_assert_double_eq_tol(number(record, "summary.memory", "peak_mean_bytes"),
                            2500, 0.5);
    ck_assert_double_eq_tol(
        number(record, "summary.memory.stages.prepared", "mean_bytes"), 150,
        0.5);
    ck_assert_double_eq_tol(
        number(record, "summary.memory.stages.refit", "max_bytes"), 600, 0.5);
    ck_assert_double_eq_tol(
        number(record, "summary.memory.stages.before", "max_bytes"), 10, 0.5);
    ck_assert_double_eq_tol(
        number(record, "summary.memory.stages.after", "mean_bytes"), 30, 0.5);
}

TEST(test_results_have_the_yardstick_of_each_iteration)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record = record_of(attempt);
    const json_t *list = json_object_get(record, "iterations");
    for (size_t i = 0; i < 3; i++) { /* the slowest of 4 ranks */
        const json_t *one = json_array_get(list, i);
        ck_assert_double_eq_tol(
            json_number_value(json_object_get(one, "yardstick_ms")), 10, 1e-9);
        ck_assert_double_eq_tol(
            json_number_value(json_object_get(one, "yardstick_ratio")),
            (14.0 + (double)i) / 10, 1e-9);
    }
    ck_assert_double_eq_tol(number(record, "summary.yardstick_ratio", "median"),
                            1.5, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary.yardstick_ratio", "count"),
                            3, 1e-9);
}

/* The same refits under load: 1.5, 2 and 2.5 times as long, while the load of
 * rank 1 is slowed by 2, 4 and 5. Other figures are those without it. */
TEST(test_results_have_the_refit_under_load_of_each_iteration)
{
    static const int64_t slowed[] = {2, 4, 5};
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record;
    const json_t *list, *ranks;
    for (size_t i = 0; i < 3; i++) {
        struct rf_iteration *of = &attempt->iterations[1 + i];
        of->loaded = rf_xcalloc(4, sizeof(*of->loaded));
        for (uint32_t r = 0; r < 4; r++) {
            of->loaded[r] = of->ranks[r];
            of->loaded[r].ns = of->ranks[3].ns * (int64_t)(3 + i) / 2;
            of->loaded[r].load_alone_ns = RF_ABSENT_I64;
        }
        of->loaded[1].load_alone_ns = of->loaded[1].ns;
        of->loaded[1].load_alone_bytes = 20 * (uint64_t)of->loaded[1].ns;
        of->loaded[1].load_ns = of->loaded[1].ns;
        of->loaded[1].load_bytes =
            20 * (uint64_t)(of->loaded[1].ns / slowed[i]);
    }
    record = record_of(attempt);
    list = json_object_get(record, "iterations");
    for (size_t i = 0; i < 3; i++) {
        const json_t *one = json_array_get(list, i);
        ck_assert_double_eq_tol(number(one, NULL, "refit_ms"), 14 + (double)i,
                                1e-9);
        ck_assert_double_eq_tol(number(one, NULL, "loaded_ms"),
                                (14 + (double)i) * (3 + (double)i) / 2, 1e-9);
        ck_assert_double_eq_tol(number(one, NULL, "load_alone_gbytes_per_s"),
                                20, 1e-6);
        ck_assert_double_eq_tol(number(one, NULL, "load_slowdown"),
                                (double)slowed[i], 1e-6);
        ranks = json_object_get(one, "loaded_ranks");
        ck_assert_uint_eq(json_array_size(ranks), 4);
        ck_assert_ptr_null(
            json_object_get(json_array_get(ranks, 0), "load_bytes"));
        ck_assert_double_eq_tol(
            number(json_array_get(ranks, 1), NULL, "load_alone_bytes"),
            20e6 * number(one, NULL, "loaded_ms"), 1);
    }
    ck_assert_double_eq_tol(number(record, "summary", "median_ms"), 15, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary.load", "median_ms"), 30,
                            1e-9);
    ck_assert_double_eq_tol(
        number(record, "summary.load.refit_slowdown", "median"), 2, 1e-9);
    ck_assert_double_eq_tol(
        number(record, "summary.load.load_slowdown", "median"), 4, 1e-6);
    ck_assert_double_eq_tol(
        number(record, "summary.load.load_slowdown", "count"), 3, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary.load", "gbytes_per_s"), 5,
                            1e-6);
}

/* Nothing is faster than a bound. */
TEST(test_results_know_a_bound_that_was_beaten)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_t *record = record_of(attempt);
    ck_assert(json_is_true(rf_result_value(record, "bound", "valid")));
    ck_assert_uint_eq(json_array_size(json_object_get(record, "flags")), 0);
    json_decref(record);
    for (uint32_t n = 0; n < 2; n++) { /* memory that is far too slow */
        attempt->before.copy_gbytes_per_s[n] = 1e-9;
        attempt->after.copy_gbytes_per_s[n] = 1e-9;
    }
    record = record_of(attempt);
    ck_assert(number(record, "bound", "efficiency") > 1.02);
    ck_assert(json_is_false(rf_result_value(record, "bound", "valid")));
    assert_says(rf_result_text(record, "bound", "underestimated"), "memory of");
    ck_assert_str_eq(json_text_at(record, "flags[0]"), "bound_not_valid");
    json_decref(record);
}

/* A yardstick that did better than the probes raises the capacity. */
TEST(test_results_bound_takes_the_best_yardstick)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    AUTO(rf_capacities) links;
    for (uint32_t r = 0; r < 4; r++) {
        attempt->ranks[r].yardstick = (struct rf_msg_yardstick){
            .copied_bytes = 20000000, .sent_bytes = 10000000};
    }
    rf_attempt_keep_yardstick(attempt, 3);
    ck_assert(rf_attempt_links(attempt, &links));
    ck_assert_double_eq_tol(links.copy_gbytes_per_s[0], 5, 1e-9); /* in 8 ms */
    ck_assert_double_eq_tol(links.copy_gbytes_per_s[1], 4, 1e-9);
    ck_assert_double_eq_tol(links.out_gbytes_per_s[0], 2, 1e-9); /* in 10 ms */
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 0.5);
}

/* The lab's cluster file with another method. */
static void load_with_method(const char *method)
{
    char *text = rf_xstrdup(result_lab_cluster),
         *at = strstr(text, "'warmup': 1");
    AUTO_FREE char *with = rf_xasprintf("%.*s'method': '%s', %s",
                                        (int)(at - text), text, method, at);
    result_lab_unload();
    result_lab_load(with);
    free(text);
}

/* The next iteration, in which node b counted something. */
static json_t *record_counted(struct rf_attempt *attempt)
{
    char name[] = "eth0";
    struct rf_msg_counted eth0 = {.name = name,
                                  .sent_bytes = 1000,
                                  .received_bytes = 2000,
                                  .rdma_sent_bytes = RF_ABSENT_U64,
                                  .rdma_received_bytes = RF_ABSENT_U64,
                                  .dropped = RF_ABSENT_U64};
    const struct rf_msg_network network = {
        .segments = 7, .interfaces = &eth0, .n_interfaces = 1};
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        attempt->pending[r].link_sent_bytes = 10 + r;
        attempt->pending[r].link_received_bytes = r == 2 ? RF_ABSENT_U64 : 20;
    }
    attempt->n_wanted = 5;
    rf_attempt_take_network(attempt, 1, &network);
    rf_attempt_keep(attempt, 4);
    return record_of(attempt);
}

TEST(test_results_have_counted_beside_planned_bytes)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    const struct rf_schedule *schedule = attempt->scenario->schedule;
    json_auto_t *record = record_counted(attempt), *wanted;
    const json_t *iterations = json_object_get(record, "iterations");
    ck_assert_uint_eq(json_array_size(json_at(iterations, "[0].network")), 0);
    ck_assert_uint_gt(schedule->node_send[1] + schedule->node_recv[1], 0);
    wanted = json_pack(
        "[{s:s, s:I, s:I, s:i, s:i, s:i, s:[{s:s, s:i, s:i}]}]", "host", "b",
        "planned_sent_bytes", (json_int_t)schedule->node_send[1],
        "planned_received_bytes", (json_int_t)schedule->node_recv[1],
        "loopback_bytes", 0, "segments", 7, "retransmits", 0, "interfaces",
        "name", "eth0", "sent_bytes", 1000, "received_bytes", 2000);
    ck_assert(json_equal(json_at(iterations, "[3].network"), wanted));
}

TEST(test_results_plan_the_bytes_that_an_encoding_left)
{
    AUTO(rf_attempt) *attempt;
    json_auto_t *record;
    load_with_method("tcp', 'update': {'density': 0.1}, 'encoding': 'auto");
    attempt = result_lab_attempt(0);
    record = record_counted(attempt);
    ck_assert_int_eq(
        json_integer_at(record, "iterations[3].network[0].planned_sent_bytes"),
        12 + 13);
    ck_assert_int_eq(json_integer_at(record, "iterations[3].network[0]."
                                             "planned_received_bytes"),
                     20);
}

static const char *const without_network[] = {"null",
                                              "disk', 'disk': {'folder': '/x'},"
                                              " 'strategy': 'send_recv"};

LOOP_TEST(test_results_plan_no_bytes_that_need_no_network,
          RF_ARRAY_SIZE(without_network))
{
    AUTO(rf_attempt) *attempt;
    json_auto_t *record;
    load_with_method(without_network[_i]);
    attempt = result_lab_attempt(0);
    record = record_counted(attempt);
    ck_assert(json_is_null(
        json_at(record, "iterations[3].network[0].planned_sent_bytes")));
}

TEST(test_results_of_a_method_that_moves_nothing_claim_no_bandwidth)
{
    AUTO(rf_attempt) *attempt;
    json_auto_t *record;
    load_with_method("null");
    attempt = result_lab_attempt(0);
    record = record_of(attempt);
    ck_assert_double_eq_tol(number(record, "summary", "median_ms"), 15, 1e-9);
    ck_assert(json_is_null(json_at(record, "summary.algbw_gbytes_per_s")));
    ck_assert(json_is_null(json_at(record, "bound.efficiency")));
}

/* Memory so slow that copying all would have taken far longer. */
static json_t *record_of_slow_memory(struct rf_attempt *attempt)
{
    attempt->before.copy_gbytes_per_s[0] = 1e-9;
    attempt->after.copy_gbytes_per_s[0] = 1e-9;
    return record_of(attempt);
}

/* All ranks on one node, by shared memory. */
static struct rf_attempt *attempt_of_shm(void)
{
    static const char one_node[] =
        "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': 'a', "
        "'slots': 4}], 'model': {'megatron': {'num_layers': 2, 'hidden_size': "
        "64, 'num_attention_heads': 4, 'vocab_size': 128}}, 'scenarios': "
        "[{'name': 'one', 'train': {'tp': 4}, 'infer': {'tp': 2}, 'method': "
        "'shm', 'warmup': 1, 'iterations': 3}]}";
    result_lab_unload();
    result_lab_load(one_node);
    return result_lab_attempt(0);
}

/* Without yardsticks nobody knows what was left: it may be all. */
TEST(test_results_take_a_beaten_bound_for_zero_copy_where_nobody_knows)
{
    AUTO(rf_attempt) *attempt = attempt_of_shm();
    json_auto_t *record = record_of_slow_memory(attempt);
    ck_assert(json_is_true(rf_result_value(record, "bound", "zero_copy")));
    ck_assert(json_is_null(rf_result_value(record, "bound", "efficiency")));
    ck_assert(json_is_null(rf_result_value(record, "bound", "valid")));
}

/* Where ranks say what they left in place, bounds are those of the rest and are
 * judged. */
TEST(test_results_judge_the_bound_of_what_was_not_left)
{
    AUTO(rf_attempt) *attempt = attempt_of_shm();
    json_t *record;
    attempt->ranks[0].yardstick =
        (struct rf_msg_yardstick){.copied_bytes = 1, .left_bytes = 1};
    record = record_of_slow_memory(attempt);
    ck_assert(json_is_true(rf_result_value(record, "bound", "zero_copy")));
    ck_assert(number(record, "bound", "efficiency") > 1.02);
    ck_assert(json_is_false(rf_result_value(record, "bound", "valid")));
    json_decref(record);
    for (uint32_t r = 0; r < 4; r++) { /* all of it */
        attempt->ranks[r].yardstick.left_bytes = UINT64_C(1) << 40;
    }
    record = record_of_slow_memory(attempt);
    ck_assert(json_is_true(rf_result_value(record, "bound", "zero_copy")));
    ck_assert_double_eq(number(record, "bound", "ms"), 0);
    ck_assert(json_is_true(rf_result_value(record, "bound", "valid")));
    json_decref(record);
}

TEST(test_results_bound_takes_the_better_probe)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    AUTO(rf_capacities) links;
    ck_assert(rf_attempt_links(attempt, &links));
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 2);
    ck_assert_double_eq(links.copy1_gbytes_per_s[0], 1); /* only before */
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 0.5);
    ck_assert_double_eq(links.pair_latency_us[1], 20);
}

TEST(test_results_of_a_scenario_that_could_not_begin)
{
    AUTO(rf_attempt) *attempt = rf_attempt_create(1, 1, NULL);
    struct rf_fault fault =
        rf_fault_make(RF_NONE, RF_NONE, RF_ERR_NOMEM, "too large");
    json_auto_t *record;
    rf_attempt_add_fault(attempt, &fault);
    record = record_of(attempt);
    ck_assert_str_eq(rf_result_text(record, NULL, "status"), "failed");
    ck_assert_str_eq(rf_result_text(record, NULL, "name"), "two");
    ck_assert(json_is_null(json_object_get(record, "plan")));
    ck_assert(json_is_null(json_at(record, "summary.median_ms")));
    ck_assert(json_is_null(json_at(record, "bound.ms")));
}

TEST(test_results_first_error_is_the_cause)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    struct rf_fault died = rf_fault_make(0, 3, RF_ERR_PEER, "died");
    struct rf_fault saw =
        rf_fault_make(RF_NONE, RF_NONE, RF_ERR_TIMEOUT, "saw");
    json_t *record, *errors;
    AUTO_FREE char *text;
    died.phase = rf_xstrdup("running");
    died.lines.list = rf_xcalloc(1, sizeof(char *));
    died.lines.list[died.lines.n++] = rf_xstrdup("last words");
    rf_attempt_add_fault(attempt, &died);
    rf_attempt_add_fault(attempt, &saw);
    ck_assert_int_eq(attempt->outcome, RF_OUTCOME_FAILED);
    record = record_of(attempt);
    errors = json_object_get(record, "errors");
    text = json_dumps(errors, JSON_COMPACT);
    ck_assert_str_eq(
        text, "[{\"host\":\"a\",\"rank\":3,\"phase\":\"running\",\"status\":"
              "\"peer lost\",\"text\":\"died\",\"stderr\":[\"last words\"],"
              "\"log\":\"logs/one/rank-3.log\","
              "\"consequence\":false},{\"host\":null,\"rank\":null,\"phase\":"
              "null,\"status\":\"timed out\",\"text\":\"saw\",\"stderr\":[],"
              "\"log\":null,\"consequence\":true}]");
    json_decref(record);
}

TEST(test_results_name_the_first_wrong_element)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    struct rf_wrong_element *wrong = rf_xcalloc(1, sizeof(*wrong));
    json_auto_t *record;
    AUTO_FREE char *text;
    *wrong = (struct rf_wrong_element){
        .rank = 2,
        .iteration = 1,
        .at = {.side = rf_xstrdup("infer"),
               .tensor = rf_xstrdup("w"),
               .index = {rf_xcalloc(2, sizeof(uint64_t)), 2},
               .expected = rf_xstrdup("00ff"),
               .found = rf_xstrdup("01ff")}};
    wrong->at.index.list[0] = 3;
    attempt->wrong = wrong;
    record = record_of(attempt);
    text = json_dumps(json_at(record, "verification.first_mismatch"),
                      JSON_COMPACT);
    ck_assert_str_eq(text, "{\"rank\":2,\"host\":\"b\",\"iteration\":1,"
                           "\"side\":\"infer\",\"tensor\":\"w\",\"index\":"
                           "[3,0],\"expected\":\"00ff\",\"found\":\"01ff\"}");
}

TEST(test_results_hide_secrets)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_auto_t *record = record_of(attempt);
    AUTO_FREE char *text = json_dumps(record, 0);
    ck_assert_ptr_null(strstr(text, "hunter2"));
    assert_says(text, "WARN");
    ck_assert(rf_result_secret_name("AWS_SECRET_ACCESS_KEY"));
    ck_assert(rf_result_secret_name("NCCL_COMM_ID"));
    ck_assert(!rf_result_secret_name("NCCL_SOCKET_IFNAME"));
}

TEST(test_results_hide_secrets_set_by_arguments)
{
    static const char *const given[] = {
        "--set", "launch.env.HF_TOKEN=hunter2",
        "--set=launch.env={\"A_SECRET\": \"hunter2\"}",
        "launch.env.NCCL_DEBUG=INFO", "name=TOKEN"};
    static const char *const kept[] = {
        "--set", "launch.env.HF_TOKEN=[redacted]",
        "--set=launch.env=[redacted]", "launch.env.NCCL_DEBUG=INFO",
        "name=TOKEN"};
    char *argv[RF_ARRAY_SIZE(given)];
    struct rf_result_maker maker = {.argc = RF_ARRAY_SIZE(given), .argv = argv};
    json_auto_t *list;
    for (size_t i = 0; i < RF_ARRAY_SIZE(given); i++) {
        argv[i] = rf_xstrdup(given[i]);
    }
    list = rf_result_json_argv(&maker);
    for (size_t i = 0; i < RF_ARRAY_SIZE(given); i++) {
        ck_assert_str_eq(json_string_value(json_array_get(list, i)), kept[i]);
        free(argv[i]);
    }
}

/* Index 0: without variables. */
LOOP_TEST(test_results_node_has_all_facts_but_those_of_its_processes, 2)
{
    static const char *const gone[] = {"protocol", "node", "pid", "start_ticks",
                                       "folders"};
    char token[] = "HF_TOKEN", secret[] = "hunter2";
    struct rf_text_pair pair = {token, secret};
    struct rf_msg_hello hello;
    json_auto_t *entry;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    hello.pid = hello.node = 1;
    hello.start_ticks = 2;
    if (_i == 1) {
        hello.env = (struct rf_text_pairs){&pair, 1};
    }
    entry = rf_result_json_node("gpu-a", &hello);
    ck_assert_str_eq(rf_result_text(entry, NULL, "host"), "gpu-a");
    ck_assert(json_is_null(json_object_get(entry, "kernel")));
    ck_assert(json_is_object(json_object_get(entry, "methods")));
    ck_assert(json_is_array(json_object_get(entry, "nics")));
    ck_assert(json_is_object(json_object_get(entry, "env")));
    ck_assert_str_eq(rf_result_text(entry, "env", token),
                     _i == 1 ? "[redacted]" : "-");
    for (size_t i = 0; i < RF_ARRAY_SIZE(gone); i++) {
        ck_assert_ptr_null(json_object_get(entry, gone[i]));
    }
}

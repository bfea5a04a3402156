/* Predictions from given figures, and the advice of `check`. */
#include <check.h>
#include <string.h>

#include "common/mem.h"
#include "common/version.h"
#include "coordinator/advice.h"
#include "coordinator/predict.h"
#include "tests/lib/configured.h"

START_TEST(test_predict_disk_is_write_plus_read)
{
    struct rf_link_figures figures = {.write_gbytes_per_s = 2,
                                      .read_gbytes_per_s = 4};
    ck_assert_double_eq_tol(
        rf_predict_disk_ms(&figures, 4000000000, 8000000000), 4000, 1e-6);
}
END_TEST

START_TEST(test_predict_step_counts_refits)
{
    struct rf_timeline timeline = {
        .rollout_s = 30, .train_s = 19, .refits = 2, .given = true};
    struct rf_prediction p = {.ms = 500};
    rf_predict_step(&timeline, &p);
    ck_assert_double_eq_tol(p.step_s, 50, 1e-9);
    ck_assert_double_eq_tol(p.share, 0.02, 1e-9);
}
END_TEST

START_TEST(test_predict_spreads_figures_over_nodes_and_pairs)
{
    struct rf_link_figures figures = {.copy_gbytes_per_s = 20,
                                      .link_gbytes_per_s = 12.5,
                                      .link_latency_us = 5};
    struct rf_links links;
    rf_links_init(&links, 2);
    rf_link_figures_spread(&figures, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 20);
    ck_assert_double_eq(links.pair_gbytes_per_s[0], 0);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 12.5);
    ck_assert_double_eq(links.pair_latency_us[2], 5);
    rf_links_free(&links);
}
END_TEST

START_TEST(test_predict_refuses_unknown_figures)
{
    json_t *value = json_pack("{s:f}", "link_gbps", 1.0);
    struct rf_jnode node = rf_jnode_root(value, "c.json");
    struct rf_link_figures figures;
    struct rf_err err = {0};
    ck_assert_int_eq(rf_link_figures_read(&node, &figures, &err),
                     RF_ERR_CONFIG);
    ck_assert(strstr(err.text, "link_gbps") != NULL);
    json_decref(value);
}
END_TEST

START_TEST(test_predict_refuses_a_rate_of_nothing)
{
    json_t *value =
        json_pack("{s:i, s:i}", "link_latency_us", 0, "copy_gbytes_per_s", 0);
    struct rf_jnode node = rf_jnode_root(value, "c.json");
    struct rf_link_figures figures = {0};
    struct rf_err err = {0};
    ck_assert_int_eq(rf_link_figures_read(&node, &figures, &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "copy_gbytes_per_s"));
    ck_assert_ptr_nonnull(strstr(err.text, "above 0"));
    json_decref(value);
}
END_TEST

/* What stands in the way of a prediction, with figures of node a only, or of
 * both nodes; NULL in `says`: nothing. */
START_TEST(test_predict_says_what_it_has_no_figures_for)
{
    static const struct {
        const char *method;
        const char *infer;
        bool both, own;
        const char *says;
    } cases[] = {
        {"host", "{\"tp\": 4}", true, false, NULL},
        {"host", "{\"tp\": 4}", false, false, "copying on b"},
        {"host", "{\"tp\": 4}", false, false, "links out of a"},
        {"null", "{\"tp\": 4}", true, false, "moves nothing"},
        {"tcp", "{\"tp\": 4}", true, false, "sockets"},
        {"tcp", "{\"tp\": 4}", true, true, NULL},
        {"shm", "{\"tp\": 4}", true, false, "where they are"},
        {"disk", "{\"tp\": 4}", true, false, "write_gbytes_per_s"},
        {"host", "{\"tp\": 1, \"layout\": \"hf\", \"quantize\": \"amax_448\"}",
         true, false, "infer.quantize"},
    };
    struct rf_link_figures figures = {.copy_gbytes_per_s = 20,
                                      .link_gbytes_per_s = 12.5};
    char *text =
        rf_xasprintf("{\"name\": \"s\", \"train\": {\"tp\": 2, \"pp\": 2}, "
                     "\"infer\": %s}",
                     cases[_i].infer);
    struct configured_pair pair = configured_pair(text);
    struct rf_links links;
    char *gap;
    rf_links_init(&links, 2);
    links.copy_gbytes_per_s[0] = 20;
    if (cases[_i].both) {
        rf_link_figures_spread(&figures, &links);
    }
    gap = rf_predict_gap(pair.one, cases[_i].method, &figures, cases[_i].own,
                         &links);
    if (cases[_i].says == NULL) {
        ck_assert_ptr_null(gap);
    } else {
        ck_assert_ptr_nonnull(gap);
        ck_assert_msg(strstr(gap, cases[_i].says) != NULL, "%s", gap);
    }
    free(gap);
    free(text);
    rf_links_free(&links);
    configured_pair_free(&pair);
}
END_TEST

START_TEST(test_case_memory_is_arenas_staging_and_process)
{
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"tp\": 2}, "
                        "\"infer\": {\"tp\": 4}}");
    uint64_t sum = 0;
    for (uint32_t r = 0; r < 4; r++) {
        uint64_t arenas =
            rf_plan_layout(pair.one->plan, RF_TRAIN, r)->arena_bytes +
            rf_plan_layout(pair.one->plan, RF_INFER, r)->arena_bytes;
        ck_assert_uint_ge(rf_case_rank_bytes(pair.one, r),
                          arenas + RF_PLAN_PROCESS_BYTES);
        sum += rf_case_rank_bytes(pair.one, r);
    }
    ck_assert_uint_eq(
        rf_case_node_bytes(pair.one, 0) + rf_case_node_bytes(pair.one, 1), sum);
    ck_assert_uint_eq(rf_case_node_ranks(pair.one, 0), 2);
    configured_pair_free(&pair);
}
END_TEST

static bool says(const struct rf_findings *findings, enum rf_advice_level level,
                 const char *part)
{
    for (size_t i = 0; i < findings->n; i++) {
        if (findings->list[i].level == level &&
            strstr(findings->list[i].text, part) != NULL) {
            return true;
        }
    }
    return false;
}

START_TEST(test_advice_warns_of_tp_across_nodes)
{
    struct rf_findings findings = {0};
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"tp\": 4}, "
                        "\"infer\": {\"tp\": 2}}");
    rf_advise_case(pair.one, NULL, &findings);
    ck_assert(says(&findings, RF_ADVICE_WARNING, "TP 4 is more than the 2"));
    rf_findings_free(&findings);
    configured_pair_free(&pair);
}
END_TEST

START_TEST(test_advice_prefers_expert_parallelism)
{
    struct rf_findings findings = {0};
    struct configured_pair pair = configured_pair(
        "{\"name\": \"s\", \"train\": {\"tp\": 2, \"ep\": 2, \"etp\": "
        "2}, \"infer\": {\"tp\": 2}}");
    rf_advise_case(pair.one, NULL, &findings);
    ck_assert(says(&findings, RF_ADVICE_INFO, "ETP 2 could be EP 4"));
    rf_findings_free(&findings);
    configured_pair_free(&pair);
}
END_TEST

START_TEST(test_advice_uses_the_timeline)
{
    struct rf_findings findings = {0};
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"pp\": 2}, "
                        "\"infer\": {\"tp\": 2}}");
    json_t *timeline = json_pack("{s:i, s:i, s:i}", "sequence_length", 16384,
                                 "global_batch", 4, "micro_batch", 1);
    rf_advise_case(pair.one, timeline, &findings);
    ck_assert(says(&findings, RF_ADVICE_WARNING, "context"));
    ck_assert(says(&findings, RF_ADVICE_WARNING, "PP 2 is not below"));
    json_decref(timeline);
    rf_findings_free(&findings);
    configured_pair_free(&pair);
}
END_TEST

static json_t *hello(const char *build_id, json_int_t memory,
                     const char *method_why)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:[{s:s, s:i, s:i, s:s}], "
        "s:{s:s?}}",
        "version", rf_version(), "build", build_id, "kernel", "Linux 6", "cpu",
        "x", "congestion_control", "cubic", "cpus", 2, "memory_bytes", memory,
        "memory_available_bytes", memory, "nics", "name", "eth0", "speed_mbit",
        1000, "mtu", 1500, "address", "10.0.0.1", "methods", "host",
        method_why);
}

START_TEST(test_advice_compares_nodes)
{
    static const char *const hosts[] = {"a", "b"};
    json_t *one = hello(rf_build(), 1 << 30, NULL);
    json_t *two = hello("other", 1 << 30, NULL);
    const json_t *both[] = {one, two};
    struct rf_findings findings = {0};
    json_object_set_new(json_array_get(json_object_get(two, "nics"), 0),
                        "speed_mbit", json_integer(100));
    rf_advise_nodes(hosts, both, 2, &findings);
    ck_assert(says(&findings, RF_ADVICE_WARNING, "build of the worker"));
    ck_assert(says(&findings, RF_ADVICE_WARNING, "100 Mbit/s"));
    rf_advise_node("b", two, &findings);
    ck_assert(says(&findings, RF_ADVICE_WARNING, "plans may differ"));
    ck_assert(says(&findings, RF_ADVICE_INFO, "interface eth0"));
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR), 0);
    rf_findings_free(&findings);
    json_decref(one);
    json_decref(two);
}
END_TEST

START_TEST(test_advice_errors_where_a_scenario_cannot_fit)
{
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"tp\": 2}, "
                        "\"infer\": {\"tp\": 4}}");
    json_t *small = hello(rf_build(), 1000, NULL);
    json_t *lacking = hello(rf_build(), INT64_C(1) << 40, "no kernel support");
    const json_t *both[] = {small, lacking};
    struct rf_findings findings = {0};
    rf_advise_fit(pair.one, both, &findings);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR), 2);
    ck_assert(says(&findings, RF_ADVICE_ERROR, "memory on a"));
    ck_assert(says(&findings, RF_ADVICE_ERROR, "no kernel support"));
    rf_findings_free(&findings);
    json_decref(small);
    json_decref(lacking);
    configured_pair_free(&pair);
}
END_TEST

Suite *test_predict_suite(void);
Suite *test_predict_suite(void)
{
    Suite *suite = suite_create("predict");
    TCase *tests = tcase_create("predict");
    tcase_add_test(tests, test_predict_disk_is_write_plus_read);
    tcase_add_test(tests, test_predict_step_counts_refits);
    tcase_add_test(tests, test_predict_spreads_figures_over_nodes_and_pairs);
    tcase_add_test(tests, test_predict_refuses_unknown_figures);
    tcase_add_test(tests, test_predict_refuses_a_rate_of_nothing);
    tcase_add_loop_test(tests, test_predict_says_what_it_has_no_figures_for, 0,
                        9);
    tcase_add_test(tests, test_case_memory_is_arenas_staging_and_process);
    tcase_add_test(tests, test_advice_warns_of_tp_across_nodes);
    tcase_add_test(tests, test_advice_prefers_expert_parallelism);
    tcase_add_test(tests, test_advice_uses_the_timeline);
    tcase_add_test(tests, test_advice_compares_nodes);
    tcase_add_test(tests, test_advice_errors_where_a_scenario_cannot_fit);
    suite_add_tcase(suite, tests);
    return suite;
}

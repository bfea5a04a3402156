/* The advice of `check` about nodes, scenarios and their meshes. */
#include <check.h>
#include <string.h>

#include "common/mem.h"
#include "common/version.h"
#include "coordinator/commands/advice.h"
#include "tests/lib/configured.h"

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

START_TEST(test_advice_errors_where_a_node_lacks_its_address)
{
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"tp\": 2}, "
                        "\"infer\": {\"tp\": 4}}");
    struct rf_node_config *nodes = pair.scenario->config->nodes;
    json_t *hello_json = hello(rf_build(), 1 << 30, NULL);
    const json_t *both[] = {hello_json, NULL};
    struct rf_findings findings = {0};
    nodes[0].address = "10.0.0.1";
    nodes[1].address = "10.9.9.9"; /* did not join: nothing is known */
    rf_advise_addresses(pair.scenario->config, both, &findings);
    nodes[0].address = "127.0.0.1";
    rf_advise_addresses(pair.scenario->config, both, &findings);
    ck_assert_uint_eq(findings.n, 0);
    nodes[0].address = "10.0.0.2";
    rf_advise_addresses(pair.scenario->config, both, &findings);
    ck_assert(
        says(&findings, RF_ADVICE_ERROR, "10.0.0.2 ($.nodes[0].address)"));
    ck_assert(says(&findings, RF_ADVICE_ERROR, "interfaces have 10.0.0.1"));
    rf_findings_free(&findings);
    json_decref(hello_json);
    configured_pair_free(&pair);
}
END_TEST

START_TEST(test_advice_knows_names_of_one_machine)
{
    static const char *const hosts[] = {"a", "b"};
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"tp\": 4}, "
                        "\"infer\": {\"tp\": 4}}");
    json_t *a = hello(rf_build(), INT64_C(1) << 40, NULL);
    json_t *b = hello(rf_build(), INT64_C(1) << 40, NULL);
    const json_t *both[] = {a, b};
    struct rf_findings findings = {0};
    json_object_set_new(a, "cpus", json_integer(1));
    json_object_set_new(b, "cpus", json_integer(1));
    rf_advise_nodes(hosts, both, 2, &findings);
    rf_advise_fit(pair.scenario, both, &findings);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_WARNING), 0);
    json_object_set_new(a, "boot_id", json_string("x"));
    json_object_set_new(b, "boot_id", json_string("x"));
    rf_advise_nodes(hosts, both, 2, &findings);
    rf_advise_fit(pair.scenario, both, &findings);
    ck_assert(says(&findings, RF_ADVICE_WARNING, "a, b are 2 nodes on one"));
    ck_assert(says(&findings, RF_ADVICE_WARNING, "4 ranks share the 1 proc"));
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR), 0);
    rf_findings_free(&findings);
    json_decref(a);
    json_decref(b);
    configured_pair_free(&pair);
}
END_TEST

START_TEST(test_advice_has_one_line_for_methods_without_a_driver)
{
    json_t *node = hello(rf_build(), 1 << 30, NULL);
    json_t *methods = json_object_get(node, "methods");
    struct rf_findings findings = {0};
    size_t before;
    rf_advise_node("a", node, &findings);
    before = findings.n;
    rf_findings_free(&findings);
    json_object_set_new(methods, "nccl", json_string("no driver"));
    json_object_set_new(methods, "ipc", json_string("no driver"));
    rf_advise_node("a", node, &findings);
    ck_assert_uint_eq(findings.n, before + 1);
    ck_assert(says(&findings, RF_ADVICE_INFO, "nccl, ipc: no driver"));
    rf_findings_free(&findings);
    json_decref(node);
}
END_TEST

START_TEST(test_advice_warns_of_tp_across_nodes)
{
    struct rf_findings findings = {0};
    struct configured_pair pair =
        configured_pair("{\"name\": \"s\", \"train\": {\"tp\": 4}, "
                        "\"infer\": {\"tp\": 2}}");
    rf_advise_scenario(pair.scenario, NULL, &findings);
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
    rf_advise_scenario(pair.scenario, NULL, &findings);
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
    rf_advise_scenario(pair.scenario, timeline, &findings);
    ck_assert(says(&findings, RF_ADVICE_WARNING, "context"));
    ck_assert(says(&findings, RF_ADVICE_WARNING, "PP 2 is not below"));
    json_decref(timeline);
    rf_findings_free(&findings);
    configured_pair_free(&pair);
}
END_TEST

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
    ck_assert(says(&findings, RF_ADVICE_INFO, "interface eth0"));
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR), 0);
    rf_findings_free(&findings);
    json_decref(one);
    json_decref(two);
}
END_TEST

/* Index: 0 ours, 1 another build, 2 another version, 3 and 4 not known. */
START_TEST(test_advice_warns_of_a_worker_of_another_build)
{
    json_t *node = hello(_i == 1   ? "other"
                         : _i == 3 ? "unknown"
                                   : rf_build(),
                         1 << 30, NULL);
    struct rf_findings findings = {0};
    bool differs = (_i == 1 && strcmp(rf_build(), "unknown") != 0) || _i == 2;
    bool cannot_tell = _i >= 3 && strcmp(rf_build(), "unknown") != 0;
    if (_i == 2) {
        json_object_set_new(node, "version", json_string("0.0.7"));
    } else if (_i == 4) {
        json_object_del(node, "build");
    }
    rf_advise_build("a", node, false, &findings);
    ck_assert_uint_eq(findings.n, differs);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_WARNING), differs);
    if (differs) {
        ck_assert(says(&findings, RF_ADVICE_WARNING, rf_version()));
        ck_assert(says(&findings, RF_ADVICE_WARNING,
                       _i == 1 ? "(other)" : "0.0.7 ("));
        ck_assert(says(&findings, RF_ADVICE_WARNING, "launch.deploy"));
    }
    rf_advise_build("a", node, true, &findings);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR),
                      differs || cannot_tell);
    ck_assert(!cannot_tell || says(&findings, RF_ADVICE_ERROR, "cannot tell"));
    rf_findings_free(&findings);
    json_decref(node);
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
    rf_advise_fit(pair.scenario, both, &findings);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR), 2);
    ck_assert(says(&findings, RF_ADVICE_ERROR, "memory on a"));
    ck_assert(says(&findings, RF_ADVICE_ERROR, "no kernel support"));
    rf_findings_free(&findings);
    json_decref(small);
    json_decref(lacking);
    configured_pair_free(&pair);
}
END_TEST

Suite *test_advice_suite(void);
Suite *test_advice_suite(void)
{
    Suite *suite = suite_create("advice");
    TCase *tests = tcase_create("advice");
    tcase_add_test(tests, test_advice_errors_where_a_node_lacks_its_address);
    tcase_add_test(tests, test_advice_knows_names_of_one_machine);
    tcase_add_test(tests,
                   test_advice_has_one_line_for_methods_without_a_driver);
    tcase_add_test(tests, test_advice_warns_of_tp_across_nodes);
    tcase_add_test(tests, test_advice_prefers_expert_parallelism);
    tcase_add_test(tests, test_advice_uses_the_timeline);
    tcase_add_test(tests, test_advice_compares_nodes);
    tcase_add_loop_test(tests, test_advice_warns_of_a_worker_of_another_build,
                        0, 5);
    tcase_add_test(tests, test_advice_errors_where_a_scenario_cannot_fit);
    suite_add_tcase(suite, tests);
    return suite;
}

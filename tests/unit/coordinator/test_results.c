/* Result files: every field, known answers, promises about the folder. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/redact.h"
#include "coordinator/report_table.h"
#include "coordinator/result_json.h"
#include "coordinator/results.h"

static const char cluster[] =
    "{\"name\": \"t\", \"launch\": {\"method\": \"local\", \"env\": "
    "{\"HF_TOKEN\": \"hunter2\", \"NCCL_DEBUG\": \"WARN\"}}, \"nodes\": ["
    "{\"host\": \"a\", \"slots\": 2}, {\"host\": \"b\", \"slots\": 2}], "
    "\"model\": {\"megatron\": {\"num_layers\": 2, \"hidden_size\": 64, "
    "\"num_attention_heads\": 4, \"vocab_size\": 128}}, \"scenarios\": ["
    "{\"name\": \"one\", \"train\": {\"tp\": 4}, \"infer\": {\"tp\": 2}, "
    "\"warmup\": 1, \"iterations\": 3}, {\"name\": \"two\", \"train\": "
    "{\"tp\": 2}, \"infer\": {\"tp\": 4}}]}";

static char folder[64];
static struct rf_config *config;
static struct rf_model *model;
static struct rf_cli cli;
static const char *args[] = {"refit-coord", "c.json", NULL};

static void load(const char *text)
{
    struct rf_err err = {0};
    json_t *document = NULL;
    struct rf_jnode node;
    ck_assert_int_eq(
        rf_json_parse(text, strlen(text), "c.json", &document, &err), RF_OK);
    ck_assert_msg(
        rf_config_from_json(document, "c.json", true, &config, &err) == RF_OK,
        "%s", err.text);
    node = rf_jnode_root(config->model, "c.json");
    ck_assert_int_eq(rf_model_from_json(&node, &model, &err), RF_OK);
}

static void unload(void)
{
    rf_model_destroy(model);
    rf_config_destroy(config);
}

static void setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/refit-results-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    cli = (struct rf_cli){.out = rf_xasprintf("%s/results", folder), .argc = 2};
    memcpy(&cli.argv, &(const char **){args}, sizeof(cli.argv));
    load(cluster);
}

static void teardown(void)
{
    char *command = rf_xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
    memcpy(&command, &cli.out, sizeof(command));
    free(command);
    unload();
}

/* Rank r needs (10 + round + r) ms and starts r · 100 us late. */
static void fill_round(struct rf_attempt *attempt, uint32_t round)
{
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        struct rf_sample *s = &attempt->pending[r];
        s->ns = (int64_t)(10 + round + r) * 1000000;
        s->start_ns = 5000000 + r * 100000;
        s->end_ns = s->start_ns + s->ns;
        s->pack_ns = 1000000;
        s->wire_ns = 2000000;
        s->unpack_ns = 3000000;
        s->sync_ns = 500000;
        s->sent_bytes = 100 + r;
        s->received_bytes = 200 + r;
    }
    rf_attempt_keep(attempt, round, round == 0);
}

static struct rf_attempt *make_attempt(size_t index)
{
    struct rf_case *one = NULL;
    struct rf_err err = {0};
    struct rf_attempt *attempt;
    ck_assert_msg(rf_case_build(config, model, index, &one, &err) == RF_OK,
                  "%s", err.text);
    attempt = rf_attempt_create(1, index, one);
    snprintf(attempt->started_at, sizeof(attempt->started_at),
             "2026-01-02T03:04:05Z");
    snprintf(attempt->finished_at, sizeof(attempt->finished_at),
             "2026-01-02T03:04:06Z");
    for (uint32_t round = 0; round < 4; round++) {
        fill_round(attempt, round);
    }
    attempt->rounds = 3;
    attempt->checked_bytes = 3 * one->plan->totals.bytes_total;
    for (uint32_t n = 0; n < 2; n++) {
        attempt->before.copy_gbytes_per_s[n] = 1;
        attempt->after.copy_gbytes_per_s[n] = 2;
        attempt->before.copy1_gbytes_per_s[n] = 1;
        attempt->before.pair_gbytes_per_s[n == 0 ? 1 : 2] = 0.5;
        attempt->before.pair_latency_us[n == 0 ? 1 : 2] = 30;
        attempt->after.pair_gbytes_per_s[n == 0 ? 1 : 2] = 0.25;
        attempt->after.pair_latency_us[n == 0 ? 1 : 2] = 20;
    }
    attempt->probed_before = attempt->probed_after = attempt->closed = true;
    return attempt;
}

static json_t *record_of(const struct rf_attempt *attempt)
{
    json_t *nodes = json_pack("[{s:s}, {s:s}]", "host", "a", "host", "b");
    struct rf_result_run run = {.config = config,
                                .model = model,
                                .run_id = "0123",
                                .cli = &cli,
                                .environment = nodes};
    json_t *record = rf_result_json(&run, attempt);
    json_decref(nodes);
    return record;
}

static double number(const json_t *record, const char *object, const char *key)
{
    double value = NAN;
    ck_assert_msg(rf_result_number(record, object, key, &value), "%s.%s",
                  object, key);
    return value;
}

START_TEST(test_results_record_has_every_field)
{
    static const char *const keys[] = {"schema_version", "tool",
                                       "run_id",         "argv",
                                       "started_at",     "finished_at",
                                       "status",         "errors",
                                       "environment",    "model",
                                       "scenario",       "plan",
                                       "iterations",     "summary",
                                       "bound",          "memory",
                                       "verification",   "warmup_iterations",
                                       "schedule",       "setup",
                                       "cluster",        "name"};
    static const char *const plan_keys[] = {
        "digest",           "transfers",        "bytes_total",
        "bytes_local",      "bytes_intra_node", "bytes_inter_node",
        "max_send_bytes",   "max_recv_bytes",   "bound_send_bytes",
        "bound_recv_bytes", "plan_ms"};
    struct rf_attempt *attempt = make_attempt(0);
    json_t *record = record_of(attempt);
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        ck_assert_msg(json_object_get(record, keys[i]) != NULL, "%s", keys[i]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(plan_keys); i++) {
        ck_assert_msg(json_object_get(json_object_get(record, "plan"),
                                      plan_keys[i]) != NULL,
                      "plan.%s", plan_keys[i]);
    }
    ck_assert_str_eq(rf_result_text(record, NULL, "status"), "ok");
    ck_assert_uint_eq(json_array_size(json_object_get(record, "memory")), 4);
    json_decref(record);
    rf_attempt_destroy(attempt);
}
END_TEST

START_TEST(test_results_iteration_takes_as_long_as_its_slowest_rank)
{
    struct rf_attempt *attempt = make_attempt(0);
    json_t *record = record_of(attempt);
    const json_t *list = json_object_get(record, "iterations");
    const json_t *first = json_array_get(list, 0);
    const json_t *rank = json_array_get(json_object_get(first, "ranks"), 3);
    ck_assert_uint_eq(json_array_size(list), 3);
    ck_assert_uint_eq(
        json_array_size(json_object_get(record, "warmup_iterations")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(first, "index")), 0);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "refit_ms")), 14, 1e-9);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "span_ms")), 14.3, 1e-9);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(first, "start_skew_us")), 300, 1e-9);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(rank, "unattributed_ms")), 7.5, 1e-9);
    ck_assert_int_eq(
        json_integer_value(json_object_get(rank, "received_bytes")), 203);
    json_decref(record);
    rf_attempt_destroy(attempt);
}
END_TEST

START_TEST(test_results_summary_bound_and_efficiency_are_known)
{
    struct rf_attempt *attempt = make_attempt(0);
    json_t *record = record_of(attempt);
    double total = (double)attempt->one->plan->totals.bytes_total;
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
    json_decref(record);
    rf_attempt_destroy(attempt);
}
END_TEST

START_TEST(test_results_of_a_method_that_moves_nothing_claim_no_bandwidth)
{
    char *text = rf_xstrdup(cluster), *at = strstr(text, "\"warmup\": 1");
    struct rf_attempt *attempt;
    json_t *record;
    char *with_null = rf_xasprintf("%.*s\"method\": \"null\", %s",
                                   (int)(at - text), text, at);
    unload();
    load(with_null);
    attempt = make_attempt(0);
    record = record_of(attempt);
    ck_assert_double_eq_tol(number(record, "summary", "median_ms"), 15, 1e-9);
    ck_assert(json_is_null(json_object_get(json_object_get(record, "summary"),
                                           "algbw_gbytes_per_s")));
    ck_assert(json_is_null(
        json_object_get(json_object_get(record, "bound"), "efficiency")));
    json_decref(record);
    rf_attempt_destroy(attempt);
    free(with_null);
    free(text);
}
END_TEST

START_TEST(test_results_bound_takes_the_better_probe)
{
    struct rf_attempt *attempt = make_attempt(0);
    struct rf_links links;
    ck_assert(rf_attempt_links(attempt, &links));
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 2);
    ck_assert_double_eq(links.copy1_gbytes_per_s[0], 1); /* only before */
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 0.5);
    ck_assert_double_eq(links.pair_latency_us[1], 20);
    rf_links_free(&links);
    rf_attempt_destroy(attempt);
}
END_TEST

START_TEST(test_results_of_a_scenario_that_could_not_begin)
{
    struct rf_attempt *attempt = rf_attempt_create(1, 1, NULL);
    json_t *record;
    rf_attempt_error(attempt, NULL, RF_NONE, "starting", RF_ERR_NOMEM,
                     "too large", NULL);
    record = record_of(attempt);
    ck_assert_str_eq(rf_result_text(record, NULL, "status"), "failed");
    ck_assert_str_eq(rf_result_text(record, NULL, "name"), "two");
    ck_assert(json_is_null(json_object_get(record, "plan")));
    ck_assert(json_is_null(
        json_object_get(json_object_get(record, "summary"), "median_ms")));
    ck_assert(
        json_is_null(json_object_get(json_object_get(record, "bound"), "ms")));
    json_decref(record);
    rf_attempt_destroy(attempt);
}
END_TEST

START_TEST(test_results_first_error_is_the_cause)
{
    struct rf_attempt *attempt = rf_attempt_create(1, 0, NULL);
    const json_t *first, *second;
    rf_attempt_error(attempt, "a", 3, "running", RF_ERR_PEER, "died", NULL);
    rf_attempt_error(attempt, "b", 1, "running", RF_ERR_PEER, "saw", NULL);
    first = json_array_get(attempt->errors, 0);
    second = json_array_get(attempt->errors, 1);
    ck_assert(json_is_false(json_object_get(first, "consequence")));
    ck_assert(json_is_true(json_object_get(second, "consequence")));
    ck_assert_int_eq(json_integer_value(json_object_get(first, "rank")), 3);
    ck_assert_int_eq(attempt->outcome, RF_OUTCOME_FAILED);
    rf_attempt_destroy(attempt);
}
END_TEST

START_TEST(test_results_hide_secrets)
{
    struct rf_attempt *attempt = make_attempt(0);
    json_t *record = record_of(attempt);
    char *text = json_dumps(record, 0);
    ck_assert_ptr_null(strstr(text, "hunter2"));
    ck_assert_ptr_nonnull(strstr(text, "WARN"));
    free(text);
    json_decref(record);
    rf_attempt_destroy(attempt);
    ck_assert(rf_result_secret_name("AWS_SECRET_ACCESS_KEY"));
    ck_assert(rf_result_secret_name("NCCL_COMM_ID"));
    ck_assert(!rf_result_secret_name("NCCL_SOCKET_IFNAME"));
}
END_TEST

static struct rf_results *open_results(void)
{
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    ck_assert_msg(rf_results_open(&cli, config, model, &results, &err) == RF_OK,
                  "%s", err.text);
    return results;
}

static json_t *read_json(const char *in, const char *name)
{
    char *path = rf_xasprintf("%s/%s", in, name);
    json_t *value = NULL;
    struct rf_err err = {0};
    ck_assert_msg(rf_json_load(path, 1 << 24, &value, &err) == RF_OK, "%s",
                  err.text);
    free(path);
    return value;
}

START_TEST(test_results_run_json_exists_from_the_start)
{
    struct rf_results *results = open_results();
    json_t *run = read_json(rf_results_folder(results), "run.json");
    ck_assert_str_eq(rf_result_text(run, NULL, "status"), "running");
    ck_assert_str_eq(
        rf_result_text(json_array_get(json_object_get(run, "scenarios"), 1),
                       NULL, "status"),
        "not run");
    json_decref(run);
    rf_results_close(results);
}
END_TEST

START_TEST(test_results_are_stored_one_by_one)
{
    struct rf_results *results = open_results();
    struct rf_attempt *attempt = make_attempt(0);
    struct rf_err err = {0};
    const char *in = rf_results_folder(results);
    char *csv = rf_xasprintf("%s/summary.csv", in);
    json_t *run, *record;
    ck_assert_msg(rf_results_store(results, attempt, &err) == RF_OK, "%s",
                  err.text);
    record = read_json(in, "one.json");
    ck_assert_str_eq(rf_result_text(record, NULL, "run_id"),
                     rf_results_run_id(results));
    ck_assert_int_eq(access(csv, R_OK), 0);
    ck_assert_int_eq(rf_results_finish(results, 1, &err), RF_OK);
    run = read_json(in, "run.json");
    ck_assert_str_eq(rf_result_text(run, NULL, "status"), "failed");
    ck_assert_str_eq(
        rf_result_text(json_array_get(json_object_get(run, "scenarios"), 0),
                       NULL, "status"),
        "ok");
    json_decref(run);
    json_decref(record);
    free(csv);
    rf_attempt_destroy(attempt);
    rf_results_close(results);
}
END_TEST

START_TEST(test_results_discard_leaves_nothing)
{
    struct rf_results *results = open_results();
    ck_assert_int_eq(access(cli.out, F_OK), 0);
    rf_results_discard(results);
    rf_results_close(results);
    ck_assert_int_ne(access(cli.out, F_OK), 0);
}
END_TEST

/* A run of which scenario `one` is complete; gives the folder's name. */
static char *unfinished_run(void)
{
    struct rf_results *results = open_results();
    struct rf_attempt *attempt = make_attempt(0);
    char *in = rf_xstrdup(rf_results_folder(results));
    ck_assert_int_eq(rf_results_store(results, attempt, NULL), RF_OK);
    rf_attempt_destroy(attempt);
    rf_results_close(results);
    return in;
}

START_TEST(test_results_resume_knows_what_is_complete)
{
    char *in = unfinished_run();
    struct rf_results *results;
    json_t *before = read_json(in, "run.json");
    cli.resume = in;
    results = open_results();
    ck_assert(rf_results_complete(results)[0]);
    ck_assert(!rf_results_complete(results)[1]);
    ck_assert_str_eq(rf_results_run_id(results),
                     rf_result_text(before, NULL, "run_id"));
    rf_results_discard(results); /* what was there stays */
    rf_results_close(results);
    json_decref(read_json(in, "one.json"));
    json_decref(before);
    free(in);
}
END_TEST

START_TEST(test_results_resume_without_nodes_forgets_nothing)
{
    struct rf_results *results = open_results();
    char *in = rf_xstrdup(rf_results_folder(results));
    json_t *hello = json_pack("{s:s}", "kernel", "Linux 9"), *before, *now;
    rf_results_node(results, 0, hello);
    ck_assert_int_eq(rf_results_finish(results, 1, NULL), RF_OK);
    rf_results_close(results);
    before = read_json(in, "run.json");
    cli.resume = in;
    results = open_results();
    now = read_json(in, "run.json");
    ck_assert_str_eq(rf_result_text(now, NULL, "status"), "running");
    ck_assert_str_eq(
        rf_result_text(json_array_get(json_object_get(now, "environment"), 0),
                       NULL, "kernel"),
        "Linux 9");
    json_decref(now);
    rf_results_discard(results); /* the launch has failed */
    rf_results_close(results);
    now = read_json(in, "run.json");
    ck_assert(json_equal(before, now));
    json_decref(now);
    json_decref(before);
    json_decref(hello);
    free(in);
}
END_TEST

START_TEST(test_results_resume_of_some_keeps_the_others)
{
    static const char *const globs[] = {"two"};
    char *in = unfinished_run(), line[1024], *csv;
    struct rf_results *results;
    struct rf_attempt *attempt;
    unsigned lines = 0;
    const json_t *index;
    json_t *run;
    FILE *file;
    ck_assert_int_eq(rf_config_select(config, globs, 1, NULL), RF_OK);
    cli.resume = in;
    results = open_results();
    attempt = make_attempt(0);
    ck_assert_int_eq(rf_results_store(results, attempt, NULL), RF_OK);
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
    free(csv);
    json_decref(run);
    free(in);
}
END_TEST

START_TEST(test_results_resume_refuses_another_configuration)
{
    char *in = unfinished_run();
    char *text = rf_xstrdup(cluster), *at = strstr(text, "\"iterations\": 3");
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    at[strlen("\"iterations\": ")] = '4';
    unload();
    load(text);
    cli.resume = in;
    ck_assert_int_eq(rf_results_open(&cli, config, model, &results, &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, "$.scenarios[0].iterations") != NULL, "%s",
                  err.text);
    free(text);
    free(in);
}
END_TEST

START_TEST(test_results_one_coordinator_at_a_time)
{
    struct rf_results *first = open_results(), *second = NULL;
    struct rf_err err = {0};
    cli.resume = rf_results_folder(first);
    ck_assert_int_eq(rf_results_open(&cli, config, model, &second, &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, "another refit-coord") != NULL, "%s",
                  err.text);
    rf_results_close(first);
}
END_TEST

START_TEST(test_results_folder_that_cannot_be_made)
{
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    struct rf_cli bad = cli;
    bad.out = "/dev/null/results";
    ck_assert_int_eq(rf_results_open(&bad, config, model, &results, &err),
                     RF_ERR_IO);
    ck_assert(strstr(err.text, "/dev/null/results") != NULL);
}
END_TEST

START_TEST(test_results_folder_that_cannot_be_made_leaves_no_parent)
{
    struct rf_results *results = NULL;
    struct rf_err err = {0};
    char *name = config->name;
    config->name = rf_xasprintf("%0300d", 0); /* longer than names may be */
    ck_assert_int_eq(rf_results_open(&cli, config, model, &results, &err),
                     RF_ERR_IO);
    ck_assert_int_ne(access(cli.out, F_OK), 0);
    free(config->name);
    config->name = name;
}
END_TEST

START_TEST(test_results_difference_names_the_place)
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

START_TEST(test_redact_hides_the_magic_and_control_bytes)
{
    char out[128];
    const char *line = "NCCL bad magic 0x12ab != expected 0xFF00 ok\033[2J";
    rf_redact_line(line, strlen(line), out, sizeof(out));
    ck_assert_str_eq(out, "NCCL bad magic 0x[redacted] != expected "
                          "0x[redacted] ok?[2J");
    rf_redact_line("abcdef", 6, out, 4);
    ck_assert_str_eq(out, "abc");
}
END_TEST

Suite *test_results_suite(void);
Suite *test_results_suite(void)
{
    Suite *suite = suite_create("results");
    TCase *tests = tcase_create("results");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_results_record_has_every_field);
    tcase_add_test(tests,
                   test_results_iteration_takes_as_long_as_its_slowest_rank);
    tcase_add_test(tests, test_results_summary_bound_and_efficiency_are_known);
    tcase_add_test(
        tests, test_results_of_a_method_that_moves_nothing_claim_no_bandwidth);
    tcase_add_test(tests, test_results_bound_takes_the_better_probe);
    tcase_add_test(tests, test_results_of_a_scenario_that_could_not_begin);
    tcase_add_test(tests, test_results_first_error_is_the_cause);
    tcase_add_test(tests, test_results_hide_secrets);
    tcase_add_test(tests, test_results_run_json_exists_from_the_start);
    tcase_add_test(tests, test_results_are_stored_one_by_one);
    tcase_add_test(tests, test_results_discard_leaves_nothing);
    tcase_add_test(tests, test_results_resume_knows_what_is_complete);
    tcase_add_test(tests, test_results_resume_without_nodes_forgets_nothing);
    tcase_add_test(tests, test_results_resume_of_some_keeps_the_others);
    tcase_add_test(tests, test_results_resume_refuses_another_configuration);
    tcase_add_test(tests, test_results_one_coordinator_at_a_time);
    tcase_add_test(tests, test_results_folder_that_cannot_be_made);
    tcase_add_test(tests,
                   test_results_folder_that_cannot_be_made_leaves_no_parent);
    tcase_add_test(tests, test_results_difference_names_the_place);
    tcase_add_test(tests, test_redact_hides_the_magic_and_control_bytes);
    suite_add_tcase(suite, tests);
    return suite;
}

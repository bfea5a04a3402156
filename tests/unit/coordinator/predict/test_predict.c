/* Predictions from given figures, and what stands in their way. */
#include "common/mem.h"
#include "coordinator/predict/predict.h"
#include "planner/model/model_json.h"
#include "tests/lib/configured.h"
#include "tests/lib/quoted.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_predict_speeds, rf_predict_speeds_free)

TEST(test_predict_disk_is_write_plus_read)
{
    struct rf_link_figures figures = {.write_gbytes_per_s = 2,
                                      .read_gbytes_per_s = 4};
    const struct rf_file_loads loads = {.written = {4000000000, 4000000000},
                                        .read = {8000000000, 1000000000}};
    ck_assert_double_eq_tol(rf_predict_disk_ms(&figures, &loads), 4000, 1e-6);
}

/* One writer of 4 GB, eight readers of 1 GB each. */
TEST(test_predict_disk_is_no_faster_than_its_busiest_rank)
{
    struct rf_link_figures figures = {.write_gbytes_per_s = 2,
                                      .read_gbytes_per_s = 4,
                                      .single_write_gbytes_per_s = 1,
                                      .single_read_gbytes_per_s = 1};
    struct rf_file_loads loads = {.written = {4000000000, 4000000000},
                                  .read = {8000000000, 1000000000}};
    ck_assert_double_eq_tol(rf_predict_disk_ms(&figures, &loads), 6000, 1e-6);
    loads.written.most = 1000000000;
    loads.read.most = 8000000000;
    ck_assert_double_eq_tol(rf_predict_disk_ms(&figures, &loads), 10000, 1e-6);
    loads.scattered = (struct rf_file_load){6000000000, 6000000000};
    ck_assert_double_eq_tol(rf_predict_disk_ms(&figures, &loads), 10000, 1e-6);
    figures.copy_gbytes_per_s = 6;
    figures.single_copy_gbytes_per_s = 3;
    ck_assert_double_eq_tol(rf_predict_disk_ms(&figures, &loads), 11000, 1e-6);
}

/* A file has what its rank holds once, however many read it, and what is
 * forwarded for each reader. A third of what is held has short rows, all that
 * is forwarded is packed: these are scattered. */
LOOP_TEST(test_predict_disk_counts_what_ranks_write_and_read, 2)
{
    static const struct {
        const char *scenario;
        double written, read, most_written, most_read; /* of the model */
        double scattered; /* on the node that has most */
    } cases[] = {
        {"{'name': 's', 'train': {'tp': 1, 'dp': 1}, 'infer': {'tp': 1, 'dp': "
         "4}}",
         1, 4, 1, 1, 2. / 3},
        {"{'name': 's', 'train': {'tp': 1, 'dp': 1}, 'infer': {'tp': 1, 'dp': "
         "4}, 'strategy': 'broadcast'}",
         2, 4, 1, 1, 4. / 3},
    };
    AUTO(configured_pair) pair = configured_pair(cases[_i].scenario);
    const double bytes = (double)pair.model->bytes;
    struct rf_file_loads loads;
    rf_predict_file_loads(pair.scenario->world, pair.scenario->schedule,
                          &loads);
    ck_assert_double_eq_tol((double)loads.written.all / bytes,
                            cases[_i].written, 0.01);
    ck_assert_double_eq_tol((double)loads.read.all / bytes, cases[_i].read,
                            0.01);
    ck_assert_double_eq_tol((double)loads.written.most / bytes,
                            cases[_i].most_written, 0.01);
    ck_assert_double_eq_tol((double)loads.read.most / bytes,
                            cases[_i].most_read, 0.01);
    ck_assert_double_eq_tol((double)loads.scattered.all / bytes,
                            cases[_i].scattered, 0.01);
}

TEST(test_predict_step_counts_refits)
{
    struct rf_timeline timeline = {
        .rollout_s = 30, .train_s = 19, .refits = 2, .given = true};
    struct rf_prediction p = {.ms = 500};
    rf_predict_step(&timeline, &p);
    ck_assert_double_eq_tol(p.step_s, 50, 1e-9);
    ck_assert_double_eq_tol(p.share, 0.02, 1e-9);
}

TEST(test_predict_spreads_figures_over_nodes_and_pairs)
{
    struct rf_link_figures figures = {.copy_gbytes_per_s = 20,
                                      .link_gbytes_per_s = 12.5,
                                      .link_latency_us = 5};
    AUTO(rf_capacities) links;
    rf_capacities_init(&links, 2);
    rf_link_figures_spread(&figures, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 20);
    ck_assert_double_eq(links.pair_gbytes_per_s[0], 0);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 12.5);
    ck_assert_double_eq(links.pair_latency_us[2], 5);
}

TEST(test_predict_takes_what_is_written_before_what_was_probed)
{
    struct rf_link_figures figures = {.copy_gbytes_per_s = 20,
                                      .link_latency_us = 5};
    AUTO(rf_capacities) links;
    rf_capacities_init(&links, 2);
    links.copy_gbytes_per_s[1] = 30;
    links.copy1_gbytes_per_s[1] = 9;
    links.pair_gbytes_per_s[1] = 12;
    links.pair_latency_us[1] = 50;
    rf_link_figures_spread(&figures, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 20);
    ck_assert_double_eq(links.copy1_gbytes_per_s[1], 9);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 12);
    ck_assert_double_eq(links.pair_latency_us[1], 5);
}

/* What stands in the way of a prediction, with figures of node a only, or of
 * both nodes; NULL in `says`: nothing. */
LOOP_TEST(test_predict_says_what_it_has_no_figures_for, 21)
{
    static const struct {
        const char *method;
        const char *infer;
        bool both, own;
        const char *says;
        bool named;
    } cases[] = {
        {"host", "{'tp': 4}", true, false, NULL, false},
        {"host", "{'tp': 4}", false, false,
         "no figures for copying on b; for links out of a", false},
        {"host", "{'tp': 4}", false, false,
         "; for links into a, b; set them in \"links\", or name results",
         false},
        {"ucx", "{'tp': 4}", true, false, NULL, false},
        {"ucx", "{'tp': 4}", false, false, "TCP probes do not count", false},
        {"null", "{'tp': 4}", true, false, "moves nothing", false},
        {"tcp", "{'tp': 4}", true, false, "sockets", false},
        {"tcp", "{'tp': 4}", true, true, NULL, false},
        {"shm", "{'tp': 2}", true, false, NULL, false},
        {"ipc", "{'tp': 4}", true, false, "in place", false},
        {"disk", "{'tp': 4}", true, false, "write_gbytes_per_s", false},
        {"nccl", "{'tp': 4}", true, false, NULL, false},
        {"nccl", "{'tp': 4}", false, false,
         "no figures for copying in GPU memory on b; for GPU links out of a",
         false},
        {"host", "{'tp': 1, 'layout': 'hf', 'quantize': true}", true, false,
         "no figure for converting on a", false},
        {"host", "{'tp': 1, 'layout': 'hf', 'quantize': true}", true, false,
         "name results of these nodes with quantize fp8_block128", false},
        {"host", "{'tp': 1, 'layout': 'hf', 'quantize': true}", true, false,
         "no figure for converting on a, b in the named results; run a "
         "scenario "
         "with quantize fp8_block128 there, or set convert_gbytes_per_s",
         true},
        {"host", "{'tp': 4}", false, false,
         "the named results do not have them: run this scenario on these nodes",
         true},
        {"tcp", "{'tp': 4}", true, false,
         "no figures for sockets inside a, b; set copy_gbytes_per_s in "
         "links.methods.tcp, or add to the named results some with method tcp",
         true},
        {"tcp", "{'tp': 4}", false, false,
         "which have yardsticks; set the others in \"links\"", true},
        {"disk", "{'tp': 1, 'layout': 'hf', 'quantize': true}", true, false,
         "not modelled beside files", false},
        {"nccl", "{'tp': 1, 'layout': 'hf', 'quantize': true}", true, false,
         "not modelled in GPU memory", false},
    };
    AUTO_FREE char *text =
        rf_xasprintf("{'name': 's', 'train': {'tp': 2, 'pp': 2}, 'infer': %s}",
                     cases[_i].infer);
    AUTO(configured_pair) pair = configured_pair(text);
    struct rf_predict_input input = {
        .scenario = pair.scenario,
        .method = cases[_i].method,
        .figures = {.copy_gbytes_per_s = 20, .link_gbytes_per_s = 12.5},
        .own = cases[_i].own,
        .named = cases[_i].named};
    AUTO_FREE char *gap;
    rf_capacities_init(&input.links, 2);
    input.links.sends_inside = strcmp(input.method, "tcp") == 0;
    input.links.copy_gbytes_per_s[0] = 20;
    input.links.own_gbytes_per_s[0] = input.links.own_gbytes_per_s[1] =
        input.links.sends_inside ? 20 : 0;
    if (cases[_i].both) {
        rf_link_figures_spread(&input.figures, &input.links);
    }
    if (input.links.sends_inside && !input.own) {
        const struct rf_result_set none = {.n = 0};
        const struct rf_predict_speeds any = {.config = pair.config};
        rf_predict_sockets(&none, &any, rf_method_info_find("tcp"), NULL,
                           &input.links);
    }
    gap = rf_predict_gap(&input);
    if (cases[_i].says == NULL) {
        ck_assert_ptr_null(gap);
    } else {
        ck_assert_ptr_nonnull(gap);
        assert_says(gap, cases[_i].says);
    }
    rf_capacities_free(&input.links);
}

/* Of changes between nodes whose encoding costs what results say: dense takes
 * the same time in all three cases. */
TEST(test_predict_crossover_follows_the_calibration)
{
    static const double fixed_ms[] = {0, 0, 1000}, factor[] = {1, 3, 1};
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': "
        "{'tp': 2}, 'update': {'density': 0.1}, 'encoding': 'auto'}");
    struct rf_predict_input input = {.scenario = pair.scenario,
                                     .method = "host",
                                     .figures = {.copy_gbytes_per_s = 20,
                                                 .scan_gbytes_per_s = 1,
                                                 .link_gbytes_per_s = 0.5}};
    double share[RF_ARRAY_SIZE(factor)];
    rf_capacities_init(&input.links, 2);
    rf_link_figures_spread(&input.figures, &input.links);
    for (size_t i = 0; i < RF_ARRAY_SIZE(factor); i++) {
        struct rf_predict_row row = {
            .method = rf_method_info_find("host"),
            .encoding = RF_ENCODING_AUTO,
            .p = {.fixed_ms = fixed_ms[i], .factor = factor[i]}};
        const struct rf_predict_rows rows = {.rows = &row, .n = 1};
        ck_assert_int_eq(rf_predict_crossover(&rows, &input, &row, NULL),
                         RF_OK);
        share[i] = row.crossover.share;
        ck_assert_double_eq_tol(row.crossover.link_gbytes_per_s, 0.5, 1e-9);
        ck_assert_double_eq_tol(row.crossover.scan_gbytes_per_s, 1, 1e-9);
        ck_assert_uint_eq(row.crossover.n_ranks, 2);
    }
    /* (1.1 + 21 p) / 1 = 1 / 0.5, to which the simulation adds 3 % for the
     * first job; with the factor, 1.1 alone is too much */
    ck_assert_double_eq_tol(share[0], 0.9 / 21, 0.003);
    ck_assert(share[1] == 0 && share[2] == 0);
    rf_capacities_free(&input.links);
}

/* Inside a node auto compares all that passes sockets, whose rate is that of
 * the method's yardsticks, not of memory. */
TEST(test_predict_crossover_inside_a_node_is_of_its_sockets)
{
    static const char *const others[] = {
        "'scenario': {'method': 'tcp'}, 'plan': {'bytes_local': 1}",
        "'scenario': {'method': 'tcp', 'strategy': 'gather_broadcast'}, "
        "'plan': {'bytes_local': 0}"};
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 1}, 'infer': "
        "{'tp': 1}, 'method': 'tcp', 'update': {'density': 0.1}, 'encoding': "
        "'auto'}");
    json_auto_t *result = json_loads(
        Q("{'scenario': {'method': 'tcp'}, 'plan': {'bytes_local': 0}, "
          "'bound': {'probe': {'before': "
          "{'nodes': [{'host': 'a', 'copy_gbytes_per_s': 20, "
          "'single_copy_gbytes_per_s': 9, 'scan_gbytes_per_s': 4}]}}, "
          "'yardstick': {'nodes': [{'host': 'a', 'copy_gbytes_per_s': "
          "0.5}]}}}"),
        0, NULL);
    struct rf_result_file files[3] = {{.result = result}};
    struct rf_predict_results results = {.config = pair.config,
                                         .set = {.files = files, .n = 3}};
    struct rf_predict_input input = {.scenario = pair.scenario,
                                     .method = "tcp"};
    struct rf_predict_row row = {.method = rf_method_info_find("tcp"),
                                 .encoding = RF_ENCODING_AUTO,
                                 .p = {.factor = 1}};
    const struct rf_predict_rows rows = {.rows = &row, .n = 1};
    AUTO_FREE char *gap = NULL;
    ck_assert_ptr_nonnull(result);
    for (size_t i = 0; i < 2; i++) { /* which copied in memory, too */
        AUTO_FREE char *text =
            rf_xasprintf("{%s, 'bound': {'yardstick': {'nodes': [{'host': 'a', "
                         "'copy_gbytes_per_s': 8}]}}}",
                         others[i]);
        files[1 + i].result = json_loads(Q(text), 0, NULL);
        ck_assert_ptr_nonnull(files[1 + i].result);
    }
    results.speeds[RF_HOST_MEMORY].config = pair.config;
    rf_predict_results_links(&results, pair.scenario, row.method, &input.links);
    ck_assert_double_eq(input.links.copy_gbytes_per_s[0], 0.5);
    ck_assert_double_eq(input.links.copy1_gbytes_per_s[0], 0);
    ck_assert_double_eq(input.links.own_gbytes_per_s[0], 20);
    gap = rf_predict_gap(&input);
    ck_assert_ptr_null(gap);
    ck_assert_int_eq(rf_predict_crossover(&rows, &input, &row, NULL), RF_OK);
    ck_assert_uint_eq(row.crossover.n_ranks, 2);
    ck_assert_double_eq(row.crossover.scan_gbytes_per_s, 4);
    ck_assert_double_eq(row.crossover.socket_gbytes_per_s, 0.5);
    ck_assert(row.crossover.share > 0.01 && row.crossover.share < 1);
    rf_capacities_free(&input.links);
    json_decref(files[1].result);
    json_decref(files[2].result);
}

/* An entry of the method that gives other figures leaves yardsticks in force,
 * and one of a node those of other nodes. */
TEST(test_predict_takes_the_rate_of_sockets_that_is_given)
{
    AUTO(configured_pair) pair =
        configured_pair("{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': "
                        "2}}");
    json_auto_t *result = json_loads(
        Q("{'scenario': {'method': 'tcp'}, 'plan': {'bytes_local': 0}, "
          "'bound': {'yardstick': {'nodes': [{'host': 'a', "
          "'copy_gbytes_per_s': 2}, {'host': 'b', 'copy_gbytes_per_s': 3}]}}}"),
        0, NULL);
    json_auto_t *given =
        json_loads(Q("{'per_op_us': 1, 'single_copy_gbytes_per_s': 1, 'nodes': "
                     "{'b': {'copy_gbytes_per_s': 7}}}"),
                   0, NULL);
    struct rf_result_file file = {.result = result};
    const struct rf_result_set set = {.files = &file, .n = 1};
    const struct rf_predict_speeds any = {.config = pair.config};
    AUTO(rf_capacities) links;
    ck_assert(result != NULL && given != NULL);
    rf_capacities_init(&links, 2);
    links.copy_gbytes_per_s[0] = links.copy_gbytes_per_s[1] = 40;
    rf_predict_sockets(&set, &any, rf_method_info_find("tcp"), given, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 2);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 7);
    ck_assert_double_eq(links.copy1_gbytes_per_s[1], 1);
    json_object_set_new(given, "copy_gbytes_per_s", json_real(5));
    rf_predict_sockets(&set, &any, rf_method_info_find("tcp"), given, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 5);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 7);
}

/* Ranks that keep their weights copy them in memory: a prediction of that asks
 * neither for sockets nor, of auto, for comparing. */
LOOP_TEST(test_predict_of_own_copies_needs_the_rate_of_memory, 2)
{
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 4, 'layout': "
        "'megatron'}, 'method': 'tcp', 'update': {'density': 0.1}, 'encoding': "
        "'auto'}");
    struct rf_predict_input input = {.scenario = pair.scenario,
                                     .method = "tcp"};
    AUTO_FREE char *gap;
    rf_capacities_init(&input.links, 2);
    input.links.sends_inside = true;
    input.links.own_gbytes_per_s[0] = input.links.own_gbytes_per_s[1] = _i;
    ck_assert_uint_gt(pair.scenario->schedule->node_copy[0], 0);
    ck_assert_uint_eq(pair.scenario->schedule->wire_bytes, 0);
    gap = rf_predict_gap(&input);
    if (_i == 0) {
        ck_assert_ptr_nonnull(gap);
        assert_says(gap, "no figures for copying on a");
    } else {
        ck_assert_ptr_null(gap);
    }
    rf_capacities_free(&input.links);
}

/* A result that measured `pair` in 5 ms, as a run would write it. */
static json_t *result_of(const struct configured_pair *pair, const char *name)
{
    char plan[RF_HASH_TEXT_SIZE], schedule[RF_HASH_TEXT_SIZE];
    rf_hash_text(&pair->scenario->plan->digest, plan);
    rf_hash_text(&pair->scenario->schedule->digest, schedule);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:[{s:s}, {s:s}], s:{s:s}, s:{s:s}, s:{s:f}}",
        "name", name, "status", "ok", "model", rf_model_json(pair->model),
        "scenario", json_deep_copy(pair->scenario->document), "environment",
        "host", "a", "host", "b", "plan", "digest", plan, "schedule", "digest",
        schedule, "summary", "median_ms", 5.0);
}

/* What is found when the value at `object`.`key` of the only result is another;
 * a NULL key changes nothing. */
static double measured_with(const char *name, const char *method,
                            const char *object, const char *key, json_t *value,
                            char **why)
{
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}");
    struct rf_result_file file = {
        .name = rf_xstrdup(name), .run = rf_xstrdup("r"), .result = NULL};
    struct rf_result_set set = {.files = &file, .n = 1};
    json_auto_t *model = rf_model_json(pair.model);
    struct rf_measured found;
    file.result = result_of(&pair, name);
    if (key != NULL) {
        json_object_set(object != NULL ? json_object_get(file.result, object)
                                       : file.result,
                        key, value);
    }
    rf_predict_measured(&set, NULL, pair.scenario, method, model, NULL, &found);
    ck_assert_ptr_eq(found.from, found.ms > 0 ? &file : NULL);
    *why = found.why;
    json_decref(value);
    json_decref(file.result);
    free(file.name);
    free(file.run);
    return found.ms;
}

TEST(test_predict_finds_what_measured_the_same_refit)
{
    char *why = NULL;
    ck_assert_double_eq(measured_with("s", "host", NULL, NULL, NULL, &why), 5);
    ck_assert_double_eq(measured_with("other", "host", NULL, NULL, NULL, &why),
                        5);
    ck_assert_double_eq(measured_with("s", "host", "scenario", "iterations",
                                      json_integer(77), &why),
                        5);
    ck_assert_double_eq(measured_with("s", "host", "model", "name",
                                      json_string("renamed"), &why),
                        5);
    ck_assert_double_eq(measured_with("s", "host", "model", "unknown_tensors",
                                      json_null(), &why),
                        5);
    ck_assert_ptr_null(why);
    ck_assert_double_eq(measured_with("s", "tcp", NULL, NULL, NULL, &why), 0);
    ck_assert_double_eq(
        measured_with("other", "host", "model", "bytes", json_integer(1), &why),
        0);
    ck_assert_ptr_null(why);
}

/* What a library is told in launch.env may change everything. */
TEST(test_predict_shows_no_measurement_with_other_variables)
{
    AUTO_FREE char *why = NULL;
    ck_assert_double_eq(
        measured_with("s", "host", NULL, "cluster",
                      json_pack("{s:{s:{s:s, s:s, s:n}}}", "launch", "env",
                                "OTHER", "x", "NCCL_COMM_TOKEN", "secret",
                                "UCX_TLS"),
                      &why),
        5);
    ck_assert_double_eq(measured_with("s", "host", NULL, "cluster",
                                      json_pack("{s:{s:{s:s}}}", "launch",
                                                "env", "UCX_TLS", "tcp,self"),
                                      &why),
                        0);
    ck_assert_ptr_nonnull(why);
    assert_says(why, "launch.env.UCX_TLS is \"tcp,self\" there, not set here");
}

LOOP_TEST(test_predict_says_how_a_measurement_of_the_name_differs, 6)
{
    static const struct {
        const char *object, *key, *value, *says;
    } cases[] = {
        {NULL, "status", "failed", "of run r failed"},
        {"model", "dtype", "float32", "model.dtype is \"float32\" there"},
        {"scenario", "method", "tcp",
         "scenario.method is \"tcp\" there, \"host\" here"},
        {"plan", "digest", "00", "plan.digest is \"00\" there"},
        {"schedule", "digest", "00", "schedule.digest is \"00\" there"},
        {"scenario", "train", "all", "scenario.train differs"},
    };
    AUTO_FREE char *why = NULL;
    ck_assert_double_eq(measured_with("s", "host", cases[_i].object,
                                      cases[_i].key,
                                      json_string(cases[_i].value), &why),
                        0);
    ck_assert_ptr_nonnull(why);
    assert_says(why, cases[_i].says);
    assert_says(why, "scenario s of run r");
}

TEST(test_predict_shows_no_measurement_of_other_nodes)
{
    AUTO_FREE char *why = NULL;
    json_t *nodes = json_pack("[{s:s}, {s:s}]", "host", "a", "host", "c");
    ck_assert_double_eq(
        measured_with("s", "host", NULL, "environment", nodes, &why), 0);
    ck_assert_ptr_nonnull(why);
    assert_says(why, "\"c\" there, \"b\" here");
}

/* A result of one scenario, with its probe before and after it. */
static struct rf_result_file probed(const char *method, const char *before,
                                    const char *after)
{
    struct rf_result_file file = {.path = NULL};
    char *text = rf_xasprintf("{'scenario': {'method': '%s'}, 'bound': "
                              "{'probe': {'before': %s, 'after': %s}}}",
                              method, before, after);
    file.result = json_loads(Q(text), 0, NULL);
    ck_assert_ptr_nonnull(file.result);
    free(text);
    return file;
}

#define NODE_A(all)                                                            \
    "{'nodes': [{'host': 'a', 'copy_gbytes_per_s': " all "}], 'pairs': "       \
    "[{'from': 'a', 'to': 'b', 'gbytes_per_s': " all ", 'latency_us': 7}]}"
#define NODE_C "{'nodes': [{'host': 'c', 'copy_gbytes_per_s': 9}]}"

/* The best probe of a node counts, in the memory of the method; links are
 * probed over TCP whatever the method. */
TEST(test_predict_takes_the_best_figures_of_probes)
{
    struct rf_result_file files[] = {
        probed("host", NODE_A("3"), NODE_A("5")),
        probed("tcp", NODE_A("4"), "null"),
        probed("nccl", NODE_A("100"), NODE_C),
    };
    struct rf_result_set set = {.files = files, .n = RF_ARRAY_SIZE(files)};
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}");
    struct rf_predict_speeds speeds;
    struct rf_capacities links;
    rf_capacities_init(&links, 2);
    rf_predict_speeds_init(&set, pair.config, RF_HOST_MEMORY, &speeds);
    rf_predict_links(&set, &speeds, rf_method_info_find("host"), 0, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 5);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 0);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 100);
    ck_assert_double_eq(links.pair_latency_us[1], 7);
    rf_capacities_free(&links);
    rf_capacities_init(&links, 2);
    rf_predict_links(&set, &speeds, rf_method_info_find("nccl"), 0, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 100);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 0);
    rf_capacities_free(&links);
    rf_capacities_init(&links, 2); /* host memory, but another transport */
    rf_predict_links(&set, &speeds, rf_method_info_find("ucx"), 0, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 5);
    ck_assert_double_eq(links.pair_gbytes_per_s[1], 0);
    rf_capacities_free(&links);
    rf_predict_speeds_free(&speeds);
    ck_assert(rf_predict_knows_nodes(&set, pair.config));
    set.n = 0;
    ck_assert(!rf_predict_knows_nodes(&set, pair.config));
    for (size_t i = 0; i < RF_ARRAY_SIZE(files); i++) {
        json_decref(files[i].result);
    }
}

#define PROBED_PAIR                                                            \
    "'bound': {'probe': {'before': {'pairs': [{'from': 'a', 'to': 'b', "       \
    "'gbytes_per_s': 0.9}]}}}"

/* The rate of the link out of node a that a result ran on, while "links" of the
 * file says 12.5, and of its memory, while that says 40; 0: unknown. */
LOOP_TEST(test_predict_knows_the_links_that_a_result_ran_on, 8)
{
    static const struct {
        const char *method, *result;
        bool nominal;
        double rate;
    } cases[] = {
        {"host", PROBED_PAIR, false, 0.9},
        {"host", PROBED_PAIR ", 'cluster': {'links': {'link_gbytes_per_s': 3}}",
         false, 0.9},
        {"host",
         PROBED_PAIR ", 'cluster': {'links': {'fabric': 'ethernet-10g'}}", true,
         1.25},
        {"host", PROBED_PAIR, true, 0.9},
        {"host",
         "'bound': {'yardstick': {'nodes': [{'host': 'a', "
         "'sent_gbytes_per_s': 2}, {'host': 'b', 'received_gbytes_per_s': "
         "2}]}}",
         false, 2},
        {"host", "'bound': null", false, 0},
        {"ucx", PROBED_PAIR, false, 0},
        {"ucx", PROBED_PAIR ", 'cluster': {'links': {'nic_gbytes_per_s': 25}}",
         false, 25},
    };
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': "
        "{'tp': 2}}");
    const struct rf_link_figures figures = {.copy_gbytes_per_s = 40,
                                            .link_gbytes_per_s = 12.5};
    AUTO_FREE char *text =
        rf_xasprintf("{'scenario': {'method': 'host'}, %s}", cases[_i].result);
    json_auto_t *result = json_loads(Q(text), 0, NULL);
    struct rf_result_file files[] = {{.result = result},
                                     probed("host", NODE_A("5"), "null")};
    struct rf_predict_results results = {.config = pair.config,
                                         .set = {.files = files, .n = 2}};
    struct rf_predict_input input = {.scenario = pair.scenario,
                                     .method = cases[_i].method};
    struct rf_predict_input own;
    ck_assert_ptr_nonnull(result);
    results.speeds[RF_HOST_MEMORY].config = pair.config;
    pair.config->links.all[RF_METHOD_HOST].nominal_nic = cases[_i].nominal;
    rf_capacities_init(&input.links, 2);
    rf_link_figures_spread(&figures, &input.links);
    ck_assert_int_eq(rf_predict_own(&results, files, &input, &own),
                     cases[_i].rate > 0);
    ck_assert_double_eq(rf_capacities_capacity(&own.links, 0, true),
                        cases[_i].rate);
    ck_assert_double_eq(own.links.copy_gbytes_per_s[0], 5);
    ck_assert_double_eq(own.links.copy_gbytes_per_s[1], 40);
    rf_capacities_free(&own.links);
    rf_capacities_free(&input.links);
    json_decref(files[1].result);
}

/* Ports of GPUs, rates of files and costs are those of the result's own file,
 * as far as it gives them. Files need no link. */
LOOP_TEST(test_predict_knows_the_figures_that_a_result_ran_on, 3)
{
    static const struct {
        const char *method, *links;
        double port, write, setup_ms;
    } cases[] = {
        {"nccl", "{'nvlink_gbytes_per_s': 450, 'nic_gbytes_per_s': 25}", 450, 7,
         100},
        {"nccl", "{'nic_gbytes_per_s': 25, 'setup_ms': 3}", 900, 7, 3},
        {"disk", "{'methods': {'disk': {'write_gbytes_per_s': 2}}}", 0, 2, 100},
    };
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': "
        "{'tp': 2}}");
    AUTO_FREE char *text =
        rf_xasprintf("{'scenario': {'method': '%s'}, 'cluster': {'links': %s}}",
                     cases[_i].method, cases[_i].links);
    json_auto_t *result = json_loads(Q(text), 0, NULL);
    struct rf_result_file file = {.result = result};
    struct rf_predict_results results = {.config = pair.config,
                                         .set = {.files = &file, .n = 1}};
    struct rf_predict_input own,
        input = {.scenario = pair.scenario,
                 .method = cases[_i].method,
                 .figures = {.write_gbytes_per_s = 7, .setup_ms = 100}};
    ck_assert_ptr_nonnull(result);
    results.speeds[RF_HOST_MEMORY].config = pair.config;
    results.speeds[RF_DEVICE_MEMORY].config = pair.config;
    rf_capacities_init(&input.links, 2);
    input.links.devices = strcmp(input.method, "nccl") == 0;
    input.links.port_gbytes_per_s = input.links.devices ? 900 : 0;
    ck_assert(rf_predict_own(&results, &file, &input, &own));
    ck_assert_double_eq(own.links.port_gbytes_per_s, cases[_i].port);
    ck_assert_double_eq(own.figures.write_gbytes_per_s, cases[_i].write);
    ck_assert_double_eq(own.figures.setup_ms, cases[_i].setup_ms);
    rf_capacities_free(&own.links);
    rf_capacities_free(&input.links);
}

/* Repeats of `pair` with 3 iterations each, of so many ms in steps of 1, and so
 * many GB/s before and after. */
struct repeat {
    double ms, before, after;
};

static json_t *repeated(const struct configured_pair *pair,
                        const struct repeat *repeats, int n)
{
    json_t *result = result_of(pair, "s");
    json_t *list = json_array(), *iterations = json_array();
    for (int r = 0; r < n; r++) {
        json_array_append_new(
            list,
            json_pack("{s:i, s:{s:{s:{s:[{s:s, s:f}]}, s:{s:[{s:s, s:f}]}}}}",
                      "repeat", r, "bound", "probe", "before", "nodes", "host",
                      "a", "copy_gbytes_per_s", repeats[r].before, "after",
                      "nodes", "host", "a", "copy_gbytes_per_s",
                      repeats[r].after));
        for (int i = 0; i < 3; i++) {
            json_array_append_new(iterations,
                                  json_pack("{s:i, s:f}", "repeat", r,
                                            "refit_ms", repeats[r].ms + i));
        }
    }
    json_object_set_new(result, "repeats", list);
    json_object_set_new(result, "iterations", iterations);
    return result;
}

/* Probes of one machine differ by a little; one that is twice as fast in a
 * repeat, at its beginning or its end, is another. */
LOOP_TEST(test_predict_counts_repeats_on_usual_nodes, 11)
{
    static const struct {
        struct repeat repeats[8];
        int n;
        double ms; /* 5: of the summary, which all are in */
        size_t n_left_out;
        double copy_gbytes_per_s; /* the best that counts */
        size_t n_unsettled;
    } cases[] = {
        {{{10, 20, 22}, {20, 25, 16}, {30, 20, 20}}, 3, 5, 0, 25, 0},
        {{{10, 20, 22}, {20, 44, 44}, {12, 20, 20}}, 3, 12, 1, 22, 0},
        {{{10, 44, 44}, {20, 20, 20}, {12, 44, 40}}, 3, 12, 1, 44, 0},
        {{{10, 20, 22}, {20, 20, 44}, {12, 20, 20}, {90, 9, 21}, {14, 20, 19}},
         5,
         13,
         2,
         22,
         0},
        /* one probe each, as with yardsticks */
        {{{10, 20, 0}, {20, 44, 0}, {12, 22, 0}}, 3, 12, 1, 22, 0},
        /* what cannot be judged counts, but is no evidence */
        {{{10, 20, 0}, {20, 44, 0}, {12, 22, 0}, {30, 0, 0}}, 4, 13, 1, 22, 0},
        /* no majority */
        {{{10, 44, 20}, {20, 20, 44}, {12, 44, 20}, {30, 0, 0}},
         4,
         5,
         0,
         44,
         3},
        {{{10, 20, 20}, {10, 20, 20}, {20, 44, 44}, {20, 44, 44}},
         4,
         5,
         0,
         44,
         4},
        {{{10, 44, 44},
          {12, 20, 20},
          {30, 20, 44},
          {11, 44, 44},
          {20, 20, 44},
          {14, 20, 20},
          {13, 44, 44},
          {20, 44, 20}},
         8,
         12,
         5,
         44,
         0},
        /* two machines, and changes from one to the other */
        {{{10, 20, 20}, {12, 20, 20}, {13, 20, 20}, {20, 44, 20}, {20, 44, 44}},
         5,
         13,
         2,
         20,
         0},
        /* too few */
        {{{10, 20, 20}, {20, 44, 44}}, 2, 5, 0, 44, 0},
    };
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}");
    char name[] = "s", run[] = "r";
    struct rf_result_file file = {
        .name = name,
        .run = run,
        .result = repeated(&pair, cases[_i].repeats, cases[_i].n)};
    struct rf_result_set set = {.files = &file, .n = 1};
    json_auto_t *model = rf_model_json(pair.model);
    struct rf_measured found;
    AUTO(rf_predict_speeds) speeds;
    AUTO(rf_capacities) links;
    rf_predict_speeds_init(&set, pair.config, RF_HOST_MEMORY, &speeds);
    rf_capacities_init(&links, 2);
    rf_predict_links(&set, &speeds, rf_method_info_find("host"), 0, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0],
                        cases[_i].copy_gbytes_per_s);
    rf_predict_measured(&set, &speeds, pair.scenario, "host", model, NULL,
                        &found);
    ck_assert_double_eq(found.ms, cases[_i].ms);
    ck_assert_uint_eq(found.n_left_out, cases[_i].n_left_out);
    ck_assert_uint_eq(speeds.n_unsettled, cases[_i].n_unsettled);
    ck_assert_ptr_null(found.why);
    rf_predict_measured(&set, NULL, pair.scenario, "host", model, NULL, &found);
    ck_assert_double_eq(found.ms, 5);
    json_decref(file.result);
}

/* A result of which nothing counts says so. */
TEST(test_predict_says_when_nodes_were_never_as_usual)
{
    static const struct repeat usual[] = {{9, 20, 20}, {9, 20, 20}},
                               other = {5, 44, 44};
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}");
    char name[] = "s", run[] = "r";
    struct rf_result_file files[] = {
        {.name = name, .run = run, .result = repeated(&pair, usual, 2)},
        {.name = name, .run = run, .result = repeated(&pair, &other, 1)},
        {.name = NULL}};
    struct rf_result_set set = {.files = files, .n = 2};
    json_auto_t *model = rf_model_json(pair.model);
    struct rf_measured found;
    AUTO(rf_predict_speeds) speeds;
    rf_predict_speeds_init(&set, pair.config, RF_HOST_MEMORY, &speeds);
    rf_predict_measured(&set, &speeds, pair.scenario, "host", model, NULL,
                        &found);
    ck_assert_double_eq(found.ms, 5); /* of the one before it */
    ck_assert_ptr_eq(found.from, &files[0]);
    ck_assert_uint_eq(found.n_left_out, 1);
    ck_assert_ptr_null(found.why);
    files[2] = files[0];
    set.files = &files[1]; /* the other one first */
    rf_predict_measured(&set, &speeds, pair.scenario, "host", model, NULL,
                        &found);
    ck_assert_ptr_eq(found.from, &files[2]);
    ck_assert_uint_eq(found.n_left_out, 1);
    set.n = 1;
    rf_predict_measured(&set, &speeds, pair.scenario, "host", model, NULL,
                        &found);
    ck_assert_double_eq(found.ms, 0);
    ck_assert_ptr_null(found.from);
    ck_assert_str_eq(
        found.why,
        "not used: scenario s of run r: node a copied 44 GB/s, usually 20");
    free(found.why);
    json_decref(files[0].result);
    json_decref(files[1].result);
}

/* Each result has a row or a reason. */
TEST(test_predict_says_why_a_result_has_no_row)
{
    char in_row[] = "a", other[] = "b", run[] = "r", later[] = "it is old";
    struct rf_result_file files[] = {{.name = in_row, .run = run},
                                     {.name = other, .run = run},
                                     {.name = other, .run = run}};
    const struct rf_result_set set = {.files = files, .n = 3};
    char *const reasons[] = {NULL, later, NULL};
    struct rf_predict_row row = {.measured.from = &files[0]};
    const struct rf_predict_rows rows = {.rows = &row, .n = 1};
    json_auto_t *found = rf_predict_not_used(&set, reasons, &rows),
                *wanted = json_pack(
                    "[s,s]", "it is old",
                    "not used: scenario b of run r: no such refit in the file");
    ck_assert(json_equal(found, wanted));
}

/* Small buffers stay in a cache: they are no other machine, and say nothing of
 * large ones as long as anything else does. */
TEST(test_predict_keeps_sizes_of_probes_apart)
{
    char *reasons[2] = {NULL, NULL};
    static const struct repeat large[] = {{9, 20, 22}, {9, 20, 20}, {9, 21, 0}},
                               small[] = {{5, 60, 70}, {5, 66, 60}};
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}");
    char name[] = "s", run[] = "r";
    struct rf_result_file files[] = {
        {.name = name, .run = run, .result = repeated(&pair, large, 3)},
        {.name = name, .run = run, .result = repeated(&pair, small, 2)}};
    struct rf_result_set set = {.files = files, .n = 2};
    json_auto_t *model = rf_model_json(pair.model);
    struct rf_measured found;
    AUTO(rf_predict_speeds) speeds;
    static const struct {
        uint64_t copy_bytes;
        double gbytes_per_s;
    } wanted[] = {{64 << 20, 22}, {1 << 20, 70}, {2 << 20, 70}};
    for (int f = 0; f < 2; f++) {
        json_t *repeats = json_object_get(files[f].result, "repeats"), *repeat;
        size_t i;
        json_array_foreach (repeats, i, repeat) {
            json_t *bound = json_object_get(repeat, "bound");
            json_object_set_new(json_object_get(bound, "probe"), "copy_bytes",
                                json_integer(f == 0 ? 64 << 20 : 1 << 20));
        }
    }
    rf_predict_speeds_init(&set, pair.config, RF_HOST_MEMORY, &speeds);
    rf_predict_measured(&set, &speeds, pair.scenario, "host", model, reasons,
                        &found);
    ck_assert_ptr_eq(found.from, &files[1]);
    ck_assert_uint_eq(found.n_left_out, 0);
    ck_assert_str_eq(reasons[0],
                     "not used: scenario s of run r: superseded by run r");
    ck_assert_ptr_null(reasons[1]);
    free(reasons[0]);
    for (size_t i = 0; i < RF_ARRAY_SIZE(wanted); i++) {
        AUTO(rf_capacities) links;
        rf_capacities_init(&links, 2);
        rf_predict_links(&set, &speeds, rf_method_info_find("host"),
                         wanted[i].copy_bytes, &links);
        ck_assert_double_eq(links.copy_gbytes_per_s[0], wanted[i].gbytes_per_s);
    }
    json_decref(files[0].result);
    json_decref(files[1].result);
}

#define CONVERTS(rate, copies)                                                 \
    "{'nodes': [{'host': 'b', 'copy_gbytes_per_s': " copies ", "               \
    "'convert_gbytes_per_s': " rate "}]}"

/* The rate of node b for a scenario with these members, from results of these,
 * the first of which copied more slowly than the others. */
static double converts_at(const char *members, const char *const of[4])
{
    struct rf_result_file files[] = {
        probed("host", CONVERTS("3", "1"), "null"),
        probed("host", CONVERTS("4", "5"), "null"),
        probed("tcp", CONVERTS("5", "5"), "null"),
        probed("tcp", CONVERTS("6", "5"), "null"),
    };
    struct rf_result_set set = {.files = files, .n = RF_ARRAY_SIZE(files)};
    AUTO_FREE char *scenario = rf_xasprintf("{'name': 's', %s}", members);
    AUTO(configured_pair) pair = configured_pair(scenario);
    AUTO(rf_predict_speeds) speeds;
    AUTO(rf_capacities) links;
    for (size_t f = 0; f < RF_ARRAY_SIZE(files); f++) {
        json_auto_t *more = quoted_json("%s", of[f]);
        json_object_update(json_object_get(files[f].result, "scenario"), more);
    }
    rf_capacities_init(&links, 2);
    rf_predict_speeds_init(&set, pair.config, RF_HOST_MEMORY, &speeds);
    rf_predict_conversions(&set, &speeds, pair.scenario->spec, &links);
    for (size_t f = 0; f < RF_ARRAY_SIZE(files); f++) {
        json_decref(files[f].result);
    }
    ck_assert_double_eq(links.convert_gbytes_per_s[0], 0);
    return links.convert_gbytes_per_s[1];
}

#define ONE(format) "{'quantize': {'format': '" format "'}}"
#define POOLS(of_first, of_second)                                             \
    "{'infer': [{'quantize': {'format': '" of_first                            \
    "'}}, {'quantize': {'format': '" of_second "'}}]}"

/* Only of the scenario's formats, and at an unusual speed only if there is no
 * other. */
TEST(test_predict_takes_conversions_from_results_with_the_formats)
{
    static const char *const of[] = {ONE("mxfp8"), ONE("mxfp8"), ONE("nvfp4"),
                                     POOLS("mxfp8", "fp8_tensor")};
    static const char *const slow[] = {ONE("mxfp8"), ONE("nvfp4"), ONE("nvfp4"),
                                       ONE("nvfp4")};
    static const char *const swapped[] = {ONE("mxfp8"),
                                          POOLS("fp8_tensor", "mxfp8"),
                                          ONE("fp8_tensor"), ONE("fp8_tensor")};
    static const char *const half[] = {
        ONE("nvfp4"), "{'infer': [{}, {'quantize': {'format': 'mxfp8'}}]}",
        ONE("fp8_tensor"), POOLS("mxfp8", "nvfp4")};
    static const char one[] = "'train': {'tp': 2}, 'infer': {'tp': 1}, "
                              "'quantize': 'mxfp8'";
    static const char two[] =
        "'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': [{'tp': 1, "
        "'quantize': 'mxfp8'}, {'tp': 1, 'quantize': 'fp8_tensor'}]";
    ck_assert_double_eq(converts_at(one, of), 4);
    ck_assert_double_eq(converts_at(two, of), 6);
    ck_assert_double_eq(converts_at(one, slow), 3);
    ck_assert_double_eq(converts_at(one, half), 4);
    ck_assert_double_eq(converts_at(two, swapped), 0);
}

TEST(test_predict_knows_no_nodes_of_other_names)
{
    struct rf_result_file file = probed("host", NODE_C, "null");
    struct rf_result_set set = {.files = &file, .n = 1};
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}");
    ck_assert(!rf_predict_knows_nodes(&set, pair.config));
    json_decref(file.result);
}

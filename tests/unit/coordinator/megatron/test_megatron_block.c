/* What the benchmark prints, and the sizes in it. */
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/megatron/megatron_block.h"
#include "coordinator/megatron/megatron_cluster.h"
#include "planner/families/model_read.h"
#include "tests/lib/quotes.h"
#include "tests/unit/coordinator/megatron/megatron_lab.h"
#include "tests/unit/unit.h"

#define RULE                                                                   \
    "========================================"                                 \
    "========================================\n"

/* The benchmark's own example, but for the number of iterations. */
static const struct rf_megatron_summary example = {
    .collocated = true,
    .world_size = 4,
    .train = {.tp = 2, .pp = 2, .ep = 1, .dp = 1, .bytes = 47427092},
    .infer = {.tp = 4, .pp = 1, .ep = 1, .dp = 1, .bytes = 47427092},
    .layers = 4,
    .hidden = 1024,
    .heads = 8,
    .backend = "nccl",
    .warmup = 2,
    .iterations = 3};

#define HEAD                                                                   \
    RULE "COLLOCATED MODE REFIT BENCHMARK\n" RULE "World size: 4\n"            \
         "Source (training): TP=2, PP=2, EP=1, DP=1\n"                         \
         "Destination (inference): TP=4, PP=1, EP=1, DP=1\n"                   \
         "Model: 4 layers, 1024 hidden, 8 heads\n"                             \
         "Refit backend: nccl\n" RULE "\nBuilding models...\n"                 \
         "Source model size on rank 0: 45.23 MB\n"                             \
         "Destination model size on rank 0: 45.23 MB\n"

static char *printed(const struct rf_megatron_summary *summary,
                     const char *quoted)
{
    json_auto_t *record =
        quoted != NULL ? json_loads(Q(quoted), 0, NULL) : NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_megatron_block_print(summary, record, file);
    fclose(file);
    return text;
}

TEST(test_megatron_block_is_the_benchmarks)
{
    AUTO_FREE char *text = printed(
        &example, "{'status': 'ok', 'iterations': [{'refit_ms': 123.449}, "
                  "{'refit_ms': 121.34}, {'refit_ms': 119.871}], 'summary': "
                  "{'mean_ms': 122.154, 'min_ms': 119.871, 'max_ms': "
                  "125.43}}");
    ck_assert_str_eq(text, HEAD "\nWarmup: 2 iterations...\n"
                                "\nBenchmarking: 3 iterations...\n"
                                "  Iteration 1/3: 123.45 ms\n"
                                "  Iteration 2/3: 121.34 ms\n"
                                "  Iteration 3/3: 119.87 ms\n"
                                "\n" RULE "RESULTS\n" RULE
                                "Mean refit time: 122.15 ms\n"
                                "Min refit time:  119.87 ms\n"
                                "Max refit time:  125.43 ms\n" RULE "\n");
}

TEST(test_megatron_block_is_left_out_without_iterations)
{
    char *text = printed(&example, "{'status': 'failed', 'iterations': []}");
    ck_assert_str_eq(text, "");
    free(text);
    text = printed(&example, NULL);
    ck_assert_str_eq(text, "");
    free(text);
}

/* Of what was measured before a failure there are times, but no results. */
TEST(test_megatron_block_of_a_failed_run_has_no_results)
{
    AUTO_FREE char *text = printed(
        &example, "{'status': 'mismatch', 'iterations': [{'refit_ms': 1}], "
                  "'summary': {'mean_ms': 1, 'min_ms': 1, 'max_ms': 1}}");
    ck_assert_str_eq(text, HEAD "\nWarmup: 2 iterations...\n"
                                "\nBenchmarking: 3 iterations...\n"
                                "  Iteration 1/3: 1.00 ms\n\n");
}

TEST(test_megatron_block_of_experts_on_other_ranks)
{
    struct rf_megatron_summary summary = example;
    AUTO_FREE char *text;
    summary.collocated = false;
    summary.experts = 8;
    summary.infer.first_rank = 4;
    text = printed(&summary, "{'iterations': [{'refit_ms': 1}]}");
    assert_says(text, RULE "NON-COLLOCATED MODE REFIT");
    assert_says(text, "8 heads\nMoE: 8 experts\nRefit");
    assert_says(text, "\nDestination model size on rank 4: 45.23 MB\n");
}

static struct rf_megatron_summary summary_of(const char *flags)
{
    json_t *cluster = megatron_cluster(MEGATRON_SMALL "%s", flags);
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    struct rf_scenario *scenario = NULL;
    struct rf_megatron_summary summary;
    struct rf_err err = {.text = ""};
    struct rf_jnode node;
    assert_ok(
        rf_config_from_json(cluster, RF_MEGATRON_FILE, true, &config, &err),
        err);
    node = rf_jnode_root(config->model, RF_MEGATRON_FILE);
    assert_ok(rf_model_from_json(&node, &model, &err), err);
    assert_ok(rf_scenario_build(config, model, 0, &scenario, &err), err);
    summary = rf_megatron_summary_of(scenario);
    rf_scenario_destroy(scenario);
    rf_model_destroy(model);
    rf_config_destroy(config);
    return summary;
}

/* Elements of a layer on one of `tp` ranks: two norms; [q; k; v] and the first
 * matrix with their biases; output and second matrix, biases whole. */
static uint64_t layer(uint64_t tp)
{
    return 2 * 2 * 64 + (192 * 64 + 192) / tp + 64 * 64 / tp + 64 +
           (256 * 64 + 256) / tp + 64 * 256 / tp + 64;
}

/* 200 words are padded to 256, which divides by 128 · TP of the trainer. */
TEST(test_megatron_sizes_are_those_of_the_first_rank)
{
    struct rf_megatron_summary summary =
        summary_of("--refit-mode collocated --tensor-model-parallel-size 2 "
                   "--pipeline-model-parallel-size 2 "
                   "--rl-inference-tensor-model-parallel-size 4");
    ck_assert(summary.collocated);
    ck_assert_uint_eq(summary.world_size, 4);
    ck_assert_uint_eq(summary.train.dp, 1);
    ck_assert_uint_eq(summary.train.bytes,
                      4 * (256 / 2 * 64 + 48 * 64 + 2 * layer(2)));
    ck_assert_uint_eq(summary.infer.first_rank, 0);
    ck_assert_uint_eq(summary.infer.bytes,
                      4 * (256 / 4 * 64 + 48 * 64 + 4 * layer(4) + 2 * 64));
}

TEST(test_megatron_counts_copies_as_the_benchmark_does)
{
    struct rf_megatron_summary summary =
        summary_of("--refit-mode collocated --expert-model-parallel-size 2 "
                   "--rl-inference-expert-model-parallel-size 4 "
                   "--num-experts 8 --moe-ffn-hidden-size 32");
    ck_assert_uint_eq(summary.world_size, 4);
    ck_assert_uint_eq(summary.train.dp, 2);
    ck_assert_uint_eq(summary.infer.dp, 1);
    summary = summary_of("--refit-mode non-collocated "
                         "--tensor-model-parallel-size 2 "
                         "--rl-inference-tensor-model-parallel-size 4");
    ck_assert(!summary.collocated);
    ck_assert_uint_eq(summary.world_size, 6);
    ck_assert_uint_eq(summary.infer.first_rank, 2);
    ck_assert_uint_eq(summary.warmup, 2);
    ck_assert_uint_eq(summary.iterations, 10);
}

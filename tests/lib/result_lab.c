/* A small configuration and measured attempts. See result_lab.h. */
#include "tests/lib/result_lab.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/asserts.h"
#include "tests/lib/configured.h"
#include "tests/lib/fake_root.h"

const char result_lab_cluster[] =
    "{'name': 't', 'launch': {'method': 'local', 'env': {'HF_TOKEN': "
    "'hunter2', 'NCCL_DEBUG': 'WARN'}}, 'nodes': [{'host': 'a', 'slots': 2}, "
    "{'host': 'b', 'slots': 2}], 'model': {'megatron': {'num_layers': 2, "
    "'hidden_size': 64, 'num_attention_heads': 4, 'vocab_size': 128}}, "
    "'scenarios': [{'name': 'one', 'train': {'tp': 4}, 'infer': {'tp': 2}, "
    "'warmup': 1, 'iterations': 3}, {'name': 'two', 'train': {'tp': 2}, "
    "'infer': {'tp': 4}}]}";

struct result_lab result_lab;

void result_lab_load(const char *text)
{
    configured(text, &result_lab.config, &result_lab.model);
}

void result_lab_unload(void)
{
    rf_model_destroy(result_lab.model);
    rf_config_destroy(result_lab.config);
}

void result_lab_open(void)
{
    static char program[] = "refit-coord", file[] = "c.json";
    static char *argv[] = {program, file, NULL};
    fake_root_make();
    result_lab.settings = (struct rf_results_settings){
        .out = fake_root_path("results"),
        .maker = {2, argv, json_pack("{s:s}", "libuv", "1.2.3")}};
    result_lab_load(result_lab_cluster);
}

void result_lab_close(void)
{
    fake_root_remove();
    json_decref(result_lab.settings.maker.libraries);
    result_lab_unload();
}

/* Rank r needs (10 + iteration + r) ms and starts r · 100 us late. */
static void fill_iteration(struct rf_attempt *attempt, uint32_t iteration)
{
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        struct rf_msg_ran *s = &attempt->pending[r];
        s->ns = (int64_t)(10 + iteration + r) * 1000000;
        s->start_ns = 5000000 + r * 100000;
        s->end_ns = s->start_ns + s->ns;
        s->pack_ns = 1000000;
        s->wire_ns = 2000000;
        s->unpack_ns = 3000000;
        s->sync_ns = 500000;
        s->device_ns = r == 0 ? 9000000 : RF_ABSENT_I64;
        s->quantize_ns = r == 1 ? 1250000 : RF_ABSENT_I64;
        s->amax_ns = r == 1 ? 250000 : RF_ABSENT_I64;
        s->sent_bytes = 100 + r;
        s->received_bytes = 200 + r;
    }
    rf_attempt_keep(attempt, iteration);
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        attempt->pending_yardstick[r].ns = (int64_t)(7 + r) * 1000000;
    }
    rf_attempt_keep_yardstick(attempt, iteration);
}

struct rf_attempt *result_lab_attempt(size_t index)
{
    struct rf_scenario *scenario = NULL;
    struct rf_err err = {0};
    uint32_t n_nodes;
    struct rf_attempt *attempt;
    assert_ok(rf_scenario_build(result_lab.config, result_lab.model, index,
                                &scenario, &err),
              err);
    attempt = rf_attempt_create(1, index, scenario);
    snprintf(attempt->started_at, sizeof(attempt->started_at),
             "2026-01-02T03:04:05Z");
    snprintf(attempt->finished_at, sizeof(attempt->finished_at),
             "2026-01-02T03:04:06Z");
    for (uint32_t iteration = 0; iteration < 4; iteration++) {
        fill_iteration(attempt, iteration);
    }
    n_nodes = scenario->world->n_nodes;
    attempt->verified = 3;
    attempt->checked_bytes = 3 * scenario->plan->totals.bytes_total;
    for (uint32_t n = 0; n < n_nodes; n++) {
        attempt->before.copy_gbytes_per_s[n] = 1;
        attempt->after.copy_gbytes_per_s[n] = 2;
        attempt->before.copy1_gbytes_per_s[n] = 1;
    }
    for (uint32_t pair = 0; pair < n_nodes * n_nodes; pair++) {
        if (pair % (n_nodes + 1) != 0) { /* of two nodes */
            attempt->before.pair_gbytes_per_s[pair] = 0.5;
            attempt->before.pair_latency_us[pair] = 30;
            attempt->after.pair_gbytes_per_s[pair] = 0.25;
            attempt->after.pair_latency_us[pair] = 20;
        }
    }
    attempt->probed_before = attempt->probed_after = attempt->closed = true;
    return attempt;
}

void result_lab_forget(struct rf_attempt *attempt, size_t n)
{
    for (size_t i = n; i < attempt->n_iterations; i++) {
        struct rf_iteration *iteration = &attempt->iterations[i];
        free(iteration->ranks);
        for (uint32_t k = 0; k < attempt->scenario->world->n_nodes; k++) {
            rf_schema_free(&rf_msg_network_schema, &iteration->network[k]);
        }
        free(iteration->network);
    }
    attempt->n_iterations = n;
}

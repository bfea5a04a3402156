/*
 * How long plans take, and the proof of their transfers, and how that grows: a
 * table over 256 to 16,384 ranks and large refits, of up to 131,072 ranks, with
 * limits. Then what the coordinator makes of the world, the plan and the proved
 * schedule, and what a rank makes of it, the plan and its node's part of the
 * schedule, by strategy. Each row is made in processes of its own, so that its
 * peak memory is its own. Exit status 1 when a limit is passed. Run in the
 * source folder, on an idle machine; about a minute.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/families/model_read.h"
#include "planner/layout/mesh_rules.h"
#include "planner/schedule/schedule.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/plan_proof.h"

#define NODES 16384
#define SLOTS 8
#define ROUNDS 3

struct row {
    const char *model, *train, *infer;
    double limit_s; /* 0: none */
    long limit_mb;
    const char *strategy, *balance; /* NULL: the plan alone */
    uint32_t node;                  /* whose part of the schedule */
};

/* What a child reports. */
struct result {
    uint32_t ranks;
    uint64_t n, transfers;
    double seconds, cpu_seconds, prove_seconds, send_over_bound;
    double schedule_seconds;
    uint64_t ops, world_ops; /* that are kept, of all */
};

#define LLAMA_2048                                                             \
    "llama-3.1-70b", "\"tp\": 8, \"pp\": 8, \"dp\": 16",                       \
        "\"tp\": 8, \"dp\": 128"
#define DEEPSEEK_2048                                                          \
    "deepseek-v3",                                                             \
        "\"tp\": 4, \"pp\": 16, \"ep\": 16, \"dp\": 16, "                      \
        "\"num_layers_in_first_pipeline_stage\": 3, "                          \
        "\"num_layers_in_last_pipeline_stage\": 2",                            \
        "\"tp\": 8, \"dp\": 128"
#define KIMI_2048                                                              \
    "kimi-k2",                                                                 \
        "\"tp\": 8, \"pp\": 16, \"ep\": 64, \"etp\": 1, \"dp\": 8, "           \
        "\"num_layers_in_first_pipeline_stage\": 3, "                          \
        "\"num_layers_in_last_pipeline_stage\": 2",                            \
        "\"tp\": 8, \"dp\": 128, \"dp_replicate\": 8, \"ep\": 128, "           \
        "\"layout\": \"vllm\""
#define KIMI_16384                                                             \
    "kimi-k2",                                                                 \
        "\"tp\": 8, \"pp\": 16, \"ep\": 64, \"etp\": 1, \"dp\": 64, "          \
        "\"num_layers_in_first_pipeline_stage\": 3, "                          \
        "\"num_layers_in_last_pipeline_stage\": 2",                            \
        "\"tp\": 8, \"dp\": 1024, \"dp_replicate\": 64, \"ep\": 128, "         \
        "\"layout\": \"vllm\""

#define LLAMA_131072                                                           \
    "llama-3.1-70b", "\"tp\": 8, \"pp\": 8, \"dp\": 1024",                     \
        "\"tp\": 8, \"dp\": 8192"
#define KIMI_131072                                                            \
    "kimi-k2",                                                                 \
        "\"tp\": 8, \"pp\": 16, \"ep\": 64, \"etp\": 1, \"dp\": 512, "         \
        "\"num_layers_in_first_pipeline_stage\": 3, "                          \
        "\"num_layers_in_last_pipeline_stage\": 2",                            \
        "\"tp\": 8, \"dp\": 8192, \"dp_replicate\": 512, \"ep\": 128, "        \
        "\"layout\": \"vllm\""

static const struct row limits[] = {
    {LLAMA_2048, 0.25, 16, NULL, NULL, 0},
    {"deepseek-v3",
     "\"tp\": 4, \"pp\": 16, \"ep\": 16, \"dp\": 16, "
     "\"num_layers_in_first_pipeline_stage\": 3, "
     "\"num_layers_in_last_pipeline_stage\": 2",
     "\"tp\": 32, \"dp\": 8", 1, 0, NULL, NULL, 0},
    {KIMI_16384, 10, 64, NULL, NULL, 0},
    {"kimi-k2", "\"tp\": 16, \"ep\": 16, \"dp\": 512",
     "\"tp\": 8, \"ep\": 32, \"dp\": 1024", 10, 0, NULL, NULL, 0},
    {"qwen3-235b-a22b", "\"dp\": 512, \"layout\": \"fsdp\"",
     "\"tp\": 8, \"ep\": 32, \"dp\": 64, \"dp_replicate\": 16, \"layout\": "
     "\"vllm\"",
     10, 0, NULL, NULL, 0},
    {LLAMA_131072, 2, 64, NULL, NULL, 0},
    {KIMI_131072, 2, 64, NULL, NULL, 0},
};

/* Those of the world. */
static const struct row worlds[] = {
    {LLAMA_2048, 2, 512, "send_recv", "size", RF_NONE},
    {LLAMA_2048, 2, 512, "gather_broadcast", "size", RF_NONE},
    {DEEPSEEK_2048, 2, 512, "gather_broadcast", "size", RF_NONE},
    {KIMI_2048, 2, 512, "gather_broadcast", "size", RF_NONE},
    {LLAMA_2048, 2, 512, "allgather_global", "size", RF_NONE},
};

static const struct row slices[] = {
    {LLAMA_2048, 0.5, 16, "send_recv", "size", 0},
    {LLAMA_2048, 0.5, 16, "send_recv", "order", 0},
    {LLAMA_2048, 0, 0, "broadcast", "size", 0},
    {LLAMA_2048, 0, 0, "hierarchical", "size", 0},
    {LLAMA_2048, 0, 0, "allgather", "size", 0},
    {LLAMA_2048, 2, 512, "gather_broadcast", "size", 0},
    {LLAMA_2048, 2, 512, "gather_broadcast", "size", 200},
    {LLAMA_2048, 0, 0, "allgather_global", "size", 0},
    {LLAMA_2048, 2, 512, "allgather_global", "size", 200},
    {KIMI_16384, 10, 64, "send_recv", "size", 0},
    {KIMI_16384, 10, 128, "send_recv", "order", 0},
    {KIMI_16384, 0, 0, "broadcast", "size", 0},
    {KIMI_16384, 0, 0, "hierarchical", "size", 0},
    {KIMI_16384, 0, 0, "allgather", "size", 0},
};

static void die(const struct rf_err *err)
{
    fprintf(stderr, "bench-planner: %s\n", err->text);
    exit(2);
}

static struct rf_model *load_model(const char *name)
{
    char path[128];
    struct rf_err err = {0};
    struct rf_model *model = NULL;
    json_t *config = NULL, *wrapped;
    snprintf(path, sizeof(path), "models/%s.json", name);
    if (rf_json_load(path, 1 << 20, &config, &err) != RF_OK) {
        die(&err);
    }
    wrapped = json_pack("{s:o}", "config", config);
    struct rf_jnode node = rf_jnode_root(wrapped, path);
    if (rf_model_from_json(&node, &model, &err) != RF_OK) {
        die(&err);
    }
    json_decref(wrapped);
    return model;
}

static struct rf_spec *load_spec(const struct row *row)
{
    char text[1024];
    struct rf_err err = {0};
    struct rf_spec *spec = NULL;
    json_t *value = NULL;
    int n = snprintf(text, sizeof(text),
                     "{\"name\": \"bench\", \"mode\": \"disaggregated\", "
                     "\"train\": {%s}, \"infer\": {%s}, "
                     "\"strategy\": \"%s\", \"balance\": \"%s\"}",
                     row->train, row->infer,
                     row->strategy ? row->strategy : "send_recv",
                     row->balance ? row->balance : "size");
    if (rf_json_parse(text, (size_t)n, row->model, &value, &err) != RF_OK) {
        die(&err);
    }
    struct rf_jnode node = rf_jnode_root(value, row->model);
    if (rf_spec_from_json(&node, NULL, 0, &spec, &err) != RF_OK) {
        die(&err);
    }
    json_decref(value);
    return spec;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_since(int64_t started)
{
    return (double)(rf_now_ns() - started) / (double)RF_NS_PER_S;
}

static void prove(const struct rf_plan *plan, struct result *result)
{
    struct rf_err err = {0};
    int64_t started = rf_now_ns();
    if (plan_prove(plan, &err) != RF_OK) {
        die(&err);
    }
    result->prove_seconds = seconds_since(started);
}

static void schedule(const struct rf_plan *plan, uint32_t node,
                     struct result *result)
{
    struct rf_err err = {0};
    struct rf_schedule *part;
    int64_t started = rf_now_ns();
    if (rf_schedule_build(plan, node, &part, &err) != RF_OK ||
        (node == RF_NONE && rf_schedule_prove(plan, part, &err) != RF_OK)) {
        die(&err);
    }
    result->schedule_seconds = seconds_since(started);
    result->ops = part->n_ops;
    result->world_ops = part->n_world_ops;
    rf_schedule_destroy(part);
}

/* Plans once and writes the result to `to`. */
static void plan_once(const struct row *row, int to)
{
    struct rf_err err = {0};
    struct result result = {.ranks = 0};
    struct rf_model *model = load_model(row->model);
    struct rf_spec *spec = load_spec(row);
    struct rf_world *world = NULL;
    struct rf_plan *plan = NULL;
    uint32_t *slots = rf_xcalloc(NODES, sizeof(*slots));
    for (uint32_t i = 0; i < NODES; i++) {
        slots[i] = SLOTS;
    }
    if (rf_mesh_rules_place(spec, model, slots, NODES, &world, &err) != RF_OK) {
        die(&err);
    }
    result.cpu_seconds = cpu_seconds();
    if (rf_plan_build(model, world, spec, &plan, &err) != RF_OK) {
        die(&err);
    }
    result.cpu_seconds = cpu_seconds() - result.cpu_seconds;
    if (row->strategy == NULL) {
        prove(plan, &result);
    } else {
        schedule(plan, row->node, &result);
    }
    result.seconds = (double)plan->plan_ns / (double)RF_NS_PER_S;
    result.ranks = world->n_ranks;
    result.n = plan->n_transfers;
    result.transfers = plan->totals.transfers;
    result.send_over_bound = (double)plan->totals.max_send_bytes /
                             (double)RF_MAX(plan->totals.bound_send_bytes, 1);
    if (write(to, &result, sizeof(result)) != sizeof(result)) {
        perror("bench-planner: write");
    }
    rf_plan_destroy(plan);
    rf_world_destroy(world);
    rf_spec_destroy(spec);
    rf_model_destroy(model);
    free(slots);
}

/* The fastest of several processes, and the peak memory of any. */
static struct result measure(const struct row *row, int rounds, long *peak_mb)
{
    struct result best = {.seconds = 1e9};
    *peak_mb = 0;
    for (int i = 0; i < rounds; i++) {
        struct result result;
        struct rusage usage;
        int ends[2], status = 0;
        pid_t child;
        if (pipe(ends) != 0 || (child = fork()) < 0) {
            perror("bench-planner: fork");
            exit(2);
        }
        if (child == 0) {
            close(ends[0]);
            plan_once(row, ends[1]);
            exit(0);
        }
        close(ends[1]);
        bool got = read(ends[0], &result, sizeof(result)) == sizeof(result);
        close(ends[0]);
        if (wait4(child, &status, 0, &usage) < 0 || !got || status != 0) {
            exit(2);
        }
        *peak_mb = RF_MAX(*peak_mb, usage.ru_maxrss / 1024);
        if (result.seconds < best.seconds) {
            best = result;
        }
    }
    return best;
}

static bool is_over(const struct row *row, double seconds, long peak_mb)
{
    return (row->limit_s > 0 && seconds > row->limit_s) ||
           (row->limit_mb > 0 && peak_mb > row->limit_mb);
}

static const char *verdict(const struct row *row, bool over)
{
    return over ? "OVER THE LIMIT" : row->limit_s > 0 ? "within its limit" : "";
}

static void print_slice(const struct row *row, bool *ok)
{
    long peak_mb;
    struct result r = measure(row, 1, &peak_mb);
    bool over = is_over(row, r.seconds + r.schedule_seconds, peak_mb);
    printf("%-16s %6u %-16s %-7s %9llu %9llu %7.3f %10.3f %7ld %s\n",
           row->model, r.ranks, row->strategy, row->balance,
           (unsigned long long)r.ops, (unsigned long long)r.world_ops,
           r.seconds, r.schedule_seconds, peak_mb, verdict(row, over));
    fflush(stdout);
    *ok &= !over;
}

static void print_slices(const char *title, const struct row *rows, size_t n,
                         bool *ok)
{
    printf("\n%s\n", title);
    printf("%-16s %6s %-16s %-7s %9s %9s %7s %10s %7s\n", "model", "ranks",
           "strategy", "balance", "kept ops", "world ops", "plan s",
           "schedule s", "peak MB");
    fflush(stdout);
    for (size_t i = 0; i < n; i++) {
        print_slice(&rows[i], ok);
    }
}

static double print_row(const struct row *row, bool *ok)
{
    long peak_mb;
    struct result r = measure(row, ROUNDS, &peak_mb);
    double each_us = r.cpu_seconds * 1e6 / (double)RF_MAX(r.n, 1);
    bool over = is_over(row, r.seconds, peak_mb);
    printf("%-16s %6u %9llu %11llu %7.3f %7.3f %7.3f %7.3f %7ld %9.4f %s\n",
           row->model, r.ranks, (unsigned long long)r.n,
           (unsigned long long)r.transfers, r.seconds, r.cpu_seconds,
           r.prove_seconds, each_us, peak_mb, r.send_over_bound,
           verdict(row, over));
    fflush(stdout);
    *ok &= !over;
    return each_us;
}

int main(void)
{
    bool ok = true;
    double first = 0, last = 0;
    printf("%-16s %6s %9s %11s %7s %7s %7s %7s %7s %9s\n", "model", "ranks",
           "transfers", "of tensors", "plan s", "cpu s", "proof s", "us each",
           "peak MB", "max/bound");
    fflush(stdout);
    for (uint32_t ranks = 256; ranks <= 16384; ranks *= 2) {
        char train[64], infer[64];
        struct row row = {"llama-3.1-70b", train, infer, 0, 0, NULL, NULL, 0};
        snprintf(train, sizeof(train), "\"tp\": 8, \"pp\": 8, \"dp\": %u",
                 ranks / 128);
        snprintf(infer, sizeof(infer), "\"tp\": 8, \"dp\": %u", ranks / 16);
        last = print_row(&row, &ok);
        first = ranks == 256 ? last : first;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(limits); i++) {
        print_row(&limits[i], &ok);
    }
    printf("processor time a transfer, 16384 against 256 ranks: %.2f\n",
           last / first);
    if (last > 2 * first) {
        printf("growth is worse than linear\n");
        ok = false;
    }
    print_slices(
        "On the coordinator: the plan, the world's ops and their proof", worlds,
        RF_ARRAY_SIZE(worlds), &ok);
    print_slices("On a rank: the plan and its node's ops", slices,
                 RF_ARRAY_SIZE(slices), &ok);
    return ok ? 0 : 1;
}

/* The benchmark's output. See megatron_block.h. */
#include "coordinator/megatron/megatron_block.h"

#include <string.h>

#include "coordinator/records/fields.h"

#define RULE                                                                   \
    "========================================"                                 \
    "========================================\n"

static uint64_t parameter_bytes(const struct rf_plan *plan, enum rf_side side,
                                uint32_t rank)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, side, rank);
    uint64_t sum = 0;
    for (size_t i = 0; i < layout->n_params; i++) {
        sum += layout->params[i].bytes * layout->params[i].n_instances;
    }
    return sum;
}

static struct rf_megatron_side side_of(const struct rf_scenario *scenario,
                                       enum rf_side which)
{
    const struct rf_side_spec *side = &scenario->spec->side[which];
    const struct rf_world *world = scenario->world;
    const uint32_t first = world->rank_of[which][0];
    const uint64_t group = (uint64_t)side->tp * side->pp * side->ep;
    return (struct rf_megatron_side){
        .tp = side->tp,
        .pp = side->pp,
        .ep = side->ep,
        .dp = (uint32_t)RF_MAX(world->size[which] / group, 1),
        .first_rank = first,
        .bytes = parameter_bytes(scenario->plan, which, first)};
}

struct rf_megatron_summary
rf_megatron_summary_of(const struct rf_scenario *scenario)
{
    return (struct rf_megatron_summary){
        .collocated = scenario->spec->mode == RF_COLOCATED,
        .world_size = scenario->world->n_ranks,
        .train = side_of(scenario, RF_TRAIN),
        .infer = side_of(scenario, RF_INFER),
        .warmup = scenario->spec->warmup,
        .iterations = scenario->spec->iterations};
}

static void print_side(const char *name, const struct rf_megatron_side *side,
                       FILE *to)
{
    fprintf(to, "%s: TP=%u, PP=%u, EP=%u, DP=%u\n", name, side->tp, side->pp,
            side->ep, side->dp);
}

static void print_size(const char *name, const struct rf_megatron_side *side,
                       FILE *to)
{
    fprintf(to, "%s model size on rank %u: %.2f MB\n", name, side->first_rank,
            (double)side->bytes / (1 << 20));
}

static void print_head(const struct rf_megatron_summary *summary, FILE *to)
{
    fprintf(to,
            RULE "%sCOLLOCATED MODE REFIT BENCHMARK\n" RULE "World size: %u\n",
            summary->collocated ? "" : "NON-", summary->world_size);
    print_side("Source (training)", &summary->train, to);
    print_side("Destination (inference)", &summary->infer, to);
    fprintf(to, "Model: %llu layers, %llu hidden, %llu heads\n",
            (unsigned long long)summary->layers,
            (unsigned long long)summary->hidden,
            (unsigned long long)summary->heads);
    if (summary->experts > 0) {
        fprintf(to, "MoE: %llu experts\n",
                (unsigned long long)summary->experts);
    }
    fprintf(to, "Refit backend: %s\n" RULE "\nBuilding models...\n",
            summary->backend);
    print_size("Source", &summary->train, to);
    print_size("Destination", &summary->infer, to);
}

static void print_results(const json_t *record, FILE *to)
{
    double mean = 0, min = 0, max = 0;
    if (rf_result_is_ok(record) &&
        rf_result_number(record, "summary", "mean_ms", &mean) &&
        rf_result_number(record, "summary", "min_ms", &min) &&
        rf_result_number(record, "summary", "max_ms", &max)) {
        fprintf(to,
                "\n" RULE "RESULTS\n" RULE "Mean refit time: %.2f ms\n"
                "Min refit time:  %.2f ms\nMax refit time:  %.2f ms\n" RULE,
                mean, min, max);
    }
}

static void print_times(const struct rf_megatron_summary *summary,
                        const struct rf_result_samples *samples, FILE *to)
{
    const size_t all = RF_MAX(samples->count, (size_t)summary->iterations);
    fprintf(to, "\nWarmup: %u iterations...\n", summary->warmup);
    fprintf(to, "\nBenchmarking: %zu iterations...\n", all);
    for (size_t i = 0; i < samples->count; i++) {
        fprintf(to, "  Iteration %zu/%zu: %.2f ms\n", i + 1, all,
                samples->values[i]);
    }
}

void rf_megatron_block_print(const struct rf_megatron_summary *summary,
                             const json_t *record, FILE *to)
{
    struct rf_result_samples samples = rf_result_samples(record, "refit_ms");
    if (samples.count > 0) {
        print_head(summary, to);
        print_times(summary, &samples, to);
        print_results(record, to);
        putc('\n', to);
    }
    rf_result_samples_free(&samples);
}

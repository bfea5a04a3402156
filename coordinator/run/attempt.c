/* What one attempt measured. See attempt.h. */
#include "coordinator/run/attempt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"

struct rf_fault rf_fault_make(uint32_t node, uint32_t rank,
                              enum rf_status status, const char *fmt, ...)
{
    struct rf_fault fault = {.node = node, .rank = rank, .status = status};
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&fault.text, fmt, args) < 0) {
        fault.text = rf_xstrdup(rf_strstatus(status));
    }
    va_end(args);
    rf_text_clean(fault.text, strlen(fault.text));
    return fault;
}

void rf_fault_free(struct rf_fault *fault)
{
    for (size_t i = 0; i < fault->lines.n; i++) {
        free(fault->lines.list[i]);
    }
    free(fault->lines.list);
    free(fault->phase);
    free(fault->text);
    *fault = (struct rf_fault){.node = RF_NONE, .rank = RF_NONE};
}

struct rf_attempt *rf_attempt_create(uint32_t number, size_t index,
                                     struct rf_scenario *scenario)
{
    struct rf_attempt *attempt = rf_xcalloc(1, sizeof(*attempt));
    attempt->number = number;
    attempt->index = index;
    attempt->scenario = scenario;
    if (scenario != NULL) {
        uint32_t n = scenario->world->n_ranks;
        attempt->pending = rf_xcalloc(n, sizeof(*attempt->pending));
        attempt->ranks = rf_xcalloc(n, sizeof(*attempt->ranks));
        attempt->traces = rf_xcalloc(n, sizeof(*attempt->traces));
        rf_links_init(&attempt->before, scenario->world->n_nodes);
        rf_links_init(&attempt->after, scenario->world->n_nodes);
    }
    return attempt;
}

void rf_attempt_destroy(struct rf_attempt *attempt)
{
    if (attempt == NULL) {
        return;
    }
    for (size_t i = 0; i < attempt->n_iterations; i++) {
        free(attempt->iterations[i].ranks);
    }
    for (size_t i = 0; i < attempt->n_faults; i++) {
        rf_fault_free(&attempt->faults[i]);
    }
    if (attempt->wrong != NULL) {
        rf_schema_free(&rf_msg_mismatch_schema, &attempt->wrong->at);
        free(attempt->wrong);
    }
    if (attempt->scenario != NULL) {
        rf_links_free(&attempt->before);
        rf_links_free(&attempt->after);
    }
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        free(attempt->traces[r].events);
    }
    free(attempt->traces);
    free(attempt->trace_samples);
    free(attempt->iterations);
    free(attempt->pending);
    free(attempt->ranks);
    free(attempt->faults);
    rf_scenario_destroy(attempt->scenario);
    free(attempt);
}

uint32_t rf_attempt_ranks(const struct rf_attempt *attempt)
{
    return attempt->scenario != NULL ? attempt->scenario->world->n_ranks : 0;
}

bool rf_attempt_warmup(const struct rf_attempt *attempt, uint32_t iteration)
{
    return iteration < attempt->scenario->spec->warmup;
}

bool rf_attempt_is_traced(const struct rf_attempt *attempt, uint32_t iteration)
{
    const struct rf_spec *spec = attempt->scenario->spec;
    return iteration >= spec->warmup + spec->iterations;
}

static struct rf_sample *take_pending(struct rf_attempt *attempt)
{
    struct rf_sample *taken = attempt->pending;
    attempt->pending =
        rf_xcalloc(rf_attempt_ranks(attempt), sizeof(*attempt->pending));
    return taken;
}

void rf_attempt_keep(struct rf_attempt *attempt, uint32_t iteration)
{
    struct rf_iteration kept = {.index = iteration,
                                .warmup = rf_attempt_warmup(attempt, iteration),
                                .ranks = take_pending(attempt)};
    if (rf_attempt_is_traced(attempt, iteration)) {
        attempt->trace_samples = kept.ranks;
        attempt->traced = true;
        return;
    }
    RF_PUSH(attempt->iterations, attempt->n_iterations, attempt->cap_iterations,
            kept);
}

void rf_attempt_add_fault(struct rf_attempt *attempt, struct rf_fault *fault)
{
    if (attempt->outcome == RF_OUTCOME_OK) {
        attempt->outcome = fault->status == RF_ERR_VERIFY ? RF_OUTCOME_MISMATCH
                                                          : RF_OUTCOME_FAILED;
    }
    RF_PUSH(attempt->faults, attempt->n_faults, attempt->cap_faults, *fault);
    *fault = (struct rf_fault){.node = RF_NONE, .rank = RF_NONE};
}

static void take_better(double *out, const double *a, const double *b, size_t n,
                        bool less)
{
    for (size_t i = 0; i < n; i++) {
        double better = less ? RF_MIN(a[i], b[i]) : RF_MAX(a[i], b[i]);
        out[i] = a[i] == 0 ? b[i] : b[i] == 0 ? a[i] : better;
    }
}

bool rf_attempt_links(const struct rf_attempt *attempt, struct rf_links *out)
{
    const struct rf_links *a = &attempt->before, *b = &attempt->after;
    size_t n = a->n_nodes;
    if (attempt->scenario == NULL ||
        (!attempt->probed_before && !attempt->probed_after)) {
        return false;
    }
    rf_links_init(out, a->n_nodes);
    out->devices = rf_scenario_on_device(attempt->scenario);
    take_better(out->copy_gbytes_per_s, a->copy_gbytes_per_s,
                b->copy_gbytes_per_s, n, false);
    take_better(out->copy1_gbytes_per_s, a->copy1_gbytes_per_s,
                b->copy1_gbytes_per_s, n, false);
    take_better(out->pair_gbytes_per_s, a->pair_gbytes_per_s,
                b->pair_gbytes_per_s, n * n, false);
    take_better(out->pair_latency_us, a->pair_latency_us, b->pair_latency_us,
                n * n, true);
    return true;
}

const char *rf_outcome_name(enum rf_outcome outcome)
{
    static const char *const names[] = {"ok", "failed", "mismatch",
                                        "interrupted"};
    return names[outcome];
}

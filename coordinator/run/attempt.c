/* What one attempt measured. See attempt.h. */
#include "coordinator/run/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct rf_attempt *rf_attempt_create(uint32_t number, size_t index,
                                     struct rf_scenario *scenario)
{
    struct rf_attempt *attempt = rf_xcalloc(1, sizeof(*attempt));
    attempt->number = number;
    attempt->index = index;
    attempt->scenario = scenario;
    attempt->errors = json_array();
    if (scenario != NULL) {
        uint32_t n = scenario->world->n_ranks;
        attempt->pending = rf_xcalloc(n, sizeof(*attempt->pending));
        attempt->ranks = rf_xcalloc(n, sizeof(*attempt->ranks));
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
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        json_decref(attempt->ranks[r].device);
    }
    if (attempt->scenario != NULL) {
        rf_links_free(&attempt->before);
        rf_links_free(&attempt->after);
    }
    free(attempt->iterations);
    free(attempt->pending);
    free(attempt->ranks);
    json_decref(attempt->errors);
    json_decref(attempt->first_mismatch);
    rf_scenario_destroy(attempt->scenario);
    free(attempt);
}

uint32_t rf_attempt_ranks(const struct rf_attempt *attempt)
{
    return attempt->scenario != NULL ? attempt->scenario->world->n_ranks : 0;
}

void rf_attempt_keep(struct rf_attempt *attempt, uint32_t round, bool warmup)
{
    struct rf_iteration kept = {
        .round = round, .warmup = warmup, .ranks = attempt->pending};
    RF_PUSH(attempt->iterations, attempt->n_iterations, attempt->cap_iterations,
            kept);
    attempt->pending =
        rf_xcalloc(rf_attempt_ranks(attempt), sizeof(*attempt->pending));
}

void rf_attempt_error(struct rf_attempt *attempt, const char *host,
                      uint32_t rank, const char *phase, enum rf_status status,
                      const char *text, const json_t *lines)
{
    bool first = json_array_size(attempt->errors) == 0;
    json_t *error = json_object();
    json_object_set_new(error, "host", host ? json_string(host) : json_null());
    json_object_set_new(error, "rank",
                        rank != RF_NONE ? json_integer(rank) : json_null());
    json_object_set_new(error, "phase",
                        phase ? json_string(phase) : json_null());
    json_object_set_new(error, "status", json_string(rf_strstatus(status)));
    json_object_set_new(error, "text", json_string(text));
    json_object_set_new(error, "stderr",
                        lines ? json_deep_copy(lines) : json_array());
    json_object_set_new(error, "consequence", json_boolean(!first));
    json_array_append_new(attempt->errors, error);
    if (first) {
        attempt->cause = status;
    }
    if (attempt->outcome == RF_OUTCOME_OK) {
        attempt->outcome =
            status == RF_ERR_VERIFY ? RF_OUTCOME_MISMATCH : RF_OUTCOME_FAILED;
    }
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

/* What one attempt measured. See attempt.h. */
#include "coordinator/scenario/attempt.h"

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

static struct rf_msg_network *new_network(const struct rf_scenario *scenario)
{
    const uint32_t n = scenario->world->n_nodes;
    struct rf_msg_network *network = rf_xcalloc(n, sizeof(*network));
    for (uint32_t i = 0; i < n; i++) {
        rf_schema_init(&rf_msg_network_schema, &network[i]);
    }
    return network;
}

/* Frees what an iteration has of each node; or NULL. */
static void free_network(const struct rf_attempt *attempt,
                         struct rf_msg_network *network)
{
    const uint32_t n =
        attempt->scenario != NULL ? attempt->scenario->world->n_nodes : 0;
    for (uint32_t i = 0; network != NULL && i < n; i++) {
        rf_schema_free(&rf_msg_network_schema, &network[i]);
    }
    free(network);
}

struct rf_attempt *rf_attempt_create(uint32_t number, size_t index,
                                     struct rf_scenario *scenario)
{
    struct rf_attempt *attempt = rf_xcalloc(1, sizeof(*attempt));
    attempt->number = number;
    attempt->index = index;
    attempt->n_repeats = 1;
    attempt->scenario = scenario;
    if (scenario != NULL) {
        uint32_t n = scenario->world->n_ranks;
        attempt->n_wanted = scenario->spec->warmup + scenario->spec->iterations;
        attempt->ended_by = "max";
        attempt->pending = rf_xcalloc(n, sizeof(*attempt->pending));
        attempt->pending_network = new_network(scenario);
        attempt->ranks = rf_xcalloc(n, sizeof(*attempt->ranks));
        attempt->logs = rf_xcalloc(n, sizeof(*attempt->logs));
        attempt->pending_yardstick =
            rf_xcalloc(n, sizeof(*attempt->pending_yardstick));
        attempt->traced_refit.ranks =
            rf_xcalloc(n, sizeof(*attempt->traced_refit.ranks));
        attempt->traced_yardstick.ranks =
            rf_xcalloc(n, sizeof(*attempt->traced_yardstick.ranks));
        rf_capacities_init(&attempt->yardstick, scenario->world->n_nodes);
        attempt->yardstick.peer_gbytes_per_s = rf_xcalloc(n, sizeof(double));
        rf_capacities_init(&attempt->before, scenario->world->n_nodes);
        rf_capacities_init(&attempt->after, scenario->world->n_nodes);
    }
    return attempt;
}

static void free_window(struct rf_window_trace *window, uint32_t n_ranks)
{
    for (uint32_t r = 0; r < n_ranks; r++) {
        free(window->ranks[r].events);
    }
    free(window->ranks);
    free(window->samples);
}

void rf_attempt_destroy(struct rf_attempt *attempt)
{
    if (attempt == NULL) {
        return;
    }
    for (size_t i = 0; i < attempt->n_iterations; i++) {
        free(attempt->iterations[i].ranks);
        free(attempt->iterations[i].loaded);
        free_network(attempt, attempt->iterations[i].network);
    }
    for (size_t i = 0; i < attempt->n_faults; i++) {
        rf_fault_free(&attempt->faults[i]);
    }
    if (attempt->wrong != NULL) {
        rf_schema_free(&rf_msg_mismatch_schema, &attempt->wrong->at);
        free(attempt->wrong);
    }
    if (attempt->scenario != NULL) {
        rf_capacities_free(&attempt->yardstick);
        rf_capacities_free(&attempt->before);
        rf_capacities_free(&attempt->after);
    }
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        rf_rank_log_free(&attempt->logs[r]);
        free(attempt->ranks[r].cpus);
    }
    free_window(&attempt->traced_refit, rf_attempt_ranks(attempt));
    free_window(&attempt->traced_yardstick, rf_attempt_ranks(attempt));
    free(attempt->iterations);
    free(attempt->pending);
    free_network(attempt, attempt->pending_network);
    free(attempt->pending_yardstick);
    free(attempt->pending_loaded);
    free(attempt->ranks);
    free(attempt->logs);
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
    return iteration >= attempt->n_wanted;
}

struct rf_iteration_span rf_iteration_span_of(const struct rf_msg_ran *ranks,
                                              uint32_t n)
{
    struct rf_iteration_span s = {.first_start = INT64_MAX,
                                  .last_start = INT64_MIN,
                                  .last_end = INT64_MIN,
                                  .slowest_ns = -1};
    for (uint32_t r = 0; r < n; r++) {
        const struct rf_msg_ran *sample = &ranks[r];
        s.first_start = RF_MIN(s.first_start, sample->start_ns);
        s.last_start = RF_MAX(s.last_start, sample->start_ns);
        s.last_end = RF_MAX(s.last_end, sample->end_ns);
        if (sample->ns > s.slowest_ns) {
            s.slowest_ns = sample->ns;
            s.slowest = r;
        }
    }
    return s;
}

/* Takes the samples and leaves as many empty ones. */
static struct rf_msg_ran *take_samples(const struct rf_attempt *attempt,
                                       struct rf_msg_ran **pending)
{
    struct rf_msg_ran *taken = *pending;
    *pending = rf_xcalloc(rf_attempt_ranks(attempt), sizeof(**pending));
    return taken;
}

void rf_attempt_take_network(struct rf_attempt *attempt, uint32_t node,
                             const struct rf_msg_network *network)
{
    struct rf_msg_network *pending = &attempt->pending_network[node];
    if (attempt->under_load) {
        return; /* an iteration has the counters of its own refit */
    }
    rf_schema_free(&rf_msg_network_schema, pending);
    rf_schema_copy(&rf_msg_network_schema, network, pending);
}

/* The iteration if it has been kept, else NULL. */
static struct rf_iteration *kept_as(const struct rf_attempt *attempt,
                                    uint32_t iteration)
{
    struct rf_iteration *last =
        attempt->n_iterations > 0
            ? &attempt->iterations[attempt->n_iterations - 1]
            : NULL;
    return last != NULL && last->index == iteration ? last : NULL;
}

static void keep_loaded(struct rf_attempt *attempt, uint32_t iteration)
{
    struct rf_iteration *kept = kept_as(attempt, iteration);
    struct rf_msg_ran **to =
        kept != NULL ? &kept->loaded : &attempt->pending_loaded;
    *to = take_samples(attempt, &attempt->pending);
}

void rf_attempt_keep(struct rf_attempt *attempt, uint32_t iteration)
{
    struct rf_iteration kept = {
        .index = iteration, .warmup = rf_attempt_warmup(attempt, iteration)};
    if (attempt->under_load) {
        keep_loaded(attempt, iteration);
        return;
    }
    kept.ranks = take_samples(attempt, &attempt->pending);
    if (rf_attempt_is_traced(attempt, iteration)) {
        attempt->traced_refit.samples = kept.ranks;
        return;
    }
    kept.network = attempt->pending_network;
    attempt->pending_network = new_network(attempt->scenario);
    kept.yardstick_ns = attempt->pending_yardstick_ns;
    attempt->pending_yardstick_ns = 0;
    kept.loaded = attempt->pending_loaded;
    attempt->pending_loaded = NULL;
    RF_PUSH(attempt->iterations, attempt->n_iterations, attempt->cap_iterations,
            kept);
}

/* What a rank's load read or sent per nanosecond, as GB/s. */
static double load_rate(uint64_t bytes, int64_t ns)
{
    return (double)RF_MAX(bytes, RF_LOAD_BLOCK_BYTES) /
           (double)RF_MAX(ns, (int64_t)1);
}

bool rf_load_effect_of(const struct rf_iteration *iteration, uint32_t n_ranks,
                       struct rf_load_effect *out)
{
    const struct rf_msg_ran *ranks = iteration->loaded;
    *out = (struct rf_load_effect){0};
    if (ranks == NULL) {
        return false;
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        if (ranks[r].load_alone_ns > 0) { /* and not absent */
            out->gbytes_per_s +=
                load_rate(ranks[r].load_bytes, ranks[r].load_ns);
            out->alone_gbytes_per_s +=
                load_rate(ranks[r].load_alone_bytes, ranks[r].load_alone_ns);
        }
    }
    if (out->gbytes_per_s <= 0) {
        return false;
    }
    out->refit_ns = rf_iteration_span_of(ranks, n_ranks).slowest_ns;
    out->refit_slowdown =
        (double)out->refit_ns /
        (double)rf_iteration_span_of(iteration->ranks, n_ranks).slowest_ns;
    out->load_slowdown = out->alone_gbytes_per_s / out->gbytes_per_s;
    return true;
}

bool rf_attempt_has_yardstick(const struct rf_attempt *attempt)
{
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_msg_yardstick *part = &attempt->ranks[r].yardstick;
        if (part->copied_bytes + part->peer_bytes > 0) {
            return true;
        }
    }
    return false;
}

bool rf_attempt_yardstick_crossed(const struct rf_attempt *attempt)
{
    for (uint32_t n = 0; n < attempt->yardstick.n_nodes; n++) {
        if (attempt->yardstick.in_gbytes_per_s[n] > 0) {
            return true;
        }
    }
    return false;
}

/* Bytes that a node's ranks moved in a yardstick, and when the last
 * finished. */
struct moved {
    double copied, sent, received; /* bytes */
    int64_t ns;
};

static struct moved *moved_by_node(const struct rf_attempt *attempt)
{
    const struct rf_world *world = attempt->scenario->world;
    struct moved *nodes = rf_xcalloc(world->n_nodes, sizeof(*nodes));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const struct rf_msg_yardstick *part = &attempt->ranks[r].yardstick;
        struct moved *node = &nodes[world->ranks[r].node];
        node->copied += (double)part->copied_bytes;
        node->sent += (double)part->sent_bytes;
        node->received += (double)part->received_bytes;
        node->ns = RF_MAX(node->ns, attempt->pending_yardstick[r].ns);
    }
    return nodes;
}

static void raise_rate(double *gbytes_per_s, double bytes, int64_t ns)
{
    *gbytes_per_s = RF_MAX(*gbytes_per_s, bytes / (double)RF_MAX(ns, 1));
}

/* A node's memory is free once its own ranks finish; its link, once the other
 * end has finished, too. */
static void take_rates(struct rf_attempt *attempt, int64_t slowest_ns)
{
    struct moved *nodes = moved_by_node(attempt);
    struct rf_capacities *best = &attempt->yardstick;
    for (uint32_t n = 0; n < best->n_nodes; n++) {
        const struct moved *node = &nodes[n];
        raise_rate(&best->copy_gbytes_per_s[n], node->copied, node->ns);
        raise_rate(&best->out_gbytes_per_s[n], node->sent, slowest_ns);
        raise_rate(&best->in_gbytes_per_s[n], node->received, slowest_ns);
    }
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        raise_rate(&best->peer_gbytes_per_s[r],
                   (double)attempt->ranks[r].yardstick.peer_bytes,
                   attempt->pending_yardstick[r].ns);
    }
    free(nodes);
}

void rf_attempt_keep_yardstick(struct rf_attempt *attempt, uint32_t iteration)
{
    struct rf_iteration *kept = kept_as(attempt, iteration);
    int64_t slowest_ns = 1;
    if (rf_attempt_is_traced(attempt, iteration)) {
        attempt->traced_yardstick.samples =
            take_samples(attempt, &attempt->pending_yardstick);
        return;
    }
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        slowest_ns = RF_MAX(slowest_ns, attempt->pending_yardstick[r].ns);
    }
    take_rates(attempt, slowest_ns);
    if (kept != NULL) {
        kept->yardstick_ns = slowest_ns;
    } else {
        attempt->pending_yardstick_ns = slowest_ns;
    }
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

/* The better of each two figures (lower if `less`); 0: not measured. */
static void take_better(double *out, const double *a, const double *b, size_t n,
                        bool less)
{
    for (size_t i = 0; i < n; i++) {
        double better = less ? RF_MIN(a[i], b[i]) : RF_MAX(a[i], b[i]);
        out[i] = a[i] == 0 ? b[i] : b[i] == 0 ? a[i] : better;
    }
}

static double *copy_of(const double *values, size_t n)
{
    double *out = rf_xcalloc(n, sizeof(*out));
    memcpy(out, values, n * sizeof(*out));
    return out;
}

/* A resource that did not limit its yardstick could have moved more in that
 * time, so similar resources count as being as fast as the fastest. */
static void take_fastest(double *gbytes_per_s, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        most = RF_MAX(most, gbytes_per_s[i]);
    }
    for (size_t i = 0; i < n; i++) {
        gbytes_per_s[i] = most;
    }
}

bool rf_attempt_links(const struct rf_attempt *attempt,
                      struct rf_capacities *out)
{
    const struct rf_capacities *a = &attempt->before, *b = &attempt->after;
    const struct rf_capacities *y = &attempt->yardstick;
    size_t n = a->n_nodes;
    if (attempt->scenario == NULL ||
        (!attempt->probed_before && !attempt->probed_after)) {
        return false;
    }
    rf_capacities_init(out, a->n_nodes);
    out->devices = rf_scenario_on_device(attempt->scenario);
    out->sends_inside = attempt->scenario->method->sockets_inside;
    take_better(out->copy_gbytes_per_s, a->copy_gbytes_per_s,
                b->copy_gbytes_per_s, n, false);
    take_better(out->copy_gbytes_per_s, out->copy_gbytes_per_s,
                y->copy_gbytes_per_s, n, false);
    take_better(out->copy1_gbytes_per_s, a->copy1_gbytes_per_s,
                b->copy1_gbytes_per_s, n, false);
    take_better(out->scan_gbytes_per_s, a->scan_gbytes_per_s,
                b->scan_gbytes_per_s, n, false);
    take_better(out->convert_gbytes_per_s, a->convert_gbytes_per_s,
                b->convert_gbytes_per_s, n, false);
    memcpy(out->out_gbytes_per_s, y->out_gbytes_per_s, n * sizeof(double));
    memcpy(out->in_gbytes_per_s, y->in_gbytes_per_s, n * sizeof(double));
    out->peer_gbytes_per_s =
        copy_of(y->peer_gbytes_per_s, rf_attempt_ranks(attempt));
    if (rf_scenario_crosses_by_tcp(attempt->scenario)) {
        take_better(out->pair_gbytes_per_s, a->pair_gbytes_per_s,
                    b->pair_gbytes_per_s, n * n, false);
    } else {
        take_fastest(out->out_gbytes_per_s, n);
        take_fastest(out->in_gbytes_per_s, n);
    }
    take_fastest(out->peer_gbytes_per_s, rf_attempt_ranks(attempt));
    out->left_bytes =
        rf_xcalloc(rf_attempt_ranks(attempt) + 1, sizeof(*out->left_bytes));
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        out->left_bytes[r] = attempt->ranks[r].yardstick.left_bytes;
    }
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

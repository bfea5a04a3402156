#include "coordinator/run/measure.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/run/answers.h"

#define NODE_EVENTS 100000U
#define WORLD_EVENTS 1000000U

/* A step may take LEAST_S, longer where there is much to do, before a rank
 * counts as hung. No useful system is slower than these rates. */
#define LEAST_S 60
#define SLOWEST_MEMORY_BYTES_PER_S UINT64_C(100000000)
#define SLOWEST_COPY_BYTES_PER_S UINT64_C(50000000)
#define SLOWEST_DISK_BYTES_PER_S UINT64_C(10000000)
#define BOUND_TIMES 40
/* A shorter time says little of what a load reads where threads take turns. */
#define LEAST_ALONE_NS (20 * RF_NS_PER_MS)

/* What an iteration consists of, in order; the same in reverse in every second
 * one, so that drift favours none. A trace always has the refit first. */
enum iteration_part { PART_REFIT, PART_YARDSTICK, PART_LOADED, PARTS };

struct rf_run_measure {
    struct rf_attempt *attempt;
    struct rf_run_probes *probes;
    uint32_t iteration;
    unsigned place;  /* of the part in progress in its iteration */
    bool trace;      /* adds a traced iteration */
    uint32_t judged; /* iterations at the last interval check */
    double bound_ms; /* of an iteration at best; 0: not known */
};

struct rf_run_measure *rf_run_measure_create(struct rf_attempt *attempt,
                                             struct rf_run_probes *probes)
{
    struct rf_run_measure *measure = rf_xcalloc(1, sizeof(*measure));
    measure->attempt = attempt;
    measure->probes = probes;
    rf_run_probes_plan(probes, attempt->scenario);
    return measure;
}

void rf_run_measure_destroy(struct rf_run_measure *measure)
{
    free(measure);
}

void rf_run_measure_trace(struct rf_run_measure *measure)
{
    measure->trace = true;
}

uint32_t rf_run_measure_iteration(const struct rf_run_measure *measure)
{
    return measure->iteration;
}

/* The most events a rank may record: all of a node's must fit into one DONE,
 * all of the world's into memory. */
static uint32_t trace_limit(const struct rf_scenario *scenario)
{
    const uint32_t n_ranks = RF_MAX(scenario->world->n_ranks, 1U);
    uint32_t most = 1;
    for (uint32_t n = 0; n < scenario->config->n_nodes; n++) {
        most = RF_MAX(most, rf_scenario_node_ranks(scenario, n));
    }
    most = RF_MIN(NODE_EVENTS / most, WORLD_EVENTS / n_ranks);
    return RF_MAX(RF_MIN(most, (uint32_t)RF_MSG_TRACE_MAX), 16U);
}

/* --- How long a step may take --------------------------------------------- */

/* Making the plan and opening the method. */
static int64_t prepare_s(const struct rf_scenario *scenario)
{
    return LEAST_S + (int64_t)(scenario->plan->totals.bytes_total /
                               SLOWEST_COPY_BYTES_PER_S);
}

/* Touching all of the busiest node's memory: fill, verify, close. */
static int64_t memory_s(const struct rf_scenario *scenario)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        most = RF_MAX(most, rf_scenario_node_bytes(scenario, i));
    }
    return LEAST_S + (int64_t)(most / (scenario->plan->model->files != NULL
                                           ? SLOWEST_DISK_BYTES_PER_S
                                           : SLOWEST_MEMORY_BYTES_PER_S));
}

/* Through files, every byte of the arenas may be written and read, and no link
 * was probed. */
static int64_t disk_s(const struct rf_scenario *scenario)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        bytes += rf_scenario_node_bytes(scenario, i);
    }
    return (int64_t)(bytes / SLOWEST_DISK_BYTES_PER_S);
}

/* The scenario's timeout_s if it has one. Otherwise LEAST_S plus the larger of
 * BOUND_TIMES `bound_ms`, the bound from the probed links (0: not known), and
 * the time that its bytes take at the slowest rate. */
static int64_t iteration_s(const struct rf_scenario *scenario, double bound_ms)
{
    const uint64_t bytes = scenario->plan->totals.bytes_total;
    int64_t slowest = (int64_t)(bytes / SLOWEST_COPY_BYTES_PER_S);
    if (scenario->spec->timeout_s > 0) {
        return scenario->spec->timeout_s;
    }
    if (scenario->method->needs_folder) {
        slowest = disk_s(scenario);
    }
    return LEAST_S + RF_MAX((int64_t)(BOUND_TIMES * bound_ms / 1e3), slowest);
}

/* How long a load is alone before the refit beside it: as long as the last
 * refit without it took, at least. */
static int64_t load_ns(const struct rf_run_measure *measure)
{
    const struct rf_attempt *attempt = measure->attempt;
    const struct rf_iteration *last =
        &attempt->iterations[attempt->n_iterations - 1];
    return RF_MAX(
        rf_iteration_span_of(last->ranks, rf_attempt_ranks(attempt)).slowest_ns,
        LEAST_ALONE_NS);
}

/* --- Steps ---------------------------------------------------------------- */

int64_t rf_run_measure_enter(struct rf_run_measure *measure,
                             enum rf_state state)
{
    struct rf_attempt *attempt = measure->attempt;
    switch (state) {
    case RUN_PREPARING:
        return prepare_s(attempt->scenario);
    case RUN_PROBING:
        rf_run_probes_begin(measure->probes, &attempt->before,
                            RF_PROBE_UNKNOWN_LINKS);
        return 0;
    case RUN_PROBING_AGAIN:
        rf_run_probes_begin(measure->probes, &attempt->after,
                            rf_attempt_has_yardstick(attempt)
                                ? RF_PROBE_NO_LINKS
                                : RF_PROBE_ALL_LINKS);
        return 0;
    case RUN_RUNNING:
    case RUN_YARDSTICK:
        return iteration_s(attempt->scenario, measure->bound_ms) +
               (attempt->under_load ? load_ns(measure) / RF_NS_PER_S + 1 : 0);
    case RUN_EXPORTING:
        return LEAST_S + disk_s(attempt->scenario);
    case RUN_VERIFYING:
        attempt->pending_checked_bytes = 0;
        return memory_s(attempt->scenario);
    default:
        return memory_s(attempt->scenario);
    }
}

void rf_run_measure_ask(const struct rf_run_measure *measure,
                        enum rf_state state, struct rf_msg_step *step)
{
    step->step = rf_xstrdup(rf_state_step(state));
    if (rf_state_in_iteration(state)) {
        step->index = measure->iteration;
    }
    if (state == RUN_PROBING || state == RUN_PROBING_AGAIN) {
        rf_run_probes_ask(measure->probes, step);
    }
    if ((state == RUN_RUNNING || state == RUN_YARDSTICK) &&
        rf_attempt_is_traced(measure->attempt, measure->iteration)) {
        step->trace = trace_limit(measure->attempt->scenario);
    }
    if (state == RUN_RUNNING && measure->attempt->under_load) {
        step->load_ns = load_ns(measure);
    }
    if (state == RUN_EXPORTING) {
        step->folder =
            rf_xstrdup(measure->attempt->scenario->config->export_folder);
    }
    step->sources = state == RUN_VERIFYING &&
                    measure->iteration + 1 == measure->attempt->n_wanted;
}

enum rf_status rf_run_measure_take(struct rf_run_measure *measure,
                                   enum rf_state state,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    switch (state) {
    case RUN_PREPARING:
        return rf_answers_prepared(measure->attempt, answer, err);
    case RUN_PROBING:
    case RUN_PROBING_AGAIN:
        return rf_run_probes_take(measure->probes, answer, err);
    case RUN_FILLING:
        return rf_answers_filled(measure->attempt, answer, err);
    case RUN_RUNNING:
        return rf_answers_ran(measure->attempt, answer, err);
    case RUN_YARDSTICK:
        return rf_answers_yardstick(measure->attempt, answer, err);
    case RUN_VERIFYING:
        return rf_answers_verified(measure->attempt, measure->iteration, answer,
                                   err);
    case RUN_EXPORTING:
        return rf_answers_exported(measure->attempt, answer, err);
    case RUN_CLOSING:
        return rf_answers_closed(measure->attempt, answer, err);
    default:
        return RF_OK;
    }
}

/* --- What is enough ------------------------------------------------------- */

/* These functions look at the measured iterations kept so far and at `pending`,
 * which is iteration `at` and not yet kept. */

static bool has_min(const struct rf_attempt *attempt, uint32_t at)
{
    const struct rf_spec *spec = attempt->scenario->spec;
    return at + 1 >= spec->warmup + spec->min_iterations;
}

/* Medians that have to be known. */
enum judged_median {
    MEDIAN_TIME,
    MEDIAN_RATIO,
    MEDIAN_REFIT,
    MEDIAN_LOAD,
    MEDIANS
};

struct judged_samples {
    double *of[MEDIANS];
    size_t n[MEDIANS];
};

static void add_samples(struct judged_samples *samples,
                        const struct rf_iteration *it, uint32_t n_ranks)
{
    const double ns =
        (double)rf_iteration_span_of(it->ranks, n_ranks).slowest_ns;
    struct rf_load_effect load;
    const bool loaded = rf_load_effect_of(it, n_ranks, &load);
    const struct {
        bool is;
        double value;
    } found[MEDIANS] = {
        [MEDIAN_TIME] = {true, ns},
        [MEDIAN_RATIO] = {it->yardstick_ns > 0,
                          ns / (double)RF_MAX(it->yardstick_ns, 1)},
        [MEDIAN_REFIT] = {loaded, load.refit_slowdown},
        [MEDIAN_LOAD] = {loaded, load.load_slowdown}};
    for (size_t f = 0; f < MEDIANS; f++) {
        if (found[f].is) {
            samples->of[f][samples->n[f]++] = found[f].value;
        }
    }
}

/* Whether there are min_iterations and half the 95 % interval of the median is
 * below ci_percent of it, for the times and, with yardsticks and loads, for
 * their ratios. Those of `at` must have come before. */
static bool has_enough_samples(const struct rf_attempt *attempt, uint32_t at)
{
    const uint32_t n = rf_attempt_ranks(attempt);
    const double most = attempt->scenario->spec->ci_percent;
    const struct rf_iteration last = {.ranks = attempt->pending,
                                      .yardstick_ns =
                                          attempt->pending_yardstick_ns,
                                      .loaded = attempt->pending_loaded};
    struct judged_samples samples = {0};
    bool enough = has_min(attempt, at);
    for (size_t f = 0; f < MEDIANS; f++) {
        samples.of[f] =
            rf_xcalloc(attempt->n_iterations + 1, sizeof(**samples.of));
    }
    for (size_t i = 0; i < attempt->n_iterations; i++) {
        if (!attempt->iterations[i].warmup) {
            add_samples(&samples, &attempt->iterations[i], n);
        }
    }
    add_samples(&samples, &last, n);
    for (size_t f = 0; f < MEDIANS; f++) {
        enough = enough &&
                 (samples.n[f] == 0 ||
                  rf_stats_median_known(samples.of[f], samples.n[f], most));
        free(samples.of[f]);
    }
    return enough;
}

/* The time from the start of the first refit that counts to the end of `last`;
 * 0: none has been kept. */
static int64_t measured_ns(const struct rf_attempt *attempt,
                           const struct rf_msg_ran *last)
{
    const uint32_t n = rf_attempt_ranks(attempt);
    const uint32_t first = attempt->scenario->spec->warmup;
    return attempt->n_iterations > first
               ? rf_iteration_span_of(last, n).last_end -
                     rf_iteration_span_of(attempt->iterations[first].ranks, n)
                         .first_start
               : 0;
}

/* Whether there are min_iterations and max_s have passed. */
static bool has_enough_time(const struct rf_attempt *attempt, uint32_t at)
{
    const uint32_t max_s = attempt->scenario->spec->max_s;
    return max_s > 0 && has_min(attempt, at) &&
           measured_ns(attempt, attempt->pending) >=
               (int64_t)max_s * RF_NS_PER_S;
}

uint32_t rf_run_measure_expected(const struct rf_run_measure *measure)
{
    const struct rf_attempt *attempt = measure->attempt;
    const struct rf_spec *spec = attempt->scenario->spec;
    const size_t n = attempt->n_iterations;
    const int64_t ns =
        n > 0 ? measured_ns(attempt, attempt->iterations[n - 1].ranks) : 0;
    double most;
    if (spec->max_s == 0 || ns <= 0) {
        return attempt->n_wanted;
    }
    most = (double)(n - spec->warmup) * spec->max_s * 1e9 / (double)ns;
    return (uint32_t)RF_MIN(spec->warmup + RF_MAX(most, spec->min_iterations),
                            attempt->n_wanted);
}

/* --- What comes next ------------------------------------------------------ */

/* Works out the least time of an iteration from the probed figures: of whole
 * weights, which yardsticks move, and parts of an encoded refit. */
static void find_bound(struct rf_run_measure *measure)
{
    const struct rf_scenario *scenario = measure->attempt->scenario;
    struct rf_capacities links;
    struct rf_bound bound = {0};
    struct rf_err err = {0};
    if (!rf_attempt_links(measure->attempt, &links)) {
        return;
    }
    if (rf_bounds_any(scenario->plan, RF_ENCODING_DENSE, &links,
                      scenario->config->node_names, &bound, &err) == RF_OK) {
        measure->bound_ms = bound.ms;
    }
    rf_capacities_free(&links);
}

static bool has_part(const struct rf_run_measure *measure,
                     enum iteration_part part)
{
    const struct rf_attempt *attempt = measure->attempt;
    switch (part) {
    case PART_YARDSTICK:
        return rf_attempt_has_yardstick(attempt);
    case PART_LOADED:
        return attempt->scenario->spec->load.given &&
               !rf_attempt_is_traced(attempt, measure->iteration);
    default:
        return true;
    }
}

static enum iteration_part part_at(const struct rf_run_measure *measure,
                                   unsigned place)
{
    const bool reversed =
        measure->iteration % 2 == 1 &&
        !rf_attempt_is_traced(measure->attempt, measure->iteration);
    return reversed ? PARTS - 1 - place : place;
}

/* The first part of the iteration from `place` on; PARTS: there is none. */
static unsigned find_part(const struct rf_run_measure *measure, unsigned place)
{
    while (place < PARTS && !has_part(measure, part_at(measure, place))) {
        place++;
    }
    return place;
}

/* Yardsticks measure the machine beside each iteration, except how fast it
 * converts. What they leave is probed a second time, unless the method moves no
 * bytes. */
static enum rf_state after_iterations(const struct rf_run_measure *measure)
{
    const struct rf_attempt *attempt = measure->attempt;
    return (rf_attempt_has_yardstick(attempt) &&
            !rf_scenario_converts(attempt->scenario)) ||
                   !attempt->scenario->method->moves_bytes
               ? RUN_CLOSING
               : RUN_PROBING_AGAIN;
}

/* After a part of an iteration: its next one, or the next iteration. */
static enum rf_state next_part(struct rf_run_measure *measure)
{
    struct rf_attempt *attempt = measure->attempt;
    enum iteration_part part;
    measure->place = find_part(measure, measure->place + 1);
    if (measure->place == PARTS) {
        measure->iteration++;
        if (measure->iteration == attempt->n_wanted + measure->trace) {
            return after_iterations(measure);
        }
        measure->place = find_part(measure, 0);
    }
    part = part_at(measure, measure->place);
    attempt->under_load = part == PART_LOADED;
    return part == PART_YARDSTICK ? RUN_YARDSTICK : RUN_FILLING;
}

static enum rf_verdict probed(struct rf_run_measure *measure,
                              enum rf_state *next, struct rf_fault *fault)
{
    enum rf_verdict verdict = rf_run_probes_answered(measure->probes, fault);
    if (verdict == RF_VERDICT_NEXT && *next == RUN_FILLING) {
        measure->attempt->probed_before = true;
        find_bound(measure);
    } else if (verdict == RF_VERDICT_NEXT) {
        measure->attempt->probed_after = true;
    }
    return verdict;
}

/*
 * Decides before the comparison whether this iteration is the last, since the
 * last one also compares the sources. With yardsticks or loads, the interval is
 * judged only in iterations where these came first: every second one. With very
 * many iterations it is judged each time they grow by a hundredth.
 */
static void settle_last(struct rf_run_measure *measure)
{
    struct rf_attempt *attempt = measure->attempt;
    const uint32_t at = measure->iteration;
    const bool complete = find_part(measure, measure->place + 1) == PARTS;
    const char *why;
    if (attempt->scenario->spec->ci_percent <= 0 || attempt->under_load ||
        rf_attempt_warmup(attempt, at) || at + 1 >= attempt->n_wanted) {
        return;
    }
    why = has_enough_time(attempt, at) ? "max_s" : NULL;
    if (complete && at >= measure->judged + measure->judged / 100) {
        measure->judged = at;
        why = has_enough_samples(attempt, at) ? "ci" : why;
    }
    if (why != NULL) {
        attempt->n_wanted = at + 1;
        attempt->ended_by = why;
    }
}

static enum rf_state after_run(struct rf_run_measure *measure)
{
    settle_last(measure);
    if (measure->attempt->scenario->method->moves_bytes) {
        return RUN_VERIFYING;
    }
    rf_attempt_keep(measure->attempt, measure->iteration);
    return next_part(measure);
}

/* Wrong bytes end the attempt in order: the measurements stay. */
static void report_mismatch(struct rf_run_measure *measure,
                            struct rf_fault *fault)
{
    rf_error("scenario %s: verification after iteration %u: %s",
             measure->attempt->scenario->spec->name, measure->iteration,
             fault->text);
    fault->phase = rf_xstrdup(rf_states[RUN_VERIFYING].name);
    rf_attempt_add_fault(measure->attempt, fault);
}

/* Exports the result of the last iteration before a yardstick overwrites it. */
static bool exports(const struct rf_run_measure *measure)
{
    const struct rf_attempt *attempt = measure->attempt;
    return attempt->scenario->config->export_folder != NULL &&
           !attempt->under_load && measure->iteration + 1 == attempt->n_wanted;
}

/* The iteration counts only from here: if the attempt ends before every rank
 * has compared its bytes, its times stay out of the result. */
static enum rf_verdict verified(struct rf_run_measure *measure,
                                enum rf_state *next, struct rf_fault *fault)
{
    struct rf_attempt *attempt = measure->attempt;
    enum rf_verdict verdict = rf_answers_judge(attempt, fault);
    if (verdict == RF_VERDICT_ABORT && fault->status != RF_ERR_VERIFY) {
        return verdict;
    }
    rf_attempt_keep(attempt, measure->iteration);
    attempt->verified += !attempt->under_load &&
                         !rf_attempt_warmup(attempt, measure->iteration) &&
                         !rf_attempt_is_traced(attempt, measure->iteration);
    if (verdict == RF_VERDICT_NEXT) {
        *next = exports(measure) ? RUN_EXPORTING : next_part(measure);
    } else {
        report_mismatch(measure, fault);
        *next = after_iterations(measure);
    }
    return RF_VERDICT_NEXT;
}

enum rf_verdict rf_run_measure_answered(struct rf_run_measure *measure,
                                        enum rf_state state,
                                        enum rf_state *next,
                                        struct rf_fault *fault)
{
    switch (state) {
    case RUN_PREPARING:
        *next = RUN_PROBING;
        return RF_VERDICT_NEXT;
    case RUN_PROBING:
        *next = RUN_FILLING;
        return probed(measure, next, fault);
    case RUN_FILLING:
        *next = RUN_RUNNING;
        return RF_VERDICT_NEXT;
    case RUN_RUNNING:
        *next = after_run(measure);
        return RF_VERDICT_NEXT;
    case RUN_VERIFYING:
        return verified(measure, next, fault);
    case RUN_EXPORTING:
        measure->attempt->exported = true;
        *next = next_part(measure);
        return RF_VERDICT_NEXT;
    case RUN_YARDSTICK:
        rf_attempt_keep_yardstick(measure->attempt, measure->iteration);
        *next = next_part(measure);
        return RF_VERDICT_NEXT;
    case RUN_PROBING_AGAIN:
        *next = RUN_CLOSING;
        return probed(measure, next, fault);
    default: /* closing */
        measure->attempt->closed = true;
        *next = RUN_STARTING;
        return RF_VERDICT_NEXT;
    }
}

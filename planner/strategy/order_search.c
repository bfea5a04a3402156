/*
 * Orders of works: a list schedule for any number, an exact search for few.
 *
 * List schedule: repeatedly pick, of the first WINDOW works left (fewer where
 * works or sources are very many), the one that can start first; on a tie, the
 * one whose busiest resource has the most left to do; then the longest. Of
 * several senders, pick the one that can start first, then the one with the
 * least to do.
 *
 * Search: depth first over (next work, its sender), cut where the time already
 * certain is not below the best known. The limit is a number of visits, not of
 * seconds, so that every machine finds the same order.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/strategy/order_field.h"

#define WINDOW 256
#define LOOKS_MAX 1e8 /* at links and ranks, in total */
#define VISITS_MAX 20000
#define TIMES_MAX 40000000 /* entries of free_at copied, in total */
/* Times equal up to rounding. */
#define NEARLY 1.000000001

/* Adds (sign 1) or removes (-1) a job's work at each resource that it needs
 * whichever source it gets; `load` is laid out as free_at. */
static void add_load(const struct rf_order_field *field, uint32_t job,
                     double *load, double sign)
{
    const struct rf_order_job *of = &field->jobs[job];
    const struct rf_work *work = &field->works->works[of->work];
    const struct rf_world *world = field->world;
    double *in = load + world->n_nodes, *ranks = in + world->n_nodes;
    uint32_t rank = rf_order_source_rank(field, job, 0);
    uint32_t from = world->ranks[rank].node;
    bool far = false;
    for (uint32_t i = 0; i < of->n_nodes; i++) {
        uint32_t node = field->nodes[of->nodes + i];
        if (of->n_candidates > 1 || node != from) {
            in[node] += sign * of->duration;
            far = true;
        }
    }
    if (far && of->n_candidates == 1) {
        load[from] += sign * of->duration;
    }
    for (uint32_t i = 0; field->serialize && i < work->n_receivers; i++) {
        ranks[field->works->pool[work->receivers + i].rank] +=
            sign * of->duration;
    }
    if (field->serialize && of->n_candidates == 1) {
        ranks[rank] += sign * of->duration;
    }
}

/* The most work left at any resource of the job. */
static double pressure(const struct rf_order_field *field, uint32_t job,
                       const double *load)
{
    const struct rf_order_job *of = &field->jobs[job];
    const struct rf_work *work = &field->works->works[of->work];
    const struct rf_world *world = field->world;
    const double *in = load + world->n_nodes, *ranks = in + world->n_nodes;
    uint32_t rank = rf_order_source_rank(field, job, 0);
    double most = 0;
    if (of->n_candidates == 1) {
        most = load[world->ranks[rank].node];
        most = field->serialize ? RF_MAX(most, ranks[rank]) : most;
    }
    for (uint32_t i = 0; i < of->n_nodes; i++) {
        most = RF_MAX(most, in[field->nodes[of->nodes + i]]);
    }
    for (uint32_t i = 0; field->serialize && i < work->n_receivers; i++) {
        uint32_t to = field->works->pool[work->receivers + i].rank;
        most = RF_MAX(most, ranks[to]);
    }
    return most;
}

/* The best sender of a job, and its earliest start. */
static uint32_t best_candidate(const struct rf_order_field *field, uint32_t job,
                               const double *load, const double *given,
                               double *start)
{
    uint32_t best = 0;
    double best_load = 0;
    for (uint32_t k = 0; k < field->jobs[job].n_candidates; k++) {
        double at = rf_order_start(field, job, k);
        uint32_t rank = rf_order_source_rank(field, job, k);
        uint32_t node = field->world->ranks[rank].node;
        double sum = load[node] + given[node];
        if (k == 0 || at < *start || (at <= *start && sum < best_load)) {
            best = k;
            best_load = sum;
            *start = at;
        }
    }
    return best;
}

struct choice {
    uint32_t job, candidate;
    double start, pressure;
};

static bool better(const struct rf_order_field *field, const struct choice *a,
                   const struct choice *b)
{
    if (a->start < b->start || a->start > b->start) {
        return a->start < b->start;
    }
    if (a->pressure < b->pressure || a->pressure > b->pressure) {
        return a->pressure > b->pressure;
    }
    return field->jobs[a->job].duration > field->jobs[b->job].duration;
}

/* The number of works to compare at a time. */
static uint32_t window_of(const struct rf_order_field *field)
{
    double looks = 1; /* the cost of comparing every work once */
    for (uint32_t i = 0; i < field->n_jobs; i++) {
        const struct rf_order_job *job = &field->jobs[i];
        const struct rf_work *work = &field->works->works[job->work];
        looks += (double)job->n_candidates *
                 (job->n_nodes + (field->serialize ? work->n_receivers : 0));
    }
    return looks * WINDOW <= LOOKS_MAX ? WINDOW
                                       : (uint32_t)(LOOKS_MAX / looks) + 1;
}

void rf_order_list(struct rf_order_field *field, struct rf_order_answer *answer)
{
    uint32_t n = field->n_jobs;
    double *load = rf_xcalloc(field->n_free, sizeof(double));
    double *given = rf_xcalloc(field->world->n_nodes, sizeof(double));
    uint32_t *next = rf_xcalloc((size_t)n + 1, sizeof(uint32_t)); /* 1-based */
    uint32_t window = window_of(field);
    memset(field->free_at, 0, field->n_free * sizeof(double));
    answer->makespan = 0;
    for (uint32_t i = 0; i < n; i++) {
        next[i] = i + 1;
        add_load(field, i, load, 1);
    }
    for (uint32_t placed = 0; placed < n; placed++) {
        struct choice best = {.job = RF_NONE};
        uint32_t before_best = 0, seen = 0;
        for (uint32_t at = 0; next[at] != 0 && seen < window; at = next[at]) {
            struct choice choice = {.job = next[at] - 1};
            choice.candidate =
                best_candidate(field, choice.job, load, given, &choice.start);
            choice.pressure = pressure(field, choice.job, load);
            if (best.job == RF_NONE || better(field, &choice, &best)) {
                best = choice;
                before_best = at;
            }
            seen++;
        }
        double finish = best.start + field->jobs[best.job].duration;
        uint32_t rank = rf_order_source_rank(field, best.job, best.candidate);
        next[before_best] = next[best.job + 1];
        add_load(field, best.job, load, -1);
        given[field->world->ranks[rank].node] += field->jobs[best.job].duration;
        rf_order_occupy(field, best.job, best.candidate, finish);
        answer->sequence[placed] = best.job;
        answer->candidate[placed] = best.candidate;
        answer->makespan = RF_MAX(answer->makespan, finish);
    }
    free(load);
    free(given);
    free(next);
}

struct order_search {
    struct rf_order_field *field;
    struct rf_order_answer *answer; /* the best known */
    double least;                   /* lower bound of any order's time */
    uint64_t visits;                /* left */
    uint32_t sequence[RF_ORDER_SEARCH_MAX], candidate[RF_ORDER_SEARCH_MAX];
    bool placed[RF_ORDER_SEARCH_MAX];
    double *free_at; /* by depth: state before its work */
    double *load;    /* scratch */
};

/* A lower bound of the end of the works left: each link has to become free and
 * then do the work that only it can do. */
static double least_end(struct order_search *search, double makespan)
{
    const struct rf_order_field *field = search->field;
    double least = makespan;
    memset(search->load, 0, field->n_free * sizeof(double));
    for (uint32_t i = 0; i < field->n_jobs; i++) {
        if (!search->placed[i]) {
            add_load(field, i, search->load, 1);
        }
    }
    for (size_t i = 0; i < field->n_free; i++) {
        if (search->load[i] > 0) {
            least = RF_MAX(least, field->free_at[i] + search->load[i]);
        }
    }
    return least;
}

static bool may_go_on(const struct order_search *search)
{
    return search->visits > 0 &&
           search->answer->makespan > search->least * NEARLY;
}

/* Tries every (work, sender) at place `depth` of an order whose first works end
 * after `makespan`, followed by all works left: at most RF_ORDER_SEARCH_MAX
 * calls deep. */
static void search_from(struct order_search *search, uint32_t depth,
                        double makespan)
{
    struct rf_order_field *field = search->field;
    struct rf_order_answer *answer = search->answer;
    const uint32_t n = field->n_jobs;
    double *before = search->free_at + depth * field->n_free;
    if (depth == n) {
        answer->makespan = makespan;
        memcpy(answer->sequence, search->sequence, n * sizeof(uint32_t));
        memcpy(answer->candidate, search->candidate, n * sizeof(uint32_t));
        return;
    }
    memcpy(before, field->free_at, field->n_free * sizeof(double));
    for (uint32_t job = 0; job < n; job++) {
        const uint32_t senders =
            search->placed[job] ? 0 : field->jobs[job].n_candidates;
        for (uint32_t k = 0; k < senders && may_go_on(search); k++) {
            const double finish =
                rf_order_start(field, job, k) + field->jobs[job].duration;
            const double now = RF_MAX(makespan, finish);
            search->visits--;
            rf_order_occupy(field, job, k, finish);
            search->placed[job] = true;
            search->sequence[depth] = job;
            search->candidate[depth] = k;
            if (least_end(search, now) * NEARLY < answer->makespan) {
                search_from(search, depth + 1, now);
            }
            search->placed[job] = false;
            memcpy(field->free_at, before, field->n_free * sizeof(double));
        }
    }
}

void rf_order_search(struct rf_order_field *field,
                     struct rf_order_answer *answer)
{
    struct order_search search = {
        .field = field,
        .answer = answer,
        .visits = RF_MIN(TIMES_MAX / field->n_free, VISITS_MAX)};
    search.free_at =
        rf_xcalloc((field->n_jobs + 1) * field->n_free, sizeof(double));
    search.load = search.free_at + field->n_jobs * field->n_free;
    memset(field->free_at, 0, field->n_free * sizeof(double));
    search.least = least_end(&search, 0);
    search_from(&search, 0, 0);
    free(search.free_at);
}

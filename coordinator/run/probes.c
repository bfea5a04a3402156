#include "coordinator/run/probes.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"

#define COPY_LEAST_BYTES (UINT64_C(1) << 20)
#define COPY_MOST_BYTES (UINT64_C(64) << 20)
#define ROUGH_BYTES (UINT64_C(1) << 20) /* finds a link's rate roughly */
#define PAIRS_MAX 16

/* The real probe moves one of a few fixed amounts, so that two runs on one
 * network put the same load on it and can be subtracted from each other; the
 * limits are between the rates that networks usually have. */
static const struct {
    double below_gbytes_per_s;
    uint64_t bytes;
} sizes[] = {{0.0045, 1 << 20}, {0.09, 8 << 20}, {INFINITY, 64 << 20}};

/* A link to probe: ranks and their nodes. */
struct pair {
    uint32_t from_rank, to_rank, from_node, to_node;
    uint64_t bytes; /* that the schedule moves there */
};

struct rf_run_probes {
    const struct rf_scenario *scenario;
    struct rf_links *into;
    uint32_t n_nodes;
    bool copying; /* or else probing pairs[at] */
    bool rough;   /* whose rate is not known yet */
    struct pair *pairs;
    size_t n_pairs, at;
    double *rates; /* GB/s found last, by pair of nodes; 0: never */
};

struct rf_run_probes *rf_run_probes_create(uint32_t n_nodes)
{
    struct rf_run_probes *probes = rf_xcalloc(1, sizeof(*probes));
    probes->n_nodes = n_nodes;
    probes->rates =
        rf_xcalloc((size_t)n_nodes * n_nodes, sizeof(*probes->rates));
    return probes;
}

void rf_run_probes_destroy(struct rf_run_probes *probes)
{
    if (probes != NULL) {
        free(probes->pairs);
        free(probes->rates);
        free(probes);
    }
}

/* --- Which links ---------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->from_rank < y->from_rank ? -1 : x->from_rank > y->from_rank;
}

/* Keeps of many pairs those that give each sending and each receiving node at
 * least one figure; returns their number. */
static size_t keep_covering(struct pair *pairs, size_t n, uint32_t n_nodes)
{
    bool *sends = rf_xcalloc(n_nodes, sizeof(bool));
    bool *receives = rf_xcalloc(n_nodes, sizeof(bool));
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!sends[pairs[i].from_node] || !receives[pairs[i].to_node]) {
            sends[pairs[i].from_node] = receives[pairs[i].to_node] = true;
            pairs[kept++] = pairs[i];
        }
    }
    free(sends);
    free(receives);
    return kept;
}

/* What the schedule moves between each two nodes. */
struct sums {
    const struct rf_rank *ranks;
    struct pair *all; /* n_nodes² */
    uint32_t n_nodes;
};

static void add_up(uint32_t src, uint32_t dst, uint64_t n_ops, uint64_t bytes,
                   void *data)
{
    const struct sums *sums = data;
    uint32_t from = sums->ranks[src].node, to = sums->ranks[dst].node;
    struct pair *pair = &sums->all[(size_t)from * sums->n_nodes + to];
    (void)n_ops;
    if (from == to) {
        return;
    }
    if (pair->bytes == 0) {
        *pair = (struct pair){src, dst, from, to, 0};
    }
    pair->bytes += bytes;
}

void rf_run_probes_plan(struct rf_run_probes *probes,
                        const struct rf_scenario *scenario)
{
    const size_t n = (size_t)probes->n_nodes * probes->n_nodes;
    struct pair *all = rf_calloc(n, sizeof(*all));
    size_t used = 0;
    free(probes->pairs);
    probes->scenario = scenario;
    probes->pairs = all;
    probes->n_pairs = 0;
    if (all == NULL) {
        return; /* no figures of links, then, and no bound from them */
    }
    struct sums sums = {scenario->world->ranks, all, probes->n_nodes};
    rf_schedule_pairs(scenario->schedule, add_up, &sums);
    for (size_t i = 0; i < n; i++) {
        if (all[i].bytes > 0) {
            all[used++] = all[i];
        }
    }
    qsort(all, used, sizeof(*all), by_bytes); /* the busiest first */
    probes->n_pairs =
        used > PAIRS_MAX ? keep_covering(all, used, probes->n_nodes) : used;
}

/* --- One after the other -------------------------------------------------- */

static size_t place_of(const struct rf_run_probes *probes,
                       const struct pair *pair)
{
    return (size_t)pair->from_node * probes->n_nodes + pair->to_node;
}

void rf_run_probes_begin(struct rf_run_probes *probes, struct rf_links *into)
{
    probes->into = into;
    probes->copying = true;
    probes->at = 0;
}

static uint64_t copy_bytes(const struct rf_scenario *scenario)
{
    uint64_t most = COPY_LEAST_BYTES;
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        most = RF_MAX(most,
                      rf_plan_layout(scenario->plan, RF_INFER, r)->arena_bytes);
    }
    return RF_MIN(most, COPY_MOST_BYTES);
}

/* The rate found last of the link in turn. */
static double *rate_of(const struct rf_run_probes *probes)
{
    return &probes->rates[place_of(probes, &probes->pairs[probes->at])];
}

static uint64_t link_bytes(const struct rf_run_probes *probes)
{
    size_t i = 0;
    if (probes->rough) {
        return ROUGH_BYTES;
    }
    while (*rate_of(probes) >= sizes[i].below_gbytes_per_s) {
        i++;
    }
    return sizes[i].bytes;
}

void rf_run_probes_ask(const struct rf_run_probes *probes,
                       struct rf_msg_step *step)
{
    if (probes->copying) {
        step->kind = rf_xstrdup("copy");
        step->bytes = copy_bytes(probes->scenario);
        return;
    }
    step->kind = rf_xstrdup("link");
    step->bytes = link_bytes(probes);
    step->from = probes->pairs[probes->at].from_rank;
    step->to = probes->pairs[probes->at].to_rank;
}

static enum rf_status missing(struct rf_err *err, const char *figure)
{
    return rf_err_set(err, RF_ERR_PROTOCOL, "its answer has no \"%s\"", figure);
}

static enum rf_status take_copy(struct rf_run_probes *probes, uint32_t node,
                                const struct rf_msg_probed *probed,
                                struct rf_err *err)
{
    double *single = &probes->into->copy1_gbytes_per_s[node];
    if (isnan(probed->gbytes_per_s)) {
        return missing(err, "gbytes_per_s");
    }
    if (isnan(probed->single_gbytes_per_s)) {
        return missing(err, "single_gbytes_per_s");
    }
    /* A rank's figure is its share of what the node copied meanwhile. */
    probes->into->copy_gbytes_per_s[node] += probed->gbytes_per_s;
    *single = RF_MAX(*single, probed->single_gbytes_per_s);
    return RF_OK;
}

static enum rf_status take_link(struct rf_run_probes *probes,
                                const struct rf_msg_probed *probed,
                                struct rf_err *err)
{
    const size_t place = place_of(probes, &probes->pairs[probes->at]);
    if (isnan(probed->gbytes_per_s)) {
        return missing(err, "gbytes_per_s");
    }
    if (isnan(probed->latency_us)) {
        return missing(err, "latency_us");
    }
    probes->rates[place] = probed->gbytes_per_s;
    if (!probes->rough) {
        probes->into->pair_gbytes_per_s[place] = probed->gbytes_per_s;
        probes->into->pair_latency_us[place] = probed->latency_us;
    }
    return RF_OK;
}

enum rf_status rf_run_probes_take(struct rf_run_probes *probes,
                                  const struct rf_msg_answer *answer,
                                  struct rf_err *err)
{
    if (!probes->copying && answer->rank != probes->pairs[probes->at].to_rank) {
        return RF_OK; /* only the receiving rank has seen anything */
    }
    if (answer->probed == NULL) {
        return missing(err, "probed");
    }
    return probes->copying
               ? take_copy(probes,
                           probes->scenario->world->ranks[answer->rank].node,
                           answer->probed, err)
               : take_link(probes, answer->probed, err);
}

enum rf_verdict rf_run_probes_answered(struct rf_run_probes *probes,
                                       struct rf_fault *fault)
{
    if (probes->copying) {
        probes->copying = false;
    } else if (!probes->rough) {
        probes->at++;
    } else if (*rate_of(probes) <= 0) {
        *fault =
            rf_fault_make(RF_NONE, probes->pairs[probes->at].to_rank,
                          RF_ERR_PROTOCOL, "the link probe gave no figure");
        return RF_VERDICT_ABORT;
    }
    if (probes->at == probes->n_pairs) {
        return RF_VERDICT_NEXT;
    }
    probes->rough = *rate_of(probes) <= 0;
    return RF_VERDICT_GO_ON;
}

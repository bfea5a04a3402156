#include "coordinator/run/probes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Finds a link's rate roughly; sufficient if the link moves no more than
 * this. */
#define ROUGH_BYTES (UINT64_C(1) << 20)
#define FEW_PAIRS 16 /* up to so many, all are measured */
#define ROUNDS_LEAST 8

/* The real probe moves one of a few fixed amounts, so that two runs on one
 * network load it equally and can be subtracted from each other. The limits lie
 * between the rates of common networks. */
static const struct {
    double below_gbytes_per_s;
    uint64_t bytes;
} sizes[] = {{0.0045, 1 << 20}, {0.09, 8 << 20}, {INFINITY, 64 << 20}};

/* A link to probe: ranks and their nodes. */
struct probed_link {
    uint32_t from_rank, to_rank, from_node, to_node;
    uint64_t bytes;  /* moved by the schedule */
    uint64_t enough; /* most bytes that its probe needs */
    uint32_t round;  /* RF_NONE: not probed */
    uint64_t ask;    /* bytes of its next probe; 0: measured */
    struct rf_msg_probed seen;
};

/* The known figures of the link between two nodes; 0 bytes: none. */
struct figure {
    double gbytes_per_s, latency_us;
    uint64_t bytes; /* moved by the probe */
};

struct rf_run_probes {
    const struct rf_scenario *scenario;
    struct rf_capacities *into;
    uint32_t n_nodes;
    bool copying; /* false: probing the pairs of `round` */
    struct probed_link *pairs;
    size_t n_pairs;
    uint32_t n_rounds, round;
    struct probed_link **received; /* in the round, by rank; NULL: none */
    struct figure *known;          /* in this run, by pair of nodes */
};

struct rf_run_probes *rf_run_probes_create(uint32_t n_nodes)
{
    struct rf_run_probes *probes = rf_xcalloc(1, sizeof(*probes));
    probes->n_nodes = n_nodes;
    probes->known =
        rf_xcalloc((size_t)n_nodes * n_nodes, sizeof(*probes->known));
    return probes;
}

void rf_run_probes_destroy(struct rf_run_probes *probes)
{
    if (probes != NULL) {
        free(probes->pairs);
        free(probes->received);
        free(probes->known);
        free(probes);
    }
}

/* --- Which links, and when ------------------------------------------------ */

static int by_bytes(const void *a, const void *b)
{
    const struct probed_link *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->from_rank < y->from_rank ? -1 : x->from_rank > y->from_rank;
}

/* Node state while rounds are made. */
struct cover {
    bool *sends, *receives; /* has a figure in this round or an earlier one */
    bool *busy;             /* in this round */
};

/* Adds pairs to a round, each giving its nodes at least `first_figures` first
 * figures; returns how many. */
static size_t add_to_round(struct probed_link *pairs, size_t n, uint32_t round,
                           unsigned first_figures, struct cover *cover)
{
    size_t added = 0;
    for (size_t i = 0; i < n; i++) {
        struct probed_link *pair = &pairs[i];
        const uint32_t from = pair->from_node, to = pair->to_node;
        const unsigned news =
            (unsigned)!cover->sends[from] + !cover->receives[to];
        if (pair->round != RF_NONE || cover->busy[from] || cover->busy[to] ||
            news < first_figures) {
            continue;
        }
        pair->round = round;
        cover->busy[from] = cover->busy[to] = true;
        cover->sends[from] = cover->receives[to] = true;
        added++;
    }
    return added;
}

static uint32_t rounds_most(uint32_t n_nodes)
{
    uint32_t log2 = 0;
    while (n_nodes > UINT32_C(1) << log2 && log2 < 31) {
        log2++;
    }
    return ROUNDS_LEAST + 2 * log2;
}

/* Makes rounds of disjoint pairs: all pairs if there are few, otherwise those
 * that give a sending or receiving node its first figure. Returns how many. */
static uint32_t make_rounds(struct probed_link *pairs, size_t n,
                            uint32_t n_nodes)
{
    const unsigned least = n > FEW_PAIRS ? 1 : 0;
    const uint32_t most = rounds_most(n_nodes);
    struct cover cover = {rf_xcalloc(n_nodes, sizeof(bool)),
                          rf_xcalloc(n_nodes, sizeof(bool)),
                          rf_xcalloc(n_nodes, sizeof(bool))};
    uint32_t round = 0;
    size_t added = n;
    while (added > 0 && round < most) {
        added = 0;
        memset(cover.busy, 0, n_nodes * sizeof(bool));
        for (unsigned pass = 0; pass <= 2 - least; pass++) {
            added += add_to_round(pairs, n, round, 2 - pass, &cover);
        }
        round += added > 0;
    }
    free(cover.sends);
    free(cover.receives);
    free(cover.busy);
    return round;
}

/* What the schedule moves between each pair of nodes. */
struct sums {
    const struct rf_rank *ranks;
    struct probed_link *all; /* n_nodes² */
    uint32_t n_nodes;
};

static void add_up(uint32_t src, uint32_t dst, uint64_t n_ops, uint64_t bytes,
                   void *data)
{
    const struct sums *sums = data;
    uint32_t from = sums->ranks[src].node, to = sums->ranks[dst].node;
    struct probed_link *pair = &sums->all[(size_t)from * sums->n_nodes + to];
    (void)n_ops;
    if (from == to) {
        return;
    }
    if (pair->bytes == 0) {
        *pair = (struct probed_link){.from_rank = src,
                                     .to_rank = dst,
                                     .from_node = from,
                                     .to_node = to,
                                     .round = RF_NONE};
    }
    pair->bytes += bytes;
}

/* Moves the pairs that the schedule uses to the front, busiest first. Returns
 * how many. */
static size_t list_used(struct probed_link *all, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (all[i].bytes > 0) {
            all[used++] = all[i];
        }
    }
    qsort(all, used, sizeof(*all), by_bytes);
    return used;
}

void rf_run_probes_plan(struct rf_run_probes *probes,
                        const struct rf_scenario *scenario)
{
    const struct rf_schedule *schedule = scenario->schedule;
    const size_t n = (size_t)probes->n_nodes * probes->n_nodes;
    struct sums sums = {scenario->world->ranks, NULL, probes->n_nodes};
    free(probes->pairs);
    free(probes->received);
    probes->scenario = scenario;
    probes->pairs = NULL;
    probes->received =
        rf_xcalloc(scenario->world->n_ranks, sizeof(struct probed_link *));
    probes->n_pairs = probes->n_rounds = 0;
    if (!rf_scenario_crosses_by_tcp(scenario)) {
        return; /* its yardsticks measure its links */
    }
    sums.all = rf_calloc(n, sizeof(*sums.all));
    if (sums.all == NULL) {
        return; /* no link figures, and no bound from them */
    }
    rf_schedule_pairs(schedule, add_up, &sums);
    probes->pairs = sums.all;
    probes->n_pairs = list_used(sums.all, n);
    for (size_t i = 0; i < probes->n_pairs; i++) {
        struct probed_link *pair = &probes->pairs[i];
        pair->enough = RF_MAX(schedule->node_send[pair->from_node],
                              schedule->node_recv[pair->to_node]);
        pair->enough = RF_MAX(pair->enough, ROUGH_BYTES);
    }
    probes->n_rounds =
        make_rounds(probes->pairs, probes->n_pairs, probes->n_nodes);
}

/* --- One round after the other -------------------------------------------- */

static struct figure *known_of(const struct rf_run_probes *probes,
                               const struct probed_link *pair)
{
    return &probes->known[(size_t)pair->from_node * probes->n_nodes +
                          pair->to_node];
}

/* Bytes that a probe of the link must move, now that its rate is known. */
static uint64_t wanted_bytes(const struct rf_run_probes *probes,
                             const struct probed_link *pair)
{
    size_t i = 0;
    while (known_of(probes, pair)->gbytes_per_s >=
           sizes[i].below_gbytes_per_s) {
        i++;
    }
    return RF_MIN(sizes[i].bytes, pair->enough);
}

/* The link is measured: copies its figure to the scenario. */
static void settle(struct rf_run_probes *probes, struct probed_link *pair)
{
    const struct figure *known = known_of(probes, pair);
    const size_t place =
        (size_t)pair->from_node * probes->n_nodes + pair->to_node;
    probes->into->pair_gbytes_per_s[place] = known->gbytes_per_s;
    probes->into->pair_latency_us[place] = known->latency_us;
    pair->ask = 0;
}

static bool in_turn(const struct rf_run_probes *probes,
                    const struct probed_link *pair)
{
    return pair->round == probes->round && pair->ask > 0;
}

/* Moves to the next round with a link to measure, if any. */
static void find_round(struct rf_run_probes *probes)
{
    const uint32_t n_ranks = probes->scenario->world->n_ranks;
    size_t found = 0;
    memset(probes->received, 0, n_ranks * sizeof(struct probed_link *));
    for (; probes->round < probes->n_rounds; probes->round++) {
        for (size_t i = 0; i < probes->n_pairs; i++) {
            struct probed_link *pair = &probes->pairs[i];
            if (in_turn(probes, pair)) {
                probes->received[pair->to_rank] = pair;
                found++;
            }
        }
        if (found > 0) {
            return;
        }
    }
}

void rf_run_probes_begin(struct rf_run_probes *probes,
                         struct rf_capacities *into, enum rf_probe_links links)
{
    probes->into = into;
    probes->copying = true;
    probes->round = 0;
    for (size_t i = 0; i < probes->n_pairs; i++) {
        struct probed_link *pair = &probes->pairs[i];
        const uint64_t moved = known_of(probes, pair)->bytes;
        pair->ask = moved > 0 ? wanted_bytes(probes, pair) : ROUGH_BYTES;
        if (links == RF_PROBE_NO_LINKS) {
            pair->ask = 0;
        } else if (links == RF_PROBE_UNKNOWN_LINKS && moved >= pair->ask) {
            settle(probes, pair);
        }
    }
    find_round(probes);
}

void rf_run_probes_ask(const struct rf_run_probes *probes,
                       struct rf_msg_step *step)
{
    if (probes->copying) {
        step->kind = rf_xstrdup("copy");
        step->bytes = rf_scenario_copy_bytes(probes->scenario);
        return;
    }
    step->kind = rf_xstrdup("link");
    step->links = rf_xcalloc(probes->n_nodes, sizeof(*step->links));
    for (size_t i = 0; i < probes->n_pairs; i++) {
        const struct probed_link *pair = &probes->pairs[i];
        if (in_turn(probes, pair)) {
            step->links[step->n_links++] =
                (struct rf_msg_link){pair->from_rank, pair->to_rank, pair->ask};
        }
    }
}

static enum rf_status missing(struct rf_err *err, const char *figure)
{
    return rf_err_set(err, RF_ERR_PROTOCOL, "its answer has no \"%s\"", figure);
}

static enum rf_status take_copy(struct rf_run_probes *probes, uint32_t node,
                                const struct rf_msg_probed *probed,
                                struct rf_err *err)
{
    const bool encoded = probes->scenario->spec->encoding != RF_ENCODING_DENSE;
    const bool converts = rf_scenario_converts(probes->scenario);
    double *single = &probes->into->copy1_gbytes_per_s[node];
    if (isnan(probed->gbytes_per_s)) {
        return missing(err, "gbytes_per_s");
    }
    if (isnan(probed->single_gbytes_per_s)) {
        return missing(err, "single_gbytes_per_s");
    }
    if (encoded && isnan(probed->scan_gbytes_per_s)) {
        return missing(err, "scan_gbytes_per_s");
    }
    if (converts && isnan(probed->convert_gbytes_per_s)) {
        return missing(err, "convert_gbytes_per_s");
    }
    /* A rank's figure is its share while the node's ranks all do the same. */
    probes->into->copy_gbytes_per_s[node] += probed->gbytes_per_s;
    if (encoded) {
        probes->into->scan_gbytes_per_s[node] += probed->scan_gbytes_per_s;
    }
    if (converts) {
        probes->into->convert_gbytes_per_s[node] +=
            probed->convert_gbytes_per_s;
    }
    *single = RF_MAX(*single, probed->single_gbytes_per_s);
    return RF_OK;
}

static enum rf_status take_link(struct probed_link *pair,
                                const struct rf_msg_probed *probed,
                                struct rf_err *err)
{
    if (isnan(probed->gbytes_per_s)) {
        return missing(err, "gbytes_per_s");
    }
    if (isnan(probed->latency_us)) {
        return missing(err, "latency_us");
    }
    pair->seen = *probed;
    return RF_OK;
}

enum rf_status rf_run_probes_take(struct rf_run_probes *probes,
                                  const struct rf_msg_answer *answer,
                                  struct rf_err *err)
{
    struct probed_link *pair = probes->received[answer->rank];
    if (!probes->copying && pair == NULL) {
        return RF_OK; /* only receiving ranks have figures */
    }
    if (answer->probed == NULL) {
        return missing(err, "probed");
    }
    return probes->copying
               ? take_copy(probes,
                           probes->scenario->world->ranks[answer->rank].node,
                           answer->probed, err)
               : take_link(pair, answer->probed, err);
}

/* The link was measured with `ask` bytes: done, unless that only found its
 * rate. */
static void note(struct rf_run_probes *probes, struct probed_link *pair)
{
    struct figure *known = known_of(probes, pair);
    const bool rough = known->bytes == 0;
    *known = (struct figure){pair->seen.gbytes_per_s, pair->seen.latency_us,
                             pair->ask};
    if (rough && wanted_bytes(probes, pair) > pair->ask) {
        pair->ask = wanted_bytes(probes, pair);
        pair->seen = (struct rf_msg_probed){0};
    } else {
        settle(probes, pair);
    }
}

enum rf_verdict rf_run_probes_answered(struct rf_run_probes *probes,
                                       struct rf_fault *fault)
{
    for (size_t i = 0; i < probes->n_pairs && !probes->copying; i++) {
        struct probed_link *pair = &probes->pairs[i];
        if (!in_turn(probes, pair)) {
            continue;
        }
        if (pair->seen.gbytes_per_s <= 0) {
            *fault = rf_fault_make(RF_NONE, pair->to_rank, RF_ERR_PROTOCOL,
                                   "the link probe gave no figure");
            return RF_VERDICT_ABORT;
        }
        note(probes, pair);
    }
    probes->copying = false;
    find_round(probes);
    return probes->round < probes->n_rounds ? RF_VERDICT_GO_ON
                                            : RF_VERDICT_NEXT;
}

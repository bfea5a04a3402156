/*
 * Lower bounds. What each bound counts and why no execution can
 * be faster is explained in docs/MEASURING.md, "The lower bound"; the names of
 * the steps here are those used there. Figures that were not measured (0) set
 * no bound.
 */
#include "planner/predict/bounds.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/unit_task.h"

/* With up to so many different sets of holder nodes all their unions are tried;
 * with more, unions are grown from single sets, in about so many steps. */
#define ALL_UNIONS_MAX 10
#define GROWING_STEPS_MAX 1e8
#define BYTES_A_MS 1e6 /* of 1 GB/s */

void rf_capacities_init(struct rf_capacities *links, uint32_t n_nodes)
{
    size_t n = RF_MAX(n_nodes, 1);
    links->n_nodes = n_nodes;
    links->devices = false;
    links->port_gbytes_per_s = 0;
    links->nic_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->nics = rf_xcalloc(n, sizeof(uint32_t));
    links->copy_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->copy1_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->out_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->in_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->pair_gbytes_per_s = rf_xcalloc(n * n, sizeof(double));
    links->pair_latency_us = rf_xcalloc(n * n, sizeof(double));
    links->peer_gbytes_per_s = NULL;
    links->left_bytes = NULL;
}

void rf_capacities_free(struct rf_capacities *links)
{
    free(links->copy_gbytes_per_s);
    free(links->copy1_gbytes_per_s);
    free(links->out_gbytes_per_s);
    free(links->in_gbytes_per_s);
    free(links->pair_gbytes_per_s);
    free(links->pair_latency_us);
    free(links->peer_gbytes_per_s);
    free(links->left_bytes);
    free(links->nic_gbytes_per_s);
    free(links->nics);
    *links = (struct rf_capacities){.n_nodes = 0};
}

double rf_capacities_capacity(const struct rf_capacities *links, uint32_t node,
                              bool out)
{
    double best =
        out ? links->out_gbytes_per_s[node] : links->in_gbytes_per_s[node];
    if (links->nic_gbytes_per_s[node] > 0) {
        return links->nic_gbytes_per_s[node] * rf_capacities_nics(links, node);
    }
    for (uint32_t other = 0; other < links->n_nodes; other++) {
        size_t at = out ? (size_t)node * links->n_nodes + other
                        : (size_t)other * links->n_nodes + node;
        if (other != node) {
            best = RF_MAX(best, links->pair_gbytes_per_s[at]);
        }
    }
    return best;
}

uint32_t rf_capacities_nics(const struct rf_capacities *links, uint32_t node)
{
    return RF_MAX(links->nics[node], 1);
}

double rf_capacities_nic_capacity(const struct rf_capacities *links,
                                  uint32_t node, bool out)
{
    return rf_capacities_capacity(links, node, out) /
           rf_capacities_nics(links, node);
}

/* Takes a bound if it is larger than the one known. */
static void RF_PRINTF(4, 5)
    raise_bound(struct rf_bound *bound, double bytes, double gbytes_per_s,
                const char *fmt, ...)
{
    if (gbytes_per_s <= 0 || bytes / gbytes_per_s / BYTES_A_MS <= bound->ms) {
        return;
    }
    va_list args;
    bound->ms = bytes / gbytes_per_s / BYTES_A_MS;
    va_start(args, fmt);
    vsnprintf(bound->resource, sizeof(bound->resource), fmt, args);
    va_end(args);
}

/* What M1, M2, M3 and S1 count, in payload bytes. */
struct copy_counts {
    double *node, *rank;
    double *read;      /* by node: the part of `node` that is read */
    double *peer;      /* by rank: what others have to give it */
    double *left;      /* by node: see rf_capacities */
    uint32_t *needers; /* of the current unit task, by node with a holder */
    bool *held;
};

static bool holds(const struct rf_holder *src, uint32_t n, uint32_t rank)
{
    uint32_t first = 0;
    while (n > 0) { /* ascending by rank */
        uint32_t half = n / 2;
        if (src[first + half].rank < rank) {
            first += half + 1;
            n -= half + 1;
        } else if (src[first + half].rank > rank) {
            n = half;
        } else {
            return true;
        }
    }
    return false;
}

/* A copy reads a byte and writes one. Where a node needs a unit task several
 * times, the second copy and all later ones may find it in a cache: they only
 * write, half a copy. Unit tasks that no rank of the node holds are left to the
 * links. */
static void add_copies(const struct rf_plan *plan,
                       const struct rf_unit_tasks *units,
                       const struct rf_unit_task *unit,
                       struct copy_counts *copied)
{
    const struct rf_rank *ranks = plan->world->ranks;
    const struct rf_holder *src = &units->holders[unit->first_src];
    const struct rf_holder *dst = &units->holders[unit->first_dst];
    uint32_t items = rf_plan_item_bytes(plan, RF_TRAIN, unit->family) +
                     rf_plan_item_bytes(plan, RF_INFER, unit->family);
    const double elements = (double)rf_box_elements(&unit->box);
    const double half = elements * items / 4;
    const double read =
        elements * rf_plan_item_bytes(plan, RF_TRAIN, unit->family) / 2;
    const enum rf_side sent = plan->spec->cast_at_source ? RF_INFER : RF_TRAIN;
    const double wire = elements * rf_plan_item_bytes(plan, sent, unit->family);
    for (uint32_t i = 0; i < unit->n_src; i++) {
        copied->held[ranks[src[i].rank].node] = true;
    }
    for (uint32_t i = 0; i < unit->n_dst; i++) {
        uint32_t node = ranks[dst[i].rank].node;
        if (copied->held[node]) {
            copied->read[node] += copied->needers[node] == 0 ? read : 0;
            copied->node[node] +=
                copied->needers[node]++ == 0 ? 2 * half : half;
        }
    }
    for (uint32_t i = 0; i < unit->n_dst; i++) {
        uint32_t rank = dst[i].rank, node = ranks[rank].node;
        if (!holds(src, unit->n_src, rank)) {
            copied->peer[rank] += wire;
        } else {
            copied->rank[rank] += copied->needers[node] == 1 ? 2 * half : half;
        }
    }
    for (uint32_t i = 0; i < unit->n_src; i++) {
        copied->held[ranks[src[i].rank].node] = false;
        copied->needers[ranks[src[i].rank].node] = 0;
    }
}

static void take_off(double *from, double bytes)
{
    *from = RF_MAX(*from - bytes, 0.);
}

/* Takes off what stays in place: a whole copy of each such byte, though more
 * than one rank may count on its being read. */
static void leave(const struct rf_world *world, const uint64_t *left_bytes,
                  struct copy_counts *copied)
{
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const uint32_t node = world->ranks[r].node;
        const double bytes = (double)left_bytes[r];
        copied->left[node] += bytes;
        take_off(&copied->node[node], bytes);
        take_off(&copied->read[node], bytes / 2);
        take_off(&copied->rank[r], bytes);
        take_off(&copied->peer[r], bytes);
    }
}

static void copied_make(const struct rf_plan *plan,
                        const struct rf_unit_tasks *units,
                        const struct rf_capacities *links,
                        struct copy_counts *copied)
{
    const struct rf_world *world = plan->world;
    *copied = (struct copy_counts){
        .node = rf_xcalloc(world->n_nodes, sizeof(double)),
        .read = rf_xcalloc(world->n_nodes, sizeof(double)),
        .rank = rf_xcalloc(world->n_ranks, sizeof(double)),
        .peer = rf_xcalloc(world->n_ranks, sizeof(double)),
        .left = rf_xcalloc(world->n_nodes, sizeof(double)),
        .needers = rf_xcalloc(world->n_nodes, sizeof(uint32_t)),
        .held = rf_xcalloc(world->n_nodes, sizeof(bool))};
    for (size_t u = 0; u < units->n; u++) {
        add_copies(plan, units, &units->of[u], copied);
    }
    if (links->left_bytes != NULL) {
        leave(world, links->left_bytes, copied);
    }
}

static void copied_free(struct copy_counts *copied)
{
    free(copied->node);
    free(copied->read);
    free(copied->rank);
    free(copied->peer);
    free(copied->left);
    free(copied->needers);
    free(copied->held);
}

/* M1, M2, M3: what has to be copied inside nodes and inside GPUs, and to come
 * into GPUs. In host memory any rank of the node may copy for another; ranks
 * that share a GPU may give each other what comes into it. */
static void bound_memory(const struct rf_plan *plan,
                         const struct copy_counts *copied,
                         const struct rf_capacities *links,
                         const char *const *names, struct rf_bound *bound)
{
    const struct rf_world *world = plan->world;
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        raise_bound(bound, copied->node[n], links->copy_gbytes_per_s[n],
                    "%smemory of %s", links->devices ? "GPU " : "", names[n]);
    }
    for (uint32_t r = 0; links->devices && r < world->n_ranks; r++) {
        uint32_t at = world->ranks[r].node;
        raise_bound(bound, copied->rank[r], links->copy1_gbytes_per_s[at],
                    "GPU copying by rank %u on %s", r, names[at]);
        if (links->peer_gbytes_per_s != NULL &&
            !plan->spec->separate_processes) {
            raise_bound(bound, copied->peer[r], links->peer_gbytes_per_s[r],
                        "GPU links into rank %u on %s", r, names[at]);
        }
    }
}

/* S1: the operations' copies inside a node. Each writes, and what the node's
 * ranks hold has to be read once; what is read again may be in a cache. Where a
 * remote source may stand in for one of the node, or all comes by a root,
 * nothing need be read. */
static void bound_copies(const struct rf_plan *plan,
                         const struct rf_schedule *schedule,
                         const struct copy_counts *copied,
                         const struct rf_capacities *links,
                         const char *const *names, struct rf_bound *bound)
{
    for (uint32_t n = 0; n < plan->world->n_nodes; n++) {
        const bool local = schedule->node_recv[n] == 0 ||
                           (plan->spec->balance != RF_BALANCE_NONE &&
                            plan->spec->strategy != RF_GATHER_BROADCAST);
        const double written =
            RF_MAX((double)schedule->node_write[n] - copied->left[n], 0.);
        raise_bound(bound, written / 2 + (local ? copied->read[n] : 0),
                    links->copy_gbytes_per_s[n], "%smemory of %s",
                    links->devices ? "GPU " : "", names[n]);
    }
}

/* Bytes that only the nodes of a set hold, and that others need. */
struct owned {
    uint64_t *nodes; /* bit set */
    double bytes;
    double alone; /* L2 for this set */
    size_t index; /* in the order found */
};

struct owners {
    struct owned *sets;
    size_t n, capacity;
    size_t words;     /* of a bit set */
    double *link_out; /* capacity, by node; 0: not measured */
};

static bool is_subset(const uint64_t *a, const uint64_t *of, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        if ((a[i] & ~of[i]) != 0) {
            return false;
        }
    }
    return true;
}

static void add_owned(struct owners *owners, const uint64_t *nodes,
                      double bytes)
{
    size_t size = owners->words * sizeof(*nodes);
    for (size_t i = 0; i < owners->n; i++) {
        if (memcmp(owners->sets[i].nodes, nodes, size) == 0) {
            owners->sets[i].bytes += bytes;
            return;
        }
    }
    struct owned owned = {
        .nodes = rf_xmalloc(size), .bytes = bytes, .index = owners->n};
    memcpy(owned.nodes, nodes, size);
    RF_PUSH(owners->sets, owners->n, owners->capacity, owned);
}

/* L2 for one set of nodes: all that only they hold, over all their links. */
static double time_of(const struct owners *owners,
                      const struct rf_capacities *links, const uint64_t *set,
                      double *bytes, double *capacity)
{
    *bytes = 0;
    *capacity = 0;
    for (size_t i = 0; i < owners->n; i++) {
        if (is_subset(owners->sets[i].nodes, set, owners->words)) {
            *bytes += owners->sets[i].bytes;
        }
    }
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        if ((set[n / 64] >> (n % 64) & 1) != 0) {
            if (owners->link_out[n] <= 0) {
                return 0;
            }
            *capacity += owners->link_out[n];
        }
    }
    return *capacity > 0 ? *bytes / *capacity : 0;
}

static void bound_set(const struct owners *owners,
                      const struct rf_capacities *links,
                      const char *const *names, const uint64_t *set,
                      struct rf_bound *bound)
{
    double bytes, capacity;
    uint32_t count = 0, first = 0;
    if (time_of(owners, links, set, &bytes, &capacity) <= 0) {
        return;
    }
    for (uint32_t n = links->n_nodes; n-- > 0;) {
        if ((set[n / 64] >> (n % 64) & 1) != 0) {
            count++;
            first = n;
        }
    }
    if (count == 1) {
        raise_bound(bound, bytes, capacity, "link %s out", names[first]);
    } else {
        raise_bound(bound, bytes, capacity, "links of %s and %u more out",
                    names[first], count - 1);
    }
}

/* All unions of few sets. */
static void bound_all_unions(const struct owners *owners,
                             const struct rf_capacities *links,
                             const char *const *names, uint64_t *set,
                             struct rf_bound *bound)
{
    for (uint32_t pick = 1; pick < 1u << owners->n; pick++) {
        memset(set, 0, owners->words * sizeof(*set));
        for (size_t i = 0; i < owners->n; i++) {
            for (size_t w = 0; (pick >> i & 1) != 0 && w < owners->words; w++) {
                set[w] |= owners->sets[i].nodes[w];
            }
        }
        bound_set(owners, links, names, set, bound);
    }
}

static int by_time_alone(const void *a, const void *b)
{
    const struct owned *x = a, *y = b;
    if (x->alone < y->alone || x->alone > y->alone) {
        return x->alone > y->alone ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

/* The sets with the largest bounds of their own come first. */
static void sort_owners(struct owners *owners,
                        const struct rf_capacities *links)
{
    double bytes, capacity;
    for (size_t i = 0; i < owners->n; i++) {
        struct owned *owned = &owners->sets[i];
        owned->alone = time_of(owners, links, owned->nodes, &bytes, &capacity);
    }
    qsort(owners->sets, owners->n, sizeof(*owners->sets), by_time_alone);
}

/* From every set, or the first ones of very many, add others as long as that
 * raises the bound. */
static void bound_grown_unions(struct owners *owners,
                               const struct rf_capacities *links,
                               const char *const *names, uint64_t *set,
                               struct rf_bound *bound)
{
    size_t size = owners->words * sizeof(*set);
    uint64_t *tried = rf_xmalloc(size);
    double n = (double)owners->n, bytes, capacity;
    double steps = n * (n * (double)owners->words + links->n_nodes);
    double starts = RF_MIN(GROWING_STEPS_MAX / steps + 1, n);
    sort_owners(owners, links);
    memset(set, 0, size);
    for (size_t i = 0; i < owners->n; i++) {
        for (size_t w = 0; w < owners->words; w++) {
            set[w] |= owners->sets[i].nodes[w];
        }
    }
    bound_set(owners, links, names, set, bound);
    for (size_t start = 0; start < (size_t)starts; start++) {
        memcpy(set, owners->sets[start].nodes, size);
        double best = time_of(owners, links, set, &bytes, &capacity);
        for (size_t i = 0; i < owners->n; i++) {
            for (size_t w = 0; w < owners->words; w++) {
                tried[w] = set[w] | owners->sets[i].nodes[w];
            }
            double time = time_of(owners, links, tried, &bytes, &capacity);
            if (time > best) {
                best = time;
                memcpy(set, tried, size);
            }
        }
        bound_set(owners, links, names, set, bound);
    }
    free(tried);
}

/* Who holds each unit task and which nodes have to get it. */
static void collect(const struct rf_plan *plan,
                    const struct rf_unit_tasks *units, struct owners *owners,
                    double *in, uint64_t *set)
{
    const struct rf_world *world = plan->world;
    enum rf_side wire = plan->spec->cast_at_source ? RF_INFER : RF_TRAIN;
    uint32_t *last = rf_xcalloc(world->n_nodes, sizeof(*last));
    for (size_t u = 0; u < units->n; u++) {
        const struct rf_unit_task *unit = &units->of[u];
        double bytes = (double)rf_box_elements(&unit->box) *
                       rf_plan_item_bytes(plan, wire, unit->family);
        bool leaves = false;
        memset(set, 0, owners->words * sizeof(*set));
        for (uint32_t i = 0; i < unit->n_src; i++) {
            uint32_t rank = units->holders[unit->first_src + i].rank;
            uint32_t node = world->ranks[rank].node;
            set[node / 64] |= (uint64_t)1 << (node % 64);
        }
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            uint32_t rank = units->holders[unit->first_dst + i].rank;
            uint32_t node = world->ranks[rank].node;
            if ((set[node / 64] >> (node % 64) & 1) == 0 &&
                last[node] != u + 1) {
                last[node] = (uint32_t)u + 1;
                in[node] += bytes;
                leaves = true;
            }
        }
        if (leaves) {
            add_owned(owners, set, bytes);
        }
    }
    free(last);
}

/* L1, L2: what has to cross the nodes' links. */
static void bound_links(const struct rf_plan *plan,
                        const struct rf_unit_tasks *units,
                        const struct rf_capacities *links,
                        const char *const *names, struct rf_bound *bound)
{
    struct owners owners = {.words = (plan->world->n_nodes + 63) / 64};
    double *in = rf_xcalloc(plan->world->n_nodes, sizeof(*in));
    uint64_t *set = rf_xcalloc(owners.words, sizeof(*set));
    owners.link_out = rf_xcalloc(links->n_nodes, sizeof(double));
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        owners.link_out[n] = rf_capacities_capacity(links, n, true);
    }
    collect(plan, units, &owners, in, set);
    for (uint32_t n = 0; n < plan->world->n_nodes; n++) {
        raise_bound(bound, in[n], rf_capacities_capacity(links, n, false),
                    "link %s in", names[n]);
    }
    if (owners.n <= ALL_UNIONS_MAX) {
        bound_all_unions(&owners, links, names, set, bound);
    } else {
        bound_grown_unions(&owners, links, names, set, bound);
    }
    for (size_t i = 0; i < owners.n; i++) {
        free(owners.sets[i].nodes);
    }
    free(owners.sets);
    free(owners.link_out);
    free(in);
    free(set);
}

/* S2: the operations' bytes on the nodes' links. */
static void bound_traffic(const struct rf_schedule *schedule,
                          const struct rf_capacities *links,
                          const char *const *names, struct rf_bound *bound)
{
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        raise_bound(bound, (double)schedule->node_send[n],
                    rf_capacities_capacity(links, n, true), "link %s out",
                    names[n]);
        raise_bound(bound, (double)schedule->node_recv[n],
                    rf_capacities_capacity(links, n, false), "link %s in",
                    names[n]);
    }
}

/* `schedule` NULL: by any strategy. */
static enum rf_status find_bound(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 const struct rf_capacities *links,
                                 const char *const *names, struct rf_bound *out,
                                 struct rf_err *err)
{
    struct rf_bound bound = {.ms = 0, .resource = "nothing"};
    struct rf_unit_tasks units;
    struct copy_counts copied;
    if (links->n_nodes != plan->world->n_nodes) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "link figures of %u nodes for a world of %u",
                          links->n_nodes, plan->world->n_nodes);
    }
    RF_TRY(rf_unit_tasks_build(plan, &units, err));
    copied_make(plan, &units, links, &copied);
    bound_memory(plan, &copied, links, names, &bound);
    bound_links(plan, &units, links, names, &bound);
    if (schedule != NULL) {
        bound_copies(plan, schedule, &copied, links, names, &bound);
        bound_traffic(schedule, links, names, &bound);
    }
    copied_free(&copied);
    rf_unit_tasks_free(&units);
    *out = bound;
    return RF_OK;
}

enum rf_status rf_bounds_any(const struct rf_plan *plan,
                             const struct rf_capacities *links,
                             const char *const *node_names,
                             struct rf_bound *out, struct rf_err *err)
{
    return find_bound(plan, NULL, links, node_names, out, err);
}

enum rf_status rf_bounds_schedule(const struct rf_plan *plan,
                                  const struct rf_schedule *schedule,
                                  const struct rf_capacities *links,
                                  const char *const *node_names,
                                  struct rf_bound *out, struct rf_err *err)
{
    return find_bound(plan, schedule, links, node_names, out, err);
}

/*
 * Lower bounds. docs/MEASURING.md, "The lower bound", explains what each bound
 * counts and why no execution can be faster; the step names here are those used
 * there. Figures that were not measured (0) set no bound.
 */
#include "planner/predict/bounds.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/assign/fair_shares.h"
#include "planner/layout/box.h"
#include "planner/plan/unit_task.h"
#include "planner/plan/update_rules.h"
#include "planner/predict/conversion.h"

#define BYTES_A_MS 1e6 /* of 1 GB/s */

void rf_capacities_init(struct rf_capacities *links, uint32_t n_nodes)
{
    size_t n = RF_MAX(n_nodes, 1);
    links->n_nodes = n_nodes;
    links->devices = links->sends_inside = false;
    links->port_gbytes_per_s = 0;
    links->nic_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->nics = rf_xcalloc(n, sizeof(uint32_t));
    links->copy_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->copy1_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->own_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->scan_gbytes_per_s = rf_xcalloc(n, sizeof(double));
    links->convert_gbytes_per_s = rf_xcalloc(n, sizeof(double));
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
    free(links->own_gbytes_per_s);
    free(links->scan_gbytes_per_s);
    free(links->convert_gbytes_per_s);
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

/* Takes a bound if it is larger than the present one. */
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

/* Payload bytes that M1, M2, M3 and S1 count. */
struct copy_counts {
    double *node, *rank;
    double *read;      /* by node: the part of `node` that is read */
    double *peer;      /* by rank: bytes that others have to give it */
    double *left;      /* by node: see rf_capacities */
    uint32_t *needers; /* of the current unit task, by node with a holder */
    bool *held;
};

static int compare_rank(const void *rank, const void *holder)
{
    const struct rf_holder *of = holder;
    return RF_COMPARE(*(const uint32_t *)rank, of->rank);
}

/* `src` is ascending by rank, and not empty. */
static bool holds(const struct rf_holder *src, uint32_t n, uint32_t rank)
{
    return bsearch(&rank, src, n, sizeof(*src), compare_rank) != NULL;
}

/* A copy reads a byte and writes one. If a node needs a unit task several
 * times, a cache may hold it from the second copy on: those only write, half a
 * copy. Unit tasks that no rank of the node holds count for the links only. */
static void add_copies(const struct rf_plan *plan,
                       const struct rf_unit_tasks *units,
                       const struct rf_unit_task *unit,
                       struct copy_counts *copied)
{
    const struct rf_rank *ranks = plan->world->ranks;
    const struct rf_holder *src = &units->holders[unit->first_src];
    const struct rf_holder *dst = &units->holders[unit->first_dst];
    const uint32_t family = unit->family;
    const double from =
        (double)rf_form_bytes(rf_plan_form(plan, RF_TRAIN, family), &unit->box);
    const double to =
        (double)rf_form_bytes(rf_plan_form(plan, RF_INFER, family), &unit->box);
    const double half = (from + to) / 4, read = from / 2;
    const double wire =
        (double)rf_form_bytes(rf_plan_wire(plan, family), &unit->box);
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

/* Subtracts bytes that stay in place: a whole copy each, though several ranks
 * may share one read of them. */
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

/* Sockets need not take part in what any method does in memory. */
static double memory_rate(const struct rf_capacities *links, uint32_t node)
{
    return RF_MAX(links->copy_gbytes_per_s[node],
                  links->own_gbytes_per_s[node]);
}

/* M1, M2, M3: the copies inside nodes and inside GPUs, and the bytes into GPUs.
 * In host memory any rank of the node may copy for another; ranks that share a
 * GPU may give each other the bytes that come into it. */
static void bound_memory(const struct rf_plan *plan,
                         const struct copy_counts *copied,
                         const struct rf_capacities *links,
                         const char *const *names, struct rf_bound *bound)
{
    const struct rf_world *world = plan->world;
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        raise_bound(bound, copied->node[n], memory_rate(links, n),
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

/* S1: the operations' copies inside a node. Each writes, and the bytes that the
 * node's ranks hold are read once; a cache may serve later reads. If a remote
 * source may replace one of the node, or everything comes through a root, no
 * read is certain. */
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
                    memory_rate(links, n), "%smemory of %s",
                    links->devices ? "GPU " : "", names[n]);
    }
}

/* Bytes that any of some nodes has to send or compare, as demands of fair
 * shares: one for each list of nodes. */
struct demands {
    uint64_t *bytes;
    uint32_t *first, *nodes;
    size_t n, bytes_capacity, n_first, first_capacity, n_nodes, nodes_capacity;
};

static bool same_nodes(const uint32_t *a, const uint32_t *b, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && a[i] == b[i]) {
        i++;
    }
    return i == n;
}

static void add_demand(struct demands *all, const uint32_t *nodes, uint32_t n,
                       uint64_t bytes)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->first[i + 1] - all->first[i] == n &&
            same_nodes(all->nodes + all->first[i], nodes, n)) {
            all->bytes[i] += bytes;
            return;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        RF_PUSH(all->nodes, all->n_nodes, all->nodes_capacity, nodes[i]);
    }
    RF_PUSH(all->bytes, all->n, all->bytes_capacity, bytes);
    RF_PUSH(all->first, all->n_first, all->first_capacity,
            (uint32_t)all->n_nodes);
}

static void free_demands(struct demands *all)
{
    free(all->bytes);
    free(all->first);
    free(all->nodes);
}

static uint64_t link_bytes(const struct rf_plan *plan,
                           const struct rf_unit_task *unit,
                           enum rf_encoding encoding)
{
    const uint64_t bytes =
        rf_form_bytes(rf_plan_wire(plan, unit->family), &unit->box);
    return (uint64_t)((double)bytes *
                      rf_update_least(plan, unit->family, encoding));
}

/* Lists the nodes that hold unit task u in `nodes`, and marks them in `seen`
 * with u + 1. False: the capacity of one was not measured (0). */
static bool list_holders(const struct rf_plan *plan,
                         const struct rf_unit_tasks *units, size_t u,
                         const double *capacity, size_t *seen, uint32_t *nodes,
                         uint32_t *n)
{
    const struct rf_unit_task *unit = &units->of[u];
    bool measured = true;
    *n = 0;
    for (uint32_t i = 0; i < unit->n_src; i++) {
        const uint32_t rank = units->holders[unit->first_src + i].rank;
        const uint32_t node = plan->world->ranks[rank].node;
        if (seen[node] != u + 1) {
            seen[node] = u + 1;
            nodes[(*n)++] = node;
            measured &= capacity[node] > 0;
        }
    }
    return measured;
}

/* Collects the nodes that hold each unit task and those that need it. Holders
 * whose link was not measured set no bound. */
static void collect(const struct rf_plan *plan,
                    const struct rf_unit_tasks *units,
                    enum rf_encoding encoding, const double *link_out,
                    double *in, struct demands *out)
{
    const struct rf_world *world = plan->world;
    size_t *seen = rf_xcalloc(world->n_nodes, sizeof(*seen));
    uint32_t *nodes = rf_xcalloc(world->n_nodes, sizeof(*nodes));
    RF_PUSH(out->first, out->n_first, out->first_capacity, 0);
    for (size_t u = 0; u < units->n; u++) {
        const struct rf_unit_task *unit = &units->of[u];
        const uint64_t bytes = link_bytes(plan, unit, encoding);
        bool leaves = false;
        uint32_t n;
        const bool measured =
            list_holders(plan, units, u, link_out, seen, nodes, &n);
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            uint32_t rank = units->holders[unit->first_dst + i].rank;
            uint32_t node = world->ranks[rank].node;
            if (seen[node] != u + 1) {
                seen[node] = u + 1;
                in[node] += (double)bytes;
                leaves = true;
            }
        }
        if (leaves && measured) {
            add_demand(out, nodes, n, bytes);
        }
    }
    free(seen);
    free(nodes);
}

/* Adds to a set of nodes all that could take over part of its sending. */
static void close_set(const struct rf_fair_shares *shares, bool *set)
{
    bool grown = true;
    while (grown) {
        grown = false;
        for (uint32_t d = 0; d < shares->n_demands; d++) {
            bool sent = false, whole = true;
            for (uint32_t e = shares->first[d]; e < shares->first[d + 1]; e++) {
                sent |= set[shares->to[e]] && shares->amount[e] > 0;
                whole &= set[shares->to[e]];
            }
            for (uint32_t e = shares->first[d];
                 sent && !whole && e < shares->first[d + 1]; e++) {
                set[shares->to[e]] = grown = true;
            }
        }
    }
}

/* What the bound of one node, and that of several, is called. */
struct wording {
    const char *one, *many, *end;
};

/* The bound of the slowest nodes under the best division: `node` and those that
 * share with it. */
static void bound_set(const struct rf_fair_shares *shares, const double *rate,
                      const struct wording *as, const char *const *names,
                      uint32_t node, struct rf_bound *bound)
{
    bool *set = rf_xcalloc(shares->n_suppliers, sizeof(*set));
    double bytes = 0, capacity = 0;
    uint32_t count = 0, first = 0;
    set[node] = true;
    close_set(shares, set);
    for (uint32_t n = shares->n_suppliers; n-- > 0;) {
        if (set[n]) {
            bytes += (double)shares->load[n];
            capacity += rate[n];
            count++;
            first = n;
        }
    }
    if (count == 1) {
        raise_bound(bound, bytes, capacity, "%s %s%s", as->one, names[first],
                    as->end);
    } else {
        raise_bound(bound, bytes, capacity, "%s %s and %u more%s", as->many,
                    names[first], count - 1, as->end);
    }
    free(set);
}

/* The time of the best division of the bytes, at a rate for each node; none
 * without bytes. */
static void bound_division(const struct demands *all, const double *rate,
                           uint32_t n_nodes, const struct wording *as,
                           const char *const *names, struct rf_bound *bound)
{
    uint32_t *weight = rf_xcalloc(n_nodes, sizeof(*weight)), slowest = 0;
    struct rf_fair_shares shares = {
        .n_demands = (uint32_t)all->n,
        .n_suppliers = n_nodes,
        .demand = all->bytes,
        .first = all->first,
        .to = all->nodes,
        .weight = weight,
        .amount = rf_xcalloc(all->n_nodes, sizeof(uint64_t)),
        .load = rf_xcalloc(n_nodes, sizeof(uint64_t)),
    };
    double most = 0, longest = 0;
    if (all->n == 0) {
        goto free;
    }
    for (uint32_t n = 0; n < n_nodes; n++) {
        most = RF_MAX(most, rate[n]);
    }
    for (uint32_t n = 0; n < n_nodes; n++) {
        weight[n] = (uint32_t)(rate[n] / most * RF_FAIR_SHARES_WEIGHT_MAX);
        weight[n] = RF_MAX(weight[n], 1);
    }
    rf_fair_shares_solve(&shares);
    for (uint32_t n = 0; n < n_nodes; n++) {
        const double time = rate[n] > 0 ? (double)shares.load[n] / rate[n] : 0;
        slowest = time > longest ? n : slowest;
        longest = RF_MAX(longest, time);
    }
    bound_set(&shares, rate, as, names, slowest, bound);
free:
    free(weight);
    free(shares.amount);
    free(shares.load);
}

/* L1, L2: the bytes that have to cross the nodes' links. */
static void bound_links(const struct rf_plan *plan,
                        const struct rf_unit_tasks *units,
                        enum rf_encoding encoding,
                        const struct rf_capacities *links,
                        const char *const *names, struct rf_bound *bound)
{
    static const struct wording sending = {"link", "links of", " out"};
    struct demands out = {.n = 0};
    double *in = rf_xcalloc(links->n_nodes, sizeof(*in));
    double *link_out = rf_xcalloc(links->n_nodes, sizeof(*link_out));
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        link_out[n] = rf_capacities_capacity(links, n, true);
    }
    collect(plan, units, encoding, link_out, in, &out);
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        raise_bound(bound, in[n], rf_capacities_capacity(links, n, false),
                    "link %s in", names[n]);
    }
    bound_division(&out, link_out, links->n_nodes, &sending, names, bound);
    free_demands(&out);
    free(in);
    free(link_out);
}

/* Whether some receiver is on no node of those that list_holders() marked or,
 * where ranks of a node send, holds nothing of the unit task itself. */
static bool is_sent(const struct rf_plan *plan,
                    const struct rf_unit_tasks *units, size_t u,
                    bool sends_inside, const size_t *seen)
{
    const struct rf_unit_task *unit = &units->of[u];
    const struct rf_holder *src = &units->holders[unit->first_src];
    for (uint32_t i = 0; i < unit->n_dst; i++) {
        const uint32_t rank = units->holders[unit->first_dst + i].rank;
        if (seen[plan->world->ranks[rank].node] != u + 1 ||
            (sends_inside && !holds(src, unit->n_src, rank))) {
            return true;
        }
    }
    return false;
}

/* C1: the weights that have to be compared with their base, on a node that
 * holds them. Where all of a tensor changes there is nothing to find, and what
 * stays in place is not compared; nor is with auto what is copied on its node.
 */
static void bound_scans(const struct rf_plan *plan,
                        const struct rf_unit_tasks *units,
                        enum rf_encoding encoding,
                        const struct rf_capacities *links,
                        const char *const *names, struct rf_bound *bound)
{
    static const struct wording comparing = {"scan of", "scans of", ""};
    const struct rf_world *world = plan->world;
    size_t *seen = rf_xcalloc(world->n_nodes, sizeof(*seen));
    uint32_t *nodes = rf_xcalloc(world->n_nodes, sizeof(*nodes)), n;
    double *rate = rf_xcalloc(world->n_nodes, sizeof(*rate));
    struct demands scans = {.n = 0};
    memcpy(rate, links->scan_gbytes_per_s, world->n_nodes * sizeof(*rate));
    for (uint32_t r = 0; links->left_bytes != NULL && r < world->n_ranks; r++) {
        rate[world->ranks[r].node] *= links->left_bytes[r] == 0;
    }
    RF_PUSH(scans.first, scans.n_first, scans.first_capacity, 0);
    for (size_t u = 0; u < units->n; u++) {
        const struct rf_unit_task *unit = &units->of[u];
        const struct rf_form form = rf_plan_form(plan, RF_TRAIN, unit->family);
        if (rf_update_least(plan, unit->family, encoding) < 1 &&
            list_holders(plan, units, u, rate, seen, nodes, &n) &&
            (encoding != RF_ENCODING_AUTO ||
             is_sent(plan, units, u, links->sends_inside, seen))) {
            add_demand(&scans, nodes, n, rf_form_bytes(form, &unit->box));
        }
    }
    bound_division(&scans, rate, world->n_nodes, &comparing, names, bound);
    free_demands(&scans);
    free(rate);
    free(nodes);
    free(seen);
}

/* Q1: the weights that have to be converted: by a node that holds them, or by
 * every rank that needs them. */
static void bound_conversions(const struct rf_plan *plan,
                              const struct rf_unit_tasks *units,
                              const struct rf_capacities *links,
                              const char *const *names, struct rf_bound *bound)
{
    static const struct wording converting = {"conversion on", "conversion on",
                                              ""};
    const struct rf_world *world = plan->world;
    const double *rate = links->convert_gbytes_per_s;
    size_t *seen = rf_xcalloc(world->n_nodes, sizeof(*seen));
    uint32_t *nodes = rf_xcalloc(world->n_nodes, sizeof(*nodes)), n;
    double *arrived = rf_xcalloc(world->n_nodes, sizeof(*arrived));
    struct demands sent = {.n = 0};
    RF_PUSH(sent.first, sent.n_first, sent.first_capacity, 0);
    for (size_t u = 0; u < units->n; u++) {
        const struct rf_unit_task *unit = &units->of[u];
        const bool sends = rf_plan_is_converted(plan);
        const struct rf_holder *dst = &units->holders[unit->first_dst];
        const double bytes = rf_conversion_bytes(plan, unit, dst[0].rank);
        for (uint32_t i = 0; !sends && i < unit->n_dst; i++) {
            arrived[world->ranks[dst[i].rank].node] +=
                rf_conversion_bytes(plan, unit, dst[i].rank);
        }
        if (sends && bytes > 0 &&
            list_holders(plan, units, u, rate, seen, nodes, &n)) {
            add_demand(&sent, nodes, n, (uint64_t)bytes);
        }
    }
    for (uint32_t node = 0; node < world->n_nodes; node++) {
        raise_bound(bound, arrived[node], rate[node], "conversion on %s",
                    names[node]);
    }
    bound_division(&sent, rate, world->n_nodes, &converting, names, bound);
    free_demands(&sent);
    free(arrived);
    free(nodes);
    free(seen);
}

/* Q2: without "overlap" nothing moves before the first sender has converted, or
 * the receiver of the last byte converts after it. */
static void add_conversion(const struct rf_plan *plan,
                           const struct rf_unit_tasks *units,
                           const struct rf_capacities *links,
                           struct rf_bound *bound)
{
    const size_t length = strlen(bound->resource);
    struct rf_conversion_times times;
    if (rf_spec_quantize(plan->spec)->overlaps || bound->ms <= 0) {
        return;
    }
    rf_conversion_times(plan, units, links->convert_gbytes_per_s, true, &times);
    if (times.least_ms > 0) {
        bound->ms += times.least_ms;
        snprintf(bound->resource + length, sizeof(bound->resource) - length,
                 " and conversion");
    }
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

/* `schedule` NULL: for any strategy. */
static enum rf_status
find_bound(const struct rf_plan *plan, const struct rf_schedule *schedule,
           enum rf_encoding encoding, const struct rf_capacities *links,
           const char *const *names, struct rf_bound *out, struct rf_err *err)
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
    bound_links(plan, &units, encoding, links, names, &bound);
    if (encoding != RF_ENCODING_DENSE) {
        bound_scans(plan, &units, encoding, links, names, &bound);
    } else {
        copied_make(plan, &units, links, &copied);
        bound_memory(plan, &copied, links, names, &bound);
        if (schedule != NULL) {
            bound_copies(plan, schedule, &copied, links, names, &bound);
            bound_traffic(schedule, links, names, &bound);
        }
        copied_free(&copied);
    }
    if (rf_spec_quantize(plan->spec)->format != NULL) {
        add_conversion(plan, &units, links, &bound);
        bound_conversions(plan, &units, links, names, &bound);
    }
    rf_unit_tasks_free(&units);
    *out = bound;
    return RF_OK;
}

enum rf_status rf_bounds_any(const struct rf_plan *plan,
                             enum rf_encoding encoding,
                             const struct rf_capacities *links,
                             const char *const *node_names,
                             struct rf_bound *out, struct rf_err *err)
{
    return find_bound(plan, NULL, encoding, links, node_names, out, err);
}

enum rf_status rf_bounds_schedule(const struct rf_plan *plan,
                                  const struct rf_schedule *schedule,
                                  const struct rf_capacities *links,
                                  const char *const *node_names,
                                  struct rf_bound *out, struct rf_err *err)
{
    return find_bound(plan, schedule, RF_ENCODING_DENSE, links, node_names, out,
                      err);
}

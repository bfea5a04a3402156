/*
 * Decomposition by minimum cuts. A problem is a set of demands and the
 * suppliers left to them. Let the level be their average load per weight. If a
 * maximum flow with that capacity at every supplier, times its weight, meets
 * all demands, the loads are even and the problem is solved. Otherwise a
 * minimum cut separates the demands that their suppliers can only meet above
 * the level from the rest; in the best division these two parts share no
 * suppliers (no flow crosses the cut), so each is solved separately. Both parts
 * are smaller, so this ends.
 *
 * The maximum flow is Dinic's on the bipartite graph; residual edges lead from
 * a supplier back to the demands that it serves.
 */
#include "planner/assign/fair_shares.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"

#define UNSEEN UINT32_MAX

/* Part of the problem still to solve: slices of `demands` and `suppliers`. */
struct subproblem {
    uint32_t first_demand, n_demands;
    uint32_t first_supplier, n_suppliers;
};

struct solver {
    struct rf_fair_shares *shares;
    uint32_t *demands, *suppliers; /* permuted, parts are slices */
    uint32_t *part_of;             /* per supplier */
    uint32_t current;              /* the part being solved */
    uint64_t *capacity;            /* per supplier, at the part's level */
    uint64_t *missing;             /* per demand, not yet met */
    /* edges by supplier */
    uint32_t *back_first, *back_edge, *demand_of;
    /* breadth-first search and depth-first search */
    uint32_t *demand_depth, *supplier_depth;
    uint32_t *demand_next, *supplier_next;
    uint32_t *queue, *path;
};

static void free_solver(struct solver *s)
{
    free(s->demands);
    free(s->suppliers);
    free(s->part_of);
    free(s->capacity);
    free(s->missing);
    free(s->back_first);
    free(s->back_edge);
    free(s->demand_of);
    free(s->demand_depth);
    free(s->supplier_depth);
    free(s->demand_next);
    free(s->supplier_next);
    free(s->queue);
    free(s->path);
}

static void make_solver(struct solver *s)
{
    const struct rf_fair_shares *shares = s->shares;
    uint32_t n = shares->n_demands, m = shares->n_suppliers;
    uint32_t edges = shares->first[n];
    uint32_t **arrays[] = {
        &s->demands,       &s->suppliers,      &s->part_of,
        &s->back_first,    &s->back_edge,      &s->demand_of,
        &s->demand_depth,  &s->supplier_depth, &s->demand_next,
        &s->supplier_next, &s->queue,          &s->path,
    };
    const size_t sizes[] = {n, m, m, (size_t)m + 1,          edges, edges, n, m,
                            n, m, n, 2 * ((size_t)n + m) + 2};
    for (size_t i = 0; i < RF_ARRAY_SIZE(arrays); i++) {
        *arrays[i] = rf_xcalloc(sizes[i], sizeof(uint32_t));
    }
    s->missing = rf_xcalloc(n, sizeof(*s->missing));
    s->capacity = rf_xcalloc(m, sizeof(*s->capacity));
}

static void index_edges(struct solver *s)
{
    const struct rf_fair_shares *shares = s->shares;
    for (uint32_t d = 0; d < shares->n_demands; d++) {
        for (uint32_t e = shares->first[d]; e < shares->first[d + 1]; e++) {
            s->demand_of[e] = d;
            s->back_first[shares->to[e] + 1]++;
            shares->amount[e] = 0;
        }
    }
    for (uint32_t r = 0; r < shares->n_suppliers; r++) {
        s->back_first[r + 1] += s->back_first[r];
        s->supplier_next[r] = s->back_first[r];
        shares->load[r] = 0;
    }
    for (uint32_t e = 0; e < shares->first[shares->n_demands]; e++) {
        s->back_edge[s->supplier_next[shares->to[e]]++] = e;
    }
}

/* Sets depths from the demands of `part` that miss something; returns whether a
 * supplier below its capacity was reached. */
static bool search(struct solver *s, const struct subproblem *part)
{
    const struct rf_fair_shares *shares = s->shares;
    uint32_t head = 0, tail = 0;
    bool reached = false;
    for (uint32_t i = 0; i < part->n_suppliers; i++) {
        s->supplier_depth[s->suppliers[part->first_supplier + i]] = UNSEEN;
    }
    for (uint32_t i = 0; i < part->n_demands; i++) {
        uint32_t d = s->demands[part->first_demand + i];
        s->demand_depth[d] = s->missing[d] > 0 ? 0 : UNSEEN;
        if (s->missing[d] > 0) {
            s->queue[tail++] = d;
        }
    }
    while (head < tail) {
        uint32_t d = s->queue[head++];
        for (uint32_t e = shares->first[d]; e < shares->first[d + 1]; e++) {
            uint32_t r = shares->to[e];
            if (s->part_of[r] != s->current || s->supplier_depth[r] != UNSEEN) {
                continue;
            }
            s->supplier_depth[r] = s->demand_depth[d] + 1;
            if (shares->load[r] < s->capacity[r]) {
                reached = true;
                continue;
            }
            for (uint32_t b = s->back_first[r]; b < s->back_first[r + 1]; b++) {
                uint32_t other = s->demand_of[s->back_edge[b]];
                if (shares->amount[s->back_edge[b]] > 0 &&
                    s->demand_depth[other] == UNSEEN) {
                    s->demand_depth[other] = s->supplier_depth[r] + 1;
                    s->queue[tail++] = other;
                }
            }
        }
    }
    return reached;
}

/* Moves as much as possible along path[0 … length): edges, forward at even
 * places, taken back at odd ones. */
static void push_path(struct solver *s, uint32_t root, uint32_t length)
{
    struct rf_fair_shares *shares = s->shares;
    uint32_t end = shares->to[s->path[length - 1]];
    uint64_t bytes =
        RF_MIN(s->missing[root], s->capacity[end] - shares->load[end]);
    for (uint32_t i = 1; i < length; i += 2) {
        bytes = RF_MIN(bytes, shares->amount[s->path[i]]);
    }
    for (uint32_t i = 0; i < length; i++) {
        if (i % 2 == 0) {
            shares->amount[s->path[i]] += bytes;
        } else {
            shares->amount[s->path[i]] -= bytes;
        }
    }
    shares->load[end] += bytes;
    s->missing[root] -= bytes;
}

/* Steps forward from demand `d` after path[0 … length): appends the edge. False
 * at a dead end. */
static bool step_forward(struct solver *s, uint32_t d, uint32_t length)
{
    const struct rf_fair_shares *shares = s->shares;
    for (; s->demand_next[d] < shares->first[d + 1]; s->demand_next[d]++) {
        uint32_t e = s->demand_next[d], r = shares->to[e];
        if (s->part_of[r] == s->current &&
            s->supplier_depth[r] == s->demand_depth[d] + 1) {
            s->path[length] = e;
            return true;
        }
    }
    return false;
}

/* Steps back from supplier `r` to a demand that it serves. */
static bool step_back(struct solver *s, uint32_t r, uint32_t length)
{
    const struct rf_fair_shares *shares = s->shares;
    for (; s->supplier_next[r] < s->back_first[r + 1]; s->supplier_next[r]++) {
        uint32_t e = s->back_edge[s->supplier_next[r]];
        if (shares->amount[e] > 0 &&
            s->demand_depth[s->demand_of[e]] == s->supplier_depth[r] + 1) {
            s->path[length] = e;
            return true;
        }
    }
    return false;
}

/* Augments all shortest paths from `root`, a demand. */
static void augment_from(struct solver *s, uint32_t root)
{
    struct rf_fair_shares *shares = s->shares;
    uint32_t length = 0;
    while (s->missing[root] > 0) {
        if (length % 2 == 0) {
            uint32_t d = length == 0 ? root : s->demand_of[s->path[length - 1]];
            if (step_forward(s, d, length)) {
                length++;
            } else if (length == 0) {
                return;
            } else {
                /* Dead end: the previous supplier tries its next demand. */
                s->supplier_next[shares->to[s->path[--length]]]++;
            }
            continue;
        }
        uint32_t r = shares->to[s->path[length - 1]];
        if (shares->load[r] < s->capacity[r]) {
            push_path(s, root, length);
            length = 0;
        } else if (step_back(s, r, length)) {
            length++;
        } else {
            length--;
            s->demand_next[s->demand_of[s->path[length]]]++;
        }
    }
}

/* Finds a maximum flow with the capacity of each supplier of the part; returns
 * whether it meets all demands. If not, the depths give the minimum cut. */
static bool fill(struct solver *s, const struct subproblem *part)
{
    const struct rf_fair_shares *shares = s->shares;
    while (search(s, part)) {
        for (uint32_t i = 0; i < part->n_demands; i++) {
            uint32_t d = s->demands[part->first_demand + i];
            s->demand_next[d] = shares->first[d];
        }
        for (uint32_t i = 0; i < part->n_suppliers; i++) {
            uint32_t r = s->suppliers[part->first_supplier + i];
            s->supplier_next[r] = s->back_first[r];
        }
        for (uint32_t i = 0; i < part->n_demands; i++) {
            uint32_t d = s->demands[part->first_demand + i];
            if (s->demand_depth[d] == 0) {
                augment_from(s, d);
            }
        }
    }
    for (uint32_t i = 0; i < part->n_demands; i++) {
        if (s->missing[s->demands[part->first_demand + i]] > 0) {
            return false;
        }
    }
    return true;
}

/* Moves the members with a depth to the front; returns their number. */
static uint32_t divide(uint32_t *members, uint32_t n, const uint32_t *depth)
{
    uint32_t front = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (depth[members[i]] != UNSEEN) {
            uint32_t moved = members[i];
            members[i] = members[front];
            members[front++] = moved;
        }
    }
    return front;
}

static uint32_t weight_of(const struct rf_fair_shares *shares,
                          uint32_t supplier)
{
    return shares->weight != NULL ? shares->weight[supplier] : 1;
}

/* Sets the capacities of a part with demand `total`: a share by weight, rounded
 * up. No product exceeds 64 bits: a remainder is below 2^43, a weight at most
 * 2^20. */
static void set_capacities(struct solver *s, const struct subproblem *part,
                           uint64_t total)
{
    uint64_t weights = 0;
    for (uint32_t i = 0; i < part->n_suppliers; i++) {
        weights += weight_of(s->shares, s->suppliers[part->first_supplier + i]);
    }
    for (uint32_t i = 0; i < part->n_suppliers; i++) {
        uint32_t r = s->suppliers[part->first_supplier + i];
        uint64_t weight = weight_of(s->shares, r);
        s->capacity[r] = total / weights * weight +
                         rf_div_up(total % weights * weight, weights);
    }
}

static void start_part(struct solver *s, const struct subproblem *part)
{
    struct rf_fair_shares *shares = s->shares;
    uint64_t total = 0;
    s->current++;
    for (uint32_t i = 0; i < part->n_suppliers; i++) {
        uint32_t r = s->suppliers[part->first_supplier + i];
        s->part_of[r] = s->current;
        shares->load[r] = 0;
    }
    for (uint32_t i = 0; i < part->n_demands; i++) {
        uint32_t d = s->demands[part->first_demand + i];
        s->missing[d] = shares->demand[d];
        total += shares->demand[d];
        for (uint32_t e = shares->first[d]; e < shares->first[d + 1]; e++) {
            shares->amount[e] = 0;
        }
    }
    set_capacities(s, part, total);
}

static void solve_parts(struct solver *s, struct subproblem whole)
{
    struct subproblem *stack = NULL;
    size_t depth = 0, cap = 0;
    RF_PUSH(stack, depth, cap, whole);
    while (depth > 0) {
        struct subproblem part = stack[--depth], tight, rest;
        if (part.n_demands == 0) {
            continue;
        }
        start_part(s, &part);
        if (fill(s, &part)) {
            continue;
        }
        tight = rest = part;
        tight.n_demands = divide(s->demands + part.first_demand, part.n_demands,
                                 s->demand_depth);
        tight.n_suppliers = divide(s->suppliers + part.first_supplier,
                                   part.n_suppliers, s->supplier_depth);
        rest.first_demand += tight.n_demands;
        rest.n_demands -= tight.n_demands;
        rest.first_supplier += tight.n_suppliers;
        rest.n_suppliers -= tight.n_suppliers;
        RF_PUSH(stack, depth, cap, rest);
        RF_PUSH(stack, depth, cap, tight);
    }
    free(stack);
}

uint64_t rf_fair_shares_scale(uint64_t load, uint32_t from, uint32_t to)
{
    uint64_t whole, part = load % from * to / from;
    if (!rf_mul_u64(load / from, to, &whole) ||
        !rf_add_u64(whole, part, &whole)) {
        return UINT64_MAX;
    }
    return whole;
}

void rf_fair_shares_find_most(struct rf_fair_shares *shares)
{
    shares->max_load = 0;
    shares->max_weight = 1;
    for (uint32_t r = 0; r < shares->n_suppliers; r++) {
        uint32_t weight = weight_of(shares, r);
        if (shares->load[r] > rf_fair_shares_scale(shares->max_load,
                                                   shares->max_weight,
                                                   weight)) {
            shares->max_load = shares->load[r];
            shares->max_weight = weight;
        }
    }
}

void rf_fair_shares_solve(struct rf_fair_shares *shares)
{
    struct solver s = {.shares = shares};
    struct subproblem whole = {.n_suppliers = 0};
    make_solver(&s);
    index_edges(&s);
    for (uint32_t d = 0; d < shares->n_demands; d++) {
        if (shares->demand[d] > 0) {
            s.demands[whole.n_demands++] = d;
        }
    }
    for (uint32_t r = 0; r < shares->n_suppliers; r++) {
        if (s.back_first[r + 1] > s.back_first[r]) {
            s.suppliers[whole.n_suppliers++] = r;
        }
    }
    solve_parts(&s, whole);
    rf_fair_shares_find_most(shares);
    free_solver(&s);
}

/*
 * Demand as problems of fair shares (shares.h): among ranks, where a set's
 * members on a node, all its members, or one rank alone may serve; and among
 * the nodes that have members.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/assign_internal.h"
#include "planner/shares.h"

uint32_t rf_assign_positions(const struct rf_shards *shards)
{
    const struct rf_group *last;
    if (shards->n_groups == 0) {
        return 0;
    }
    last = &shards->groups[shards->n_groups - 1];
    return last->first + last->count;
}

void rf_division_free(struct rf_division *division)
{
    free(division->near_amount);
    free(division->load);
    *division = (struct rf_division){.near = NULL};
}

/* The edges of `division` as a problem of shares. */
static void list_edges(const struct rf_assign *a,
                       const struct rf_division *division, uint64_t *demand,
                       uint32_t *first, uint32_t *to)
{
    const struct rf_shards *source = a->in.source;
    uint32_t n = 0, edges = 0;
    for (uint32_t g = 0; g < source->n_groups; g++) {
        const struct rf_group *group = &source->groups[g];
        demand[n] = division->near ? division->near[g] : 0;
        for (uint32_t i = 0; i < group->count; i++) {
            to[edges++] = source->ranks[group->first + i];
        }
        first[++n] = edges;
    }
    for (uint32_t set = 0; set < source->n_sets; set++) {
        const struct rf_group *from = &source->groups[source->set_group[set]];
        const struct rf_group *last =
            &source->groups[source->set_group[set + 1] - 1];
        demand[n] = division->far ? division->far[set] : 0;
        for (uint32_t i = from->first; i < last->first + last->count; i++) {
            to[edges++] = source->ranks[i];
        }
        first[++n] = edges;
    }
    for (uint32_t r = 0; r < a->in.world->n_ranks; r++) {
        demand[n] = division->forced ? division->forced[r] : 0;
        to[edges++] = r;
        first[++n] = edges;
    }
}

enum rf_status rf_assign_divide_ranks(const struct rf_assign *a,
                                      struct rf_division *division,
                                      struct rf_err *err)
{
    size_t positions = rf_assign_positions(a->in.source);
    size_t ranks = a->in.world->n_ranks;
    size_t n = (size_t)a->in.source->n_groups + a->in.source->n_sets + ranks;
    size_t edges = (size_t)2 * positions + ranks;
    uint64_t *demand = rf_calloc(n, sizeof(*demand));
    uint32_t *first = rf_calloc(n + 1, sizeof(*first));
    uint32_t *to = rf_calloc(edges, sizeof(*to));
    enum rf_status status = RF_ERR_NOMEM;
    division->near_amount = rf_calloc(edges, sizeof(uint64_t));
    division->far_amount =
        division->near_amount ? division->near_amount + positions : NULL;
    division->load = rf_calloc(ranks, sizeof(*division->load));
    if (demand && first && to && division->near_amount && division->load &&
        edges < UINT32_MAX) {
        struct rf_shares shares = {
            .n_demands = (uint32_t)n,
            .n_suppliers = (uint32_t)ranks,
            .demand = demand,
            .first = first,
            .to = to,
            .amount = division->near_amount,
            .load = division->load,
        };
        list_edges(a, division, demand, first, to);
        status = rf_shares_solve(&shares, err);
        division->max_load = shares.max_load;
    }
    free(demand);
    free(first);
    free(to);
    return status;
}

enum rf_status rf_assign_divide_nodes(const struct rf_assign *a,
                                      uint64_t *share, uint64_t *max_load,
                                      struct rf_err *err)
{
    const struct rf_shards *source = a->in.source;
    uint32_t *to = rf_calloc(source->n_groups, sizeof(*to));
    uint64_t *load = rf_calloc(a->in.world->n_nodes + 1, sizeof(*load));
    enum rf_status status = RF_ERR_NOMEM;
    if (to && load) {
        struct rf_shares shares = {
            .n_demands = source->n_sets,
            .n_suppliers = a->in.world->n_nodes,
            .demand = a->far,
            .first = source->set_group,
            .to = to,
            .amount = share,
            .load = load,
        };
        for (uint32_t g = 0; g < source->n_groups; g++) {
            to[g] = source->groups[g].node;
        }
        status = rf_shares_solve(&shares, err);
        *max_load = shares.max_load;
    }
    free(to);
    free(load);
    return status;
}

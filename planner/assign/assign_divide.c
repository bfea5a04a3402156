/*
 * Demand as problems of fair shares (fair_shares.h): among ranks (the suppliers
 * are a set's members on a node, all its members, or one rank), and among the
 * nodes with members.
 */
#include "planner/assign/assign_divide.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/assign/fair_shares.h"

uint32_t rf_assign_positions(const struct rf_shards *shards)
{
    const struct rf_group *last;
    if (shards->n_groups == 0) {
        return 0;
    }
    last = &shards->groups[shards->n_groups - 1];
    return last->first + last->count;
}

void rf_demand_division_free(struct rf_demand_division *division)
{
    free(division->near_amount);
    free(division->load);
    *division = (struct rf_demand_division){.near = NULL};
}

/* Lists the edges of `division` as a problem of shares. */
static void list_edges(const struct rf_assign_input *in,
                       const struct rf_demand_division *division,
                       uint64_t *demand, uint32_t *first, uint32_t *to)
{
    const struct rf_shards *source = in->source;
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
    for (uint32_t r = 0; r < in->world->n_ranks; r++) {
        demand[n] = division->forced ? division->forced[r] : 0;
        to[edges++] = r;
        first[++n] = edges;
    }
}

void rf_assign_divide_ranks(const struct rf_assign_input *in,
                            struct rf_demand_division *division)
{
    size_t positions = rf_assign_positions(in->source);
    size_t ranks = in->world->n_ranks;
    size_t n = (size_t)in->source->n_groups + in->source->n_sets + ranks;
    size_t edges = (size_t)2 * positions + ranks;
    uint64_t *demand = rf_xcalloc(n, sizeof(*demand));
    uint32_t *first = rf_xcalloc(n + 1, sizeof(*first));
    uint32_t *to = rf_xcalloc(edges, sizeof(*to));
    division->near_amount = rf_xcalloc(edges, sizeof(uint64_t));
    division->far_amount = division->near_amount + positions;
    division->load = rf_xcalloc(ranks, sizeof(*division->load));
    struct rf_fair_shares shares = {
        .n_demands = (uint32_t)n,
        .n_suppliers = (uint32_t)ranks,
        .demand = demand,
        .first = first,
        .to = to,
        .weight = division->weight,
        .amount = division->near_amount,
        .load = division->load,
    };
    list_edges(in, division, demand, first, to);
    rf_fair_shares_solve(&shares);
    division->max_load = shares.max_load;
    division->max_weight = shares.max_weight;
    free(demand);
    free(first);
    free(to);
}

void rf_assign_divide_nodes(const struct rf_assign_input *in,
                            const uint64_t *far, uint64_t *share,
                            uint64_t *max_load)
{
    const struct rf_shards *source = in->source;
    uint32_t *to = rf_xcalloc(source->n_groups, sizeof(*to));
    uint64_t *load = rf_xcalloc(in->world->n_nodes + 1, sizeof(*load));
    struct rf_fair_shares shares = {
        .n_demands = source->n_sets,
        .n_suppliers = in->world->n_nodes,
        .demand = far,
        .first = source->set_group,
        .to = to,
        .amount = share,
        .load = load,
    };
    for (uint32_t g = 0; g < source->n_groups; g++) {
        to[g] = source->groups[g].node;
    }
    rf_fair_shares_solve(&shares);
    *max_load = shares.max_load;
    free(to);
    free(load);
}

void rf_nic_division_free(struct rf_nic_division *division)
{
    free(division->amount);
    free(division->load);
    *division = (struct rf_nic_division){.amount = NULL};
}

/* Gives the members of a set on one NIC equal parts of its share. `sum` and
 * `members` are by NIC, and 0 before and after. */
static void even_out(const struct rf_assign_input *in, uint32_t set,
                     uint64_t *amount, uint64_t *sum, uint32_t *members)
{
    const struct rf_shards *source = in->source;
    const struct rf_group *from = &source->groups[source->set_group[set]];
    const struct rf_group *last =
        &source->groups[source->set_group[set + 1] - 1];
    const uint32_t end = last->first + last->count;
    for (uint32_t i = from->first; i < end; i++) {
        uint32_t nic = in->weights->nic_of[source->ranks[i]];
        sum[nic] += amount[i];
        members[nic]++;
    }
    for (uint32_t i = from->first; i < end; i++) {
        uint32_t nic = in->weights->nic_of[source->ranks[i]];
        amount[i] = sum[nic] / members[nic];
        sum[nic] -= amount[i];
        members[nic]--;
    }
}

/* Solves far demand as a problem of shares among NICs. */
static void solve_nics(const struct rf_assign_input *in,
                       struct rf_fair_shares *shares)
{
    const struct rf_shards *source = in->source;
    size_t positions = rf_assign_positions(source);
    uint32_t *to = rf_xcalloc(positions, sizeof(*to));
    uint32_t *first = rf_xcalloc((size_t)source->n_sets + 1, sizeof(*first));
    uint32_t *members = rf_xcalloc(shares->n_suppliers, sizeof(*members));
    uint64_t *sum = rf_xcalloc(shares->n_suppliers, sizeof(*sum));
    for (uint32_t set = 0; set < source->n_sets; set++) {
        first[set] = source->groups[source->set_group[set]].first;
    }
    first[source->n_sets] = (uint32_t)positions;
    for (size_t i = 0; i < positions; i++) {
        to[i] = in->weights->nic_of[source->ranks[i]];
    }
    shares->first = first;
    shares->to = to;
    rf_fair_shares_solve(shares);
    for (uint32_t set = 0; set < source->n_sets; set++) {
        even_out(in, set, shares->amount, sum, members);
    }
    free(to);
    free(first);
    free(members);
    free(sum);
}

/* The same by the ranks' parts of their NICs, unless that keeps the busiest NIC
 * busy more than 0.4 % longer. */
static void prefer_even_ranks(const struct rf_assign_input *in,
                              const uint64_t *far, struct rf_fair_shares *nics)
{
    const struct rf_shards *source = in->source;
    struct rf_demand_division ranks = {.far = far, .weight = in->weights->rank};
    size_t positions = rf_assign_positions(source);
    uint64_t *load = rf_xcalloc(nics->n_suppliers, sizeof(*load));
    struct rf_fair_shares found = {
        .n_suppliers = nics->n_suppliers, .weight = nics->weight, .load = load};
    rf_assign_divide_ranks(in, &ranks);
    for (size_t i = 0; i < positions; i++) {
        load[in->weights->nic_of[source->ranks[i]]] += ranks.far_amount[i];
    }
    rf_fair_shares_find_most(&found);
    if (rf_fair_shares_scale(found.max_load, found.max_weight,
                             nics->max_weight) <=
        nics->max_load + nics->max_load / 250) {
        memcpy(nics->amount, ranks.far_amount, positions * sizeof(uint64_t));
        memcpy(nics->load, load, nics->n_suppliers * sizeof(uint64_t));
        nics->max_load = found.max_load;
        nics->max_weight = found.max_weight;
    }
    rf_demand_division_free(&ranks);
    free(load);
}

void rf_assign_divide_nics(const struct rf_assign_input *in,
                           const uint64_t *far, struct rf_nic_division *out)
{
    const struct rf_link_weights *weights = in->weights;
    out->amount =
        rf_xcalloc(rf_assign_positions(in->source), sizeof(*out->amount));
    out->load = rf_xcalloc(weights->n_nics, sizeof(*out->load));
    struct rf_fair_shares shares = {.n_demands = in->source->n_sets,
                                    .n_suppliers = weights->n_nics,
                                    .weight = weights->nic,
                                    .demand = far,
                                    .amount = out->amount,
                                    .load = out->load};
    solve_nics(in, &shares);
    prefer_even_ranks(in, far, &shares);
    out->max_load = shares.max_load;
    out->max_weight = shares.max_weight;
}

/*
 * Source choice in three steps.
 *
 * 1. Demand. The needs of all receivers are summed by possible senders: the
 *    members of a holder set on the receiver's node ("near") or, if there are
 *    none, all members ("far").
 * 2. Shares. Far demand is first divided among the nodes, so that the busiest
 *    node link carries as little as possible, then all demand among the ranks
 *    (fair_shares.h). If the node step costs the busiest rank more than 0.4 %,
 *    far demand is divided among the ranks directly.
 * 3. Lines. The members of a set form a line, each with its share; transfers
 *    are handed out along the line in order, so only those across the end of a
 *    share are cut, and not even those when one side may carry the whole
 *    without exceeding the busiest link by more than 0.4 %.
 *
 * With weights, near and far demand are divided separately, far demand among
 * NICs: copies inside a node do not use any NIC.
 */
#include "planner/assign/assign.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/assign/assign_divide.h"
#include "planner/assign/fair_shares.h"
#include "planner/layout/box.h"

struct rf_assign {
    struct rf_assign_input in;
    uint32_t *own_source; /* per rank: the source rank on its slot, or none */
    uint32_t *first_rank; /* per set: its lowest rank */
    bool *has_sources;    /* per node */
    /* demand */
    uint64_t *near, *far; /* per group, per set */
    uint64_t *forced;     /* per rank: to another rank on its slot */
    uint64_t *remote;     /* per set: from any other rank */
    /* shares; the initial lines of every cursor */
    bool by_node;
    struct rf_turn_line *near_lines, *far_lines;
    struct rf_pool near_pool, far_pool;
    /* a rank's allowance beyond the end of a share; far_slack only if far
     * demand is divided separately */
    uint64_t *rank_slack, *far_slack;
    uint64_t node_slack;
};

void rf_assign_destroy(struct rf_assign *assign)
{
    if (assign == NULL) {
        return;
    }
    free(assign->own_source);
    free(assign->first_rank);
    free(assign->has_sources);
    free(assign->near);
    free(assign->far);
    free(assign->forced);
    free(assign->remote);
    free(assign->near_lines);
    free(assign->far_lines);
    free(assign->near_pool.owner);
    free(assign->near_pool.amount);
    free(assign->far_pool.owner);
    free(assign->far_pool.amount);
    free(assign->rank_slack);
    free(assign->far_slack);
    free(assign);
}

static void allocate(struct rf_assign *a)
{
    const struct rf_shards *source = a->in.source;
    size_t ranks = a->in.world->n_ranks, sets = source->n_sets;
    size_t groups = source->n_groups, positions = rf_assign_positions(source);
    a->own_source = rf_xcalloc(ranks, sizeof(*a->own_source));
    a->first_rank = rf_xcalloc(sets, sizeof(*a->first_rank));
    a->has_sources = rf_xcalloc(a->in.world->n_nodes, sizeof(bool));
    a->near = rf_xcalloc(groups, sizeof(*a->near));
    a->far = rf_xcalloc(sets, sizeof(*a->far));
    a->forced = rf_xcalloc(ranks, sizeof(*a->forced));
    a->remote = rf_xcalloc(sets, sizeof(*a->remote));
    a->near_lines = rf_xcalloc(groups, sizeof(*a->near_lines));
    a->far_lines = rf_xcalloc(sets, sizeof(*a->far_lines));
    a->near_pool.owner = rf_xcalloc(positions, sizeof(uint32_t));
    a->near_pool.amount = rf_xcalloc(positions, sizeof(uint64_t));
    a->far_pool.owner = rf_xcalloc(positions, sizeof(uint32_t));
    a->far_pool.amount = rf_xcalloc(positions, sizeof(uint64_t));
    a->rank_slack = rf_xcalloc(ranks, sizeof(*a->rank_slack));
    a->far_slack = rf_xcalloc(a->in.weights->rank != NULL ? ranks : 0,
                              sizeof(*a->far_slack));
}

struct seat {
    uint32_t node, slot, rank;
};

static int compare_seats(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    int order = RF_COMPARE(x->node, y->node);
    order = RF_THEN_BY(order, RF_COMPARE(x->slot, y->slot));
    return RF_THEN_BY(order, RF_COMPARE(x->rank, y->rank));
}

/* The source rank on each rank's slot: itself, or its neighbour there if
 * trainer and engine are separate. */
static void find_own_sources(struct rf_assign *a)
{
    const struct rf_world *world = a->in.world;
    struct seat *seats = rf_xcalloc(world->n_ranks, sizeof(*seats));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const struct rf_rank *rank = &world->ranks[r];
        seats[r] = (struct seat){rank->node, rank->slot, r};
        a->own_source[r] = rank->index[RF_TRAIN] != RF_NONE ? r : RF_NONE;
    }
    qsort(seats, world->n_ranks, sizeof(*seats), compare_seats);
    for (uint32_t i = 0, end; i < world->n_ranks; i = end) {
        uint32_t source = RF_NONE;
        for (end = i;
             end < world->n_ranks && seats[end].node == seats[i].node &&
             seats[end].slot == seats[i].slot;
             end++) {
            uint32_t own = a->own_source[seats[end].rank];
            source = source == RF_NONE ? own : source;
        }
        for (uint32_t k = i; k < end; k++) {
            uint32_t *own = &a->own_source[seats[k].rank];
            *own = *own == RF_NONE ? source : *own;
        }
    }
    free(seats);
}

static void find_sources(struct rf_assign *a)
{
    const struct rf_shards *source = a->in.source;
    for (uint32_t g = 0; g < source->n_groups; g++) {
        a->has_sources[source->groups[g].node] = true;
    }
    for (uint32_t set = 0; set < source->n_sets; set++) {
        uint32_t lowest = UINT32_MAX;
        for (uint32_t g = source->set_group[set];
             g < source->set_group[set + 1]; g++) {
            lowest = RF_MIN(lowest, source->ranks[source->groups[g].first]);
        }
        a->first_rank[set] = lowest;
    }
}

void rf_assign_end(struct rf_assign_cursor *cursor)
{
    free(cursor->held);
    free(cursor->near_lines);
    free(cursor->far_lines);
    *cursor = (struct rf_assign_cursor){.held = NULL};
}

void rf_assign_start(const struct rf_assign *assign,
                     struct rf_assign_cursor *out)
{
    const struct rf_shards *source = assign->in.source;
    size_t near_bytes = source->n_groups * sizeof(struct rf_turn_line);
    size_t far_bytes = source->n_sets * sizeof(struct rf_turn_line);
    *out = (struct rf_assign_cursor){
        .assign = assign,
        .held = rf_xcalloc(source->n_shards, sizeof(*out->held)),
        .near_lines = rf_xcalloc(near_bytes, 1),
        .far_lines = rf_xcalloc(far_bytes, 1),
    };
    memcpy(out->near_lines, assign->near_lines, near_bytes);
    memcpy(out->far_lines, assign->far_lines, far_bytes);
}

void rf_assign_receiver(struct rf_assign_cursor *cursor, uint32_t rank)
{
    const struct rf_assign *a = cursor->assign;
    uint32_t own = a->own_source[rank];
    cursor->receiver = rank;
    if (own != RF_NONE) {
        uint32_t index = a->in.world->ranks[own].index[RF_TRAIN];
        uint32_t layout = a->in.source_layouts->of_index[index];
        for (size_t p = a->in.source->piece_first[layout];
             p < a->in.source->piece_first[layout + 1]; p++) {
            cursor->held[a->in.source->of_piece[p]] = rank + 1;
        }
    }
}

/* The members of a set on a node; NULL: none. */
static const struct rf_group *group_on(const struct rf_assign *a, uint32_t set,
                                       uint32_t node)
{
    return a->has_sources[node] ? rf_set_on_node(a->in.source, set, node)
                                : NULL;
}

/* Sums for one receiver while demand is added up. */
struct needs {
    uint64_t recv, node_recv;
};

static void add_demand(struct rf_assign *a,
                       const struct rf_assign_cursor *cursor, uint32_t shard,
                       uint64_t bytes, struct needs *needs)
{
    uint32_t rank = cursor->receiver, set = a->in.source->shards[shard].set;
    uint32_t node = a->in.world->ranks[rank].node;
    bool on_slot = cursor->held[shard] == rank + 1;
    const struct rf_group *group;
    if (on_slot && a->own_source[rank] == rank) {
        return;
    }
    needs->recv += bytes;
    a->remote[set] += bytes;
    if (on_slot) {
        a->forced[a->own_source[rank]] += bytes;
        return;
    }
    group = group_on(a, set, node);
    if (group != NULL) {
        a->near[group - a->in.source->groups] += bytes;
    } else {
        a->far[set] += bytes;
        needs->node_recv += bytes;
    }
}

/* Adds up the needs of the current receiver; false if the `total` of all
 * receivers reaches 2^63 bytes. */
static bool sum_receiver(struct rf_assign *a,
                         const struct rf_assign_cursor *cursor,
                         struct needs *needs, uint64_t *total)
{
    uint32_t index = a->in.world->ranks[cursor->receiver].index[RF_INFER];
    uint32_t layout = a->in.target_layouts->of_index[index];
    for (size_t p = a->in.target->piece_first[layout];
         p < a->in.target->piece_first[layout + 1]; p++) {
        uint32_t wanted = a->in.target->of_piece[p];
        for (size_t m = a->in.matches->first[wanted];
             m < a->in.matches->first[wanted + 1]; m++) {
            uint64_t bytes = a->in.match_bytes[m];
            if (!rf_add_u64(*total, bytes, total) || *total > INT64_MAX) {
                return false;
            }
            add_demand(a, cursor, a->in.matches->source[m], bytes, needs);
        }
    }
    return true;
}

/* Step 1 for all receivers, and the bounds of receiving. */
static enum rf_status sum_demand(struct rf_assign *a,
                                 struct rf_assign_bounds *bounds,
                                 struct rf_err *err)
{
    const struct rf_world *world = a->in.world;
    uint64_t *node_recv = rf_xcalloc(world->n_nodes + 1, sizeof(*node_recv));
    struct rf_assign_cursor cursor;
    enum rf_status status = RF_OK;
    uint64_t total = 0;
    rf_assign_start(a, &cursor);
    for (uint32_t r = 0; r < world->n_ranks && status == RF_OK; r++) {
        struct needs needs = {.recv = 0};
        if (world->ranks[r].index[RF_INFER] == RF_NONE) {
            continue;
        }
        rf_assign_receiver(&cursor, r);
        if (!sum_receiver(a, &cursor, &needs, &total)) {
            status =
                rf_err_set(err, RF_ERR_CONFIG,
                           "total bytes received by all ranks exceed 2^63 - 1");
        }
        bounds->recv = RF_MAX(bounds->recv, needs.recv);
        node_recv[world->ranks[r].node] += needs.node_recv;
    }
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        bounds->node_recv = RF_MAX(bounds->node_recv, node_recv[n]);
    }
    rf_assign_end(&cursor);
    free(node_recv);
    return status;
}

/* Makes the lines of step 3; `near` and `far` count the lines of each rank.
 * `share`: per group if far demand is divided by node, else NULL. */
static void form_lines(struct rf_assign *a, const uint64_t *near_amount,
                       const uint64_t *far_amount, const uint64_t *share,
                       uint32_t *near, uint32_t *far)
{
    const struct rf_shards *source = a->in.source;
    for (uint32_t g = 0; g < source->n_groups; g++) {
        const struct rf_group *group = &source->groups[g];
        if (share != NULL) {
            rf_turn_line_join(&a->far_lines[group->set], &a->far_pool, g, g,
                              share[g]);
        }
        for (uint32_t i = group->first; i < group->first + group->count; i++) {
            uint32_t rank = source->ranks[i];
            rf_turn_line_join(&a->near_lines[g], &a->near_pool, i, rank,
                              near_amount[i]);
            near[rank] += near_amount[i] > 0;
            if (share == NULL) {
                rf_turn_line_join(&a->far_lines[group->set], &a->far_pool, i,
                                  rank, far_amount[i]);
                far[rank] += far_amount[i] > 0;
            }
        }
    }
    a->by_node = share != NULL;
}

/* Sets each rank's allowance beyond a share's end in one of its `lines`. */
static void set_rank_slack(struct rf_assign *a,
                           const struct rf_demand_division *division,
                           const uint32_t *lines)
{
    uint64_t top = division->max_load + division->max_load / 250;
    for (uint32_t r = 0; r < a->in.world->n_ranks; r++) {
        uint64_t room = top - division->load[r];
        a->rank_slack[r] = room / ((uint64_t)2 * RF_MAX(lines[r], 1));
    }
}

/* The same for far lines, which share the rest of their NIC's capacity. */
static void set_far_slack(struct rf_assign *a,
                          const struct rf_nic_division *division,
                          const uint32_t *lines)
{
    const struct rf_link_weights *weights = a->in.weights;
    uint64_t top = division->max_load + division->max_load / 250;
    uint32_t *of_nic = rf_xcalloc(weights->n_nics, sizeof(*of_nic));
    for (uint32_t r = 0; r < a->in.world->n_ranks; r++) {
        of_nic[weights->nic_of[r]] += lines[r];
    }
    for (uint32_t r = 0; r < a->in.world->n_ranks; r++) {
        uint32_t nic = weights->nic_of[r];
        uint64_t most =
            rf_fair_shares_scale(top, division->max_weight, weights->nic[nic]);
        uint64_t room =
            most > division->load[nic] ? most - division->load[nic] : 0;
        a->far_slack[r] = room / ((uint64_t)2 * RF_MAX(of_nic[nic], 1));
    }
    free(of_nic);
}

/* Steps 2 and 3, with `share` from the node step. `near` has room for as many
 * entries as `share`, `lines` for one per rank. */
static void divide_together(struct rf_assign *a, const uint64_t *share,
                            uint64_t *near, uint32_t *lines)
{
    struct rf_demand_division direct = {
        .near = a->near, .far = a->far, .forced = a->forced};
    struct rf_demand_division staged = {.near = near, .forced = a->forced};
    for (uint32_t g = 0; g < a->in.source->n_groups; g++) {
        near[g] = a->near[g] + share[g];
    }
    rf_assign_divide_ranks(&a->in, &staged);
    rf_assign_divide_ranks(&a->in, &direct);
    bool cheap = staged.max_load <= direct.max_load + direct.max_load / 250;
    const struct rf_demand_division *taken = cheap ? &staged : &direct;
    form_lines(a, taken->near_amount, taken->far_amount, cheap ? share : NULL,
               lines, lines);
    set_rank_slack(a, taken, lines);
    a->node_slack = taken->max_load / 2000;
    rf_demand_division_free(&staged);
    rf_demand_division_free(&direct);
}

/* The same by weights, near and far demand separately. `lines` has room for two
 * entries per rank. */
static void divide_apart(struct rf_assign *a, uint32_t *lines)
{
    struct rf_demand_division near = {.near = a->near, .forced = a->forced};
    struct rf_nic_division far = {.amount = NULL};
    uint32_t *far_lines = lines + a->in.world->n_ranks;
    rf_assign_divide_ranks(&a->in, &near);
    rf_assign_divide_nics(&a->in, a->far, &far);
    form_lines(a, near.near_amount, far.amount, NULL, lines, far_lines);
    set_rank_slack(a, &near, lines);
    set_far_slack(a, &far, far_lines);
    a->node_slack = RF_MAX(near.max_load, far.max_load) / 2000;
    rf_demand_division_free(&near);
    rf_nic_division_free(&far);
}

static void divide(struct rf_assign *a, uint64_t *node_bound)
{
    size_t groups = a->in.source->n_groups;
    uint64_t *share = rf_xcalloc(groups, 2 * sizeof(*share));
    uint32_t *lines = rf_xcalloc(a->in.world->n_ranks, 2 * sizeof(*lines));
    rf_assign_divide_nodes(&a->in, a->far, share, node_bound);
    if (a->in.weights->rank != NULL) {
        divide_apart(a, lines);
    } else if (a->in.balance != RF_BALANCE_NONE) {
        divide_together(a, share, share + groups, lines);
    }
    free(share);
    free(lines);
}

/* The least load of the busiest rank over all choices of replicas. */
static uint64_t bound_send(const struct rf_assign *a)
{
    struct rf_demand_division division = {.far = a->remote};
    rf_assign_divide_ranks(&a->in, &division);
    const uint64_t bound = division.max_load;
    rf_demand_division_free(&division);
    return bound;
}

enum rf_status rf_assign_build(const struct rf_assign_input *input,
                               struct rf_assign **out,
                               struct rf_assign_bounds *bounds,
                               struct rf_err *err)
{
    struct rf_assign *a = rf_xcalloc(1, sizeof(*a));
    struct rf_assign_bounds found = {.send = 0};
    a->in = *input;
    allocate(a);
    find_own_sources(a);
    find_sources(a);
    enum rf_status status = sum_demand(a, &found, err);
    if (status != RF_OK) {
        rf_assign_destroy(a);
        return status;
    }
    divide(a, &found.node_send);
    found.send = bound_send(a);
    a->in.match_bytes = NULL; /* no longer needed */
    *bounds = found;
    *out = a;
    return RF_OK;
}

/* The next sender: the turn of a rank and, if far demand is divided by node, of
 * its group. */
struct line_turn {
    struct rf_turn_line *rank_line, *group_line; /* group_line may be NULL */
    const struct rf_pool *pool;                  /* of rank_line */
    const uint64_t *slack;                       /* of its ranks */
    uint64_t by_group; /* bytes that the group takes; without a group, all */
};

static struct line_turn find_turn(const struct rf_assign_cursor *cursor,
                                  uint32_t set, uint64_t bytes)
{
    const struct rf_assign *a = cursor->assign;
    const struct rf_group *group =
        group_on(a, set, a->in.world->ranks[cursor->receiver].node);
    struct line_turn turn = {
        .pool = &a->near_pool, .slack = a->rank_slack, .by_group = bytes};
    if (group != NULL) {
        turn.rank_line = &cursor->near_lines[group - a->in.source->groups];
        return turn;
    }
    if (a->by_node) {
        turn.group_line = &cursor->far_lines[set];
        turn.by_group = rf_turn_line_turn(turn.group_line, &a->far_pool, bytes,
                                          NULL, a->node_slack);
        turn.rank_line = &cursor->near_lines[rf_turn_line_owner(turn.group_line,
                                                                &a->far_pool)];
    } else {
        turn.rank_line = &cursor->far_lines[set];
        turn.pool = &a->far_pool;
        turn.slack = a->in.weights->rank != NULL ? a->far_slack : a->rank_slack;
    }
    return turn;
}

uint32_t rf_assign_next(struct rf_assign_cursor *cursor,
                        const struct rf_assign_need *need, uint64_t *count)
{
    const struct rf_assign *a = cursor->assign;
    uint32_t set = a->in.source->shards[need->shard].set;
    uint64_t bytes = (need->elements - need->done) * need->item;
    *count = need->elements - need->done;
    if (a->in.balance == RF_BALANCE_NONE) {
        return a->first_rank[set];
    }
    if (cursor->held[need->shard] == cursor->receiver + 1) {
        return a->own_source[cursor->receiver];
    }
    for (;;) {
        struct line_turn turn = find_turn(cursor, set, bytes);
        uint64_t part = rf_turn_line_turn(turn.rank_line, turn.pool,
                                          turn.by_group, turn.slack, 0);
        bool cut_by_rank = turn.group_line == NULL || part < turn.by_group;
        uint32_t owner = rf_turn_line_owner(turn.rank_line, turn.pool);
        if (part < bytes) {
            uint64_t from = need->done * need->item;
            uint64_t fine = RF_MIN(turn.slack[owner], RF_MAX(a->node_slack, 1));
            struct rf_box both = *need->wanted;
            rf_box_intersect(&a->in.source->shards[need->shard].box, &both,
                             &both);
            part = rf_turn_line_round(&both, from + part, need->item, fine);
            part = RF_MIN(part > from ? part - from : 0, bytes);
        }
        if (part > 0) {
            turn.rank_line->pos += part;
            if (turn.group_line != NULL) {
                turn.group_line->pos += part;
            }
            *count = part / need->item;
            return owner;
        }
        /* This member has less than half a slice left. */
        if (cut_by_rank) {
            rf_turn_line_next(turn.rank_line, turn.pool);
        } else {
            rf_turn_line_next(turn.group_line, &a->far_pool);
        }
    }
}

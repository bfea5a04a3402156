/*
 * Builds the actions of a node's ops and their dependencies. See flow.h for the
 * terms and planner/schedule/schedule.h for the rules.
 *
 * Rule 1: the action that wrote an op's source (at the same rank, so on this
 * node) precedes the op's copy or send. Rules 2 and 3: a gate for each (rank,
 * group) and each (rank, task) that opens when all its ops are complete at that
 * rank, and precedes those of the slot's next group, or of the rank's next task.
 *
 * Conversions ("quantize"): an action of the rank that converts precedes all
 * reads of what a sender makes, or follows all writes of what it makes a
 * receiver's weights of; with "overlap", group by group.
 *
 * Arrivals from other nodes (a completed receive, an admission) have no edge:
 * the rank that sees one calls rf_flow_complete() or rf_flow_arrive().
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/mem.h"
#include "planner/schedule/conversions.h"
#include "transport/engine/flow.h"

/* A rank and a group, or a rank and a task. */
struct gate_key {
    uint32_t rank, number;
};

struct gates {
    struct gate_key *keys; /* sorted, unique */
    size_t n, cap;
    uint32_t first_action;
    uint32_t slots; /* each has one number at a time at a rank */
};

struct edge {
    uint32_t from, to;
};

struct flow_build {
    struct rf_flow *flow;
    const struct rf_world *world;
    uint32_t node;
    size_t action_cap;
    struct gates groups, tasks;
    const struct rf_plan *plan; /* as in struct rf_flow_how */
    struct gates conversions;   /* of ranks and groups */
    struct edge *edges;
    size_t n_edges, edge_cap;
};

static bool is_here(const struct flow_build *build, uint32_t rank)
{
    return build->world->ranks[rank].node == build->node;
}

static bool has_group(const struct rf_op *op)
{
    return op->group != RF_NO_GROUP;
}

static bool has_turn(const struct flow_build *build, const struct rf_op *op)
{
    return build->flow->serialize && op->src != op->dst;
}

/* --- actions -------------------------------------------------------------- */

static uint32_t add_action(struct flow_build *build, enum rf_action_kind kind,
                           uint32_t op, uint32_t owner)
{
    struct rf_flow *flow = build->flow;
    size_t n = flow->n_actions;
    RF_PUSH(flow->actions, n, build->action_cap,
            ((struct rf_action){.kind = kind, .op = op, .owner = owner}));
    flow->n_actions = (uint32_t)n;
    return (uint32_t)n - 1;
}

static void add_op_actions(struct flow_build *build, uint32_t index)
{
    struct rf_flow *flow = build->flow;
    const uint32_t *slots = flow->slots;
    const struct rf_op *op = &flow->schedule->ops[index];
    struct rf_op_actions *of = &flow->of_op[index];
    enum rf_route route = flow->routes[index];
    *of = (struct rf_op_actions){RF_NONE, RF_NONE, RF_NONE, RF_NONE};
    if (route == RF_ROUTE_SHARED || route == RF_ROUTE_OWN) {
        of->copy =
            add_action(build, RF_ACTION_COPY, index,
                       route == RF_ROUTE_OWN ? slots[op->dst] : RF_FLOW_ANYONE);
        return;
    }
    if (is_here(build, op->src)) {
        of->send = add_action(build, RF_ACTION_SEND, index, slots[op->src]);
    }
    if (is_here(build, op->dst)) {
        of->recv = add_action(build, RF_ACTION_RECV, index, slots[op->dst]);
        if (route == RF_ROUTE_FILE || has_group(op) || has_turn(build, op)) {
            of->admit =
                add_action(build, RF_ACTION_ADMIT, index, slots[op->dst]);
        }
    }
}

/* --- gates ---------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    const struct gate_key *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->rank, y->rank),
                      RF_COMPARE(x->number, y->number));
}

static void add_key(struct gates *gates, uint32_t rank, uint32_t number)
{
    RF_PUSH(gates->keys, gates->n, gates->cap,
            ((struct gate_key){rank, number}));
}

static void sort_keys(struct gates *gates)
{
    size_t kept = 0;
    if (gates->n > 0) {
        qsort(gates->keys, gates->n, sizeof(*gates->keys), compare_keys);
    }
    for (size_t i = 0; i < gates->n; i++) {
        if (kept == 0 ||
            compare_keys(&gates->keys[kept - 1], &gates->keys[i]) != 0) {
            gates->keys[kept++] = gates->keys[i];
        }
    }
    gates->n = kept;
}

static void finish_gates(struct flow_build *build, struct gates *gates)
{
    sort_keys(gates);
    gates->first_action = build->flow->n_actions;
    for (size_t i = 0; i < gates->n; i++) {
        add_action(build, RF_ACTION_GATE, RF_NONE, RF_FLOW_ANYONE);
    }
}

static uint32_t gate_at(const struct gates *gates, uint32_t rank,
                        uint32_t number)
{
    const struct gate_key key = {rank, number};
    const struct gate_key *found =
        gates->n == 0
            ? NULL
            : bsearch(&key, gates->keys, gates->n, sizeof(key), compare_keys);
    return found == NULL
               ? RF_NONE
               : gates->first_action + (uint32_t)(found - gates->keys);
}

/* The gate that `number` waits for at `rank`: the next lower one in its slot. */
static uint32_t gate_before(const struct gates *gates, uint32_t rank,
                            uint32_t number)
{
    struct gate_key key = {rank, number};
    size_t low = 0, high = gates->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_keys(&gates->keys[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low-- > 0 && gates->keys[low].rank == rank) {
        if ((number - gates->keys[low].number) % gates->slots == 0) {
            return gates->first_action + (uint32_t)low;
        }
    }
    return RF_NONE;
}

/* Adds the gates of an op to `groups` and `tasks`. */
static void add_keys(struct flow_build *build, const struct rf_op *op,
                     uint32_t rank)
{
    if (!is_here(build, rank)) {
        return;
    }
    if (has_group(op)) {
        add_key(&build->groups, rank, op->group);
    }
    if (has_turn(build, op)) {
        add_key(&build->tasks, rank, op->task);
    }
}

static void collect_gates(struct flow_build *build)
{
    const struct rf_schedule *schedule = build->flow->schedule;
    build->groups.slots = schedule->in_flight;
    build->tasks.slots = 1;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        add_keys(build, &schedule->ops[i], schedule->ops[i].src);
        add_keys(build, &schedule->ops[i], schedule->ops[i].dst);
    }
    finish_gates(build, &build->groups);
    finish_gates(build, &build->tasks);
}

/* --- conversions ---------------------------------------------------------- */

static uint32_t converter_of(const struct flow_build *build,
                             const struct rf_op *op)
{
    return build->plan != NULL ? rf_conversion_rank(build->plan, op) : RF_NONE;
}

/* Whether it waits for its group alone. */
static uint32_t converted_group(const struct flow_build *build,
                                const struct rf_op *op)
{
    return rf_spec_quantize(build->plan->spec)->overlaps ? op->group
                                                         : RF_NO_GROUP;
}

static void collect_conversions(struct flow_build *build)
{
    const struct rf_flow *flow = build->flow;
    struct gates *conversions = &build->conversions;
    for (size_t i = 0; i < flow->schedule->n_ops; i++) {
        const struct rf_op *op = &flow->schedule->ops[i];
        const uint32_t rank = converter_of(build, op);
        if (rank != RF_NONE && is_here(build, rank)) {
            add_key(conversions, rank, converted_group(build, op));
        }
    }
    sort_keys(conversions);
    conversions->first_action = flow->n_actions;
    for (size_t i = 0; i < conversions->n; i++) {
        add_action(build, RF_ACTION_CONVERT, conversions->keys[i].number,
                   flow->slots[conversions->keys[i].rank]);
    }
}

/* --- edges ---------------------------------------------------------------- */

static void add_edge(struct flow_build *build, uint32_t from, uint32_t to)
{
    if (from != RF_NONE && to != RF_NONE) {
        RF_PUSH(build->edges, build->n_edges, build->edge_cap,
                ((struct edge){from, to}));
        build->flow->actions[to].n_needs++;
    }
}

/* Edges to (`begin`) and from (`end`) an op at one of its ranks. */
static void link_rank(struct flow_build *build, const struct rf_op *op,
                      uint32_t rank, uint32_t begin, uint32_t end)
{
    if (has_group(op)) {
        add_edge(build, gate_before(&build->groups, rank, op->group), begin);
        add_edge(build, end, gate_at(&build->groups, rank, op->group));
    }
    if (has_turn(build, op)) {
        add_edge(build, gate_before(&build->tasks, rank, op->task), begin);
        add_edge(build, end, gate_at(&build->tasks, rank, op->task));
    }
}

/* The edge from the op that wrote what this one reads. */
static enum rf_status link_dep(struct flow_build *build, const struct rf_op *op,
                               uint32_t action, struct rf_err *err)
{
    const struct rf_flow *flow = build->flow;
    if (op->dep == RF_NO_OP) {
        return RF_OK;
    }
    const size_t at = rf_schedule_index(flow->schedule, op->dep);
    const struct rf_op_actions *dep = &flow->of_op[at];
    if (at == flow->schedule->n_ops ||
        (dep->copy == RF_NONE && dep->recv == RF_NONE)) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "op %" PRIu32 " depends on op %" PRIu32
                          ", which does not write on this rank",
                          op->id, op->dep);
    }
    add_edge(build, dep->copy != RF_NONE ? dep->copy : dep->recv, action);
    return RF_OK;
}

/* What a sender converts is read after that; what arrives is converted when all
 * of its group is there. */
static void link_conversion(struct flow_build *build, const struct rf_op *op,
                            const struct rf_op_actions *of)
{
    const uint32_t rank = converter_of(build, op);
    uint32_t action;
    if (rank == RF_NONE || !is_here(build, rank)) {
        return;
    }
    action = gate_at(&build->conversions, rank, converted_group(build, op));
    if (rf_plan_is_converted(build->plan)) {
        add_edge(build, action, of->copy != RF_NONE ? of->copy : of->send);
    } else {
        add_edge(build, of->copy != RF_NONE ? of->copy : of->recv, action);
    }
}

static enum rf_status link_op(struct flow_build *build, uint32_t index,
                              struct rf_err *err)
{
    struct rf_flow *flow = build->flow;
    const struct rf_op *op = &flow->schedule->ops[index];
    const struct rf_op_actions *of = &flow->of_op[index];
    const uint32_t reader = of->copy != RF_NONE ? of->copy : of->send;
    RF_TRY(reader != RF_NONE ? link_dep(build, op, reader, err) : RF_OK);
    link_conversion(build, op, of);
    if (of->copy != RF_NONE) {
        link_rank(build, op, op->src, of->copy, of->copy);
        if (op->dst != op->src) {
            link_rank(build, op, op->dst, of->copy, of->copy);
        }
    }
    if (of->send != RF_NONE) {
        link_rank(build, op, op->src, of->send, of->send);
        if (flow->routes[index] == RF_ROUTE_LINK &&
            (has_group(op) || has_turn(build, op))) {
            flow->actions[of->send].n_needs++;
            flow->actions[of->send].admitted = true;
        }
    }
    if (of->recv != RF_NONE) {
        link_rank(build, op, op->dst, of->admit, of->recv);
        if (flow->routes[index] == RF_ROUTE_FILE) {
            flow->actions[of->admit].n_needs++; /* file written */
        }
    }
    return RF_OK;
}

static void sort_edges(struct flow_build *build)
{
    struct rf_flow *flow = build->flow;
    uint32_t *at = rf_xcalloc(flow->n_actions + 1, sizeof(*at));
    for (size_t i = 0; i < build->n_edges; i++) {
        flow->actions[build->edges[i].from].n_next++;
    }
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        flow->actions[i].first_next = at[i];
        at[i + 1] = at[i] + flow->actions[i].n_next;
    }
    flow->next = rf_xcalloc(build->n_edges, sizeof(*flow->next));
    for (size_t i = 0; i < build->n_edges; i++) {
        flow->next[at[build->edges[i].from]++] = build->edges[i].to;
    }
    free(at);
}

static void make_slots(struct flow_build *build)
{
    struct rf_flow *flow = build->flow;
    flow->slots = rf_xcalloc(build->world->n_ranks, sizeof(*flow->slots));
    for (uint32_t rank = 0; rank < build->world->n_ranks; rank++) {
        flow->slots[rank] = is_here(build, rank) ? flow->n_local++ : RF_NONE;
    }
}

enum rf_status rf_flow_build(const struct rf_flow_how *how,
                             struct rf_flow **out, struct rf_err *err)
{
    const struct rf_schedule *schedule = how->schedule;
    struct rf_flow *flow = rf_xcalloc(1, sizeof(*flow));
    struct flow_build build = {.flow = flow,
                               .world = how->world,
                               .node = how->node,
                               .plan = how->plan};
    enum rf_status status = RF_OK;
    flow->schedule = schedule;
    flow->routes = how->routes;
    flow->serialize = how->serialize;
    flow->noted = how->serialize || how->groups;
    flow->of_op = rf_xcalloc(schedule->n_ops, sizeof(*flow->of_op));
    make_slots(&build);
    for (uint32_t i = 0; i < schedule->n_ops; i++) {
        add_op_actions(&build, i);
    }
    collect_conversions(&build);
    collect_gates(&build);
    for (uint32_t i = 0; i < schedule->n_ops && status == RF_OK; i++) {
        status = link_op(&build, i, err);
    }
    sort_edges(&build);
    free(build.edges);
    free(build.conversions.keys);
    free(build.groups.keys);
    free(build.tasks.keys);
    if (status != RF_OK) {
        rf_flow_destroy(flow);
        return status;
    }
    *out = flow;
    return RF_OK;
}

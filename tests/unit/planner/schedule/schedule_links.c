/*
 * Links as fluids. Transfers between nodes run at rates that are max-min fair
 * over the nodes' outgoing and incoming links (progressive filling); everything
 * inside a node ends as soon as it may start. Between two ranks ops move one at
 * a time, as on one connection: of those that may start the one with lowest id.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/planner/schedule/schedule_lab.h"

struct flow {
    uint32_t op;
    double left, rate;
    bool fixed;
};

struct links {
    const struct planned *lab;
    double capacity;
    bool *done, *running;
    struct flow *flows;
    size_t n_flows;
    uint32_t *by_pair;  /* ops in order of (src, dst, id) */
    size_t *pair_start; /* of each (src, dst), and where it has got to */
    size_t *pair_next;
    uint32_t **of_rank; /* ops between ranks by task, and how far done */
    size_t *n_of_rank, *rank_next;
    uint32_t n_groups;
    int *group_left;  /* of each rank and group: ops between ranks */
    double *out, *in; /* capacity left while rates are found */
    uint32_t *out_flows, *in_flows;
};

static uint32_t node_of(const struct links *links, uint32_t rank)
{
    return links->lab->world->ranks[rank].node;
}

/* An op between ranks begins to count as left, by +1, or no more, by -1. */
static void count_left(struct links *links, const struct rf_op *op, int by)
{
    if (op->src != op->dst && op->group != RF_NO_GROUP) {
        links->group_left[op->src * links->n_groups + op->group] += by;
        links->group_left[op->dst * links->n_groups + op->group] += by;
    }
}

static void make_groups(struct links *links)
{
    const struct rf_schedule *schedule = links->lab->schedule;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const uint32_t group = schedule->ops[i].group;
        links->n_groups =
            RF_MAX(links->n_groups, group == RF_NO_GROUP ? 0 : group + 1);
    }
    links->group_left = rf_xcalloc(
        (size_t)links->lab->world->n_ranks * links->n_groups + 1, sizeof(int));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        count_left(links, &schedule->ops[i], 1);
    }
}

static void end_op(struct links *links, uint32_t id)
{
    links->done[id] = true;
    count_left(links, &links->lab->schedule->ops[id], -1);
}

static void make_queues(struct links *links)
{
    const struct rf_schedule *schedule = links->lab->schedule;
    size_t n = links->lab->world->n_ranks;
    links->pair_start = rf_xcalloc(n * n + 1, sizeof(size_t));
    links->pair_next = rf_xcalloc(n * n, sizeof(size_t));
    links->by_pair = rf_xcalloc(schedule->n_ops, sizeof(uint32_t));
    links->of_rank = rf_xcalloc(n, sizeof(uint32_t *));
    links->n_of_rank = rf_xcalloc(n, sizeof(size_t));
    links->rank_next = rf_xcalloc(n, sizeof(size_t));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        links->pair_start[op->src * n + op->dst + 1]++;
        links->n_of_rank[op->src]++;
        links->n_of_rank[op->dst]++;
    }
    for (size_t p = 0; p < n * n; p++) {
        links->pair_start[p + 1] += links->pair_start[p];
    }
    for (size_t r = 0; r < n; r++) {
        links->of_rank[r] = rf_xcalloc(links->n_of_rank[r], sizeof(uint32_t));
        links->n_of_rank[r] = 0;
    }
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        size_t pair = op->src * n + op->dst;
        links->by_pair[links->pair_start[pair] + links->pair_next[pair]++] =
            (uint32_t)i;
        if (op->src != op->dst) {
            links->of_rank[op->src][links->n_of_rank[op->src]++] = (uint32_t)i;
            links->of_rank[op->dst][links->n_of_rank[op->dst]++] = (uint32_t)i;
        }
    }
    memset(links->pair_next, 0, n * n * sizeof(size_t));
}

/* The first of a rank's ops that is not done. */
static size_t first_left(struct links *links, uint32_t rank)
{
    size_t *next = &links->rank_next[rank];
    const uint32_t *queue = links->of_rank[rank];
    while (*next < links->n_of_rank[rank] && links->done[queue[*next]]) {
        ++*next;
    }
    return *next;
}

/* Rule 3 at one rank: ascending ids have ascending tasks. */
static bool has_turn(struct links *links, uint32_t rank, uint32_t task)
{
    const struct rf_op *ops = links->lab->schedule->ops;
    const size_t next = first_left(links, rank);
    return next == links->n_of_rank[rank] ||
           ops[links->of_rank[rank][next]].task == task;
}

/* Rule 2 at one rank, for ops between ranks of scenarios with groups. */
static bool has_slot(const struct links *links, uint32_t rank, uint32_t group)
{
    const uint32_t in_flight = links->lab->schedule->in_flight;
    const int *left = links->group_left + (size_t)rank * links->n_groups;
    for (uint32_t g = group % in_flight; g < group; g += in_flight) {
        if (left[g] > 0) {
            return false;
        }
    }
    return true;
}

static bool may_start(struct links *links, const struct rf_op *op)
{
    if ((op->dep != RF_NO_OP && !links->done[op->dep]) ||
        (links->lab->spec->group.by != RF_GROUP_NOTHING &&
         !(has_slot(links, op->src, op->group) &&
           has_slot(links, op->dst, op->group)))) {
        return false;
    }
    return !links->lab->spec->serialize || op->src == op->dst ||
           (has_turn(links, op->src, op->task) &&
            has_turn(links, op->dst, op->task));
}

/* Starts what may start between two ranks; true when something inside a node
 * ended at once. */
static bool start_pair(struct links *links, size_t pair)
{
    const struct rf_op *ops = links->lab->schedule->ops;
    size_t first = links->pair_start[pair], end = links->pair_start[pair + 1];
    size_t *next = &links->pair_next[pair];
    bool ended = false;
    while (first + *next < end && links->done[links->by_pair[first + *next]]) {
        ++*next;
    }
    for (size_t i = first + *next; i < end; i++) {
        uint32_t id = links->by_pair[i];
        const struct rf_op *op = &ops[id];
        if (links->running[id] && !links->done[id]) {
            break;
        }
        if (links->done[id] || !may_start(links, op)) {
            continue;
        }
        if (node_of(links, op->src) == node_of(links, op->dst)) {
            end_op(links, id);
            ended = true;
            continue;
        }
        links->running[id] = true;
        links->flows[links->n_flows++] =
            (struct flow){.op = id, .left = (double)rf_op_bytes(op)};
        break;
    }
    return ended;
}

static bool start_ops(struct links *links)
{
    size_t n = links->lab->world->n_ranks;
    bool ended = false;
    for (size_t pair = 0; pair < n * n; pair++) {
        ended = start_pair(links, pair) || ended;
    }
    return ended;
}

/* Max-min fair rates: the link with the least share a flow fixes its flows. */
static void share_links(struct links *links)
{
    const struct rf_op *ops = links->lab->schedule->ops;
    uint32_t nodes = links->lab->world->n_nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        links->out[i] = links->in[i] = links->capacity;
    }
    for (size_t i = 0; i < links->n_flows; i++) {
        links->flows[i].fixed = false;
    }
    for (size_t left = links->n_flows; left > 0;) {
        double least = DBL_MAX;
        memset(links->out_flows, 0, nodes * sizeof(uint32_t));
        memset(links->in_flows, 0, nodes * sizeof(uint32_t));
        for (size_t i = 0; i < links->n_flows; i++) {
            const struct rf_op *op = &ops[links->flows[i].op];
            if (!links->flows[i].fixed) {
                links->out_flows[node_of(links, op->src)]++;
                links->in_flows[node_of(links, op->dst)]++;
            }
        }
        for (uint32_t i = 0; i < nodes; i++) {
            if (links->out_flows[i] > 0) {
                least = RF_MIN(least, links->out[i] / links->out_flows[i]);
            }
            if (links->in_flows[i] > 0) {
                least = RF_MIN(least, links->in[i] / links->in_flows[i]);
            }
        }
        for (size_t i = 0; i < links->n_flows; i++) {
            struct flow *flow = &links->flows[i];
            uint32_t from = node_of(links, ops[flow->op].src);
            uint32_t to = node_of(links, ops[flow->op].dst);
            double limit = least * 1.000001;
            if (!flow->fixed &&
                (links->out[from] <= limit * links->out_flows[from] ||
                 links->in[to] <= limit * links->in_flows[to])) {
                flow->fixed = true;
                flow->rate = least;
                left--;
            }
        }
        memset(links->out_flows, 0, nodes * sizeof(uint32_t));
        for (uint32_t i = 0; i < nodes; i++) {
            links->out[i] = links->in[i] = links->capacity;
        }
        for (size_t i = 0; i < links->n_flows; i++) {
            const struct flow *flow = &links->flows[i];
            if (flow->fixed) {
                links->out[node_of(links, ops[flow->op].src)] -= flow->rate;
                links->in[node_of(links, ops[flow->op].dst)] -= flow->rate;
            }
        }
    }
}

/* Runs until the next transfer ends; how long that took. */
static double advance(struct links *links)
{
    double step = DBL_MAX;
    size_t kept = 0;
    share_links(links);
    for (size_t i = 0; i < links->n_flows; i++) {
        step = RF_MIN(step, links->flows[i].left / links->flows[i].rate);
    }
    for (size_t i = 0; i < links->n_flows; i++) {
        struct flow *flow = &links->flows[i];
        flow->left -= step * flow->rate;
        if (flow->left < 1e-6 * flow->rate) {
            end_op(links, flow->op);
        } else {
            links->flows[kept++] = *flow;
        }
    }
    links->n_flows = kept;
    return step;
}

double lab_time(const struct planned *lab, double capacity)
{
    struct links links = {.lab = lab, .capacity = capacity};
    size_t n = lab->world->n_ranks;
    double time = 0;
    links.done = rf_xcalloc(lab->schedule->n_ops, sizeof(bool));
    links.running = rf_xcalloc(lab->schedule->n_ops, sizeof(bool));
    links.flows = rf_xcalloc(n * n, sizeof(struct flow));
    links.out = rf_xcalloc(lab->world->n_nodes, sizeof(double));
    links.in = rf_xcalloc(lab->world->n_nodes, sizeof(double));
    links.out_flows = rf_xcalloc(lab->world->n_nodes, sizeof(uint32_t));
    links.in_flows = rf_xcalloc(lab->world->n_nodes, sizeof(uint32_t));
    make_queues(&links);
    make_groups(&links);
    for (;;) {
        while (start_ops(&links)) {
        }
        if (links.n_flows == 0) {
            break;
        }
        time += advance(&links);
    }
    for (size_t i = 0; i < lab->schedule->n_ops; i++) {
        if (!links.done[i]) {
            time = -1; /* stuck */
        }
    }
    for (size_t r = 0; r < n; r++) {
        free(links.of_rank[r]);
    }
    free(links.of_rank);
    free(links.n_of_rank);
    free(links.rank_next);
    free(links.pair_start);
    free(links.pair_next);
    free(links.by_pair);
    free(links.group_left);
    free(links.done);
    free(links.running);
    free(links.flows);
    free(links.out);
    free(links.in);
    free(links.out_flows);
    free(links.in_flows);
    return time;
}

#include "coordinator/run/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"

#define SILENT_NAMED 8 /* most nodes that a fault names */

struct rf_run_steps {
    const struct rf_scenario *scenario;
    uint64_t seq;  /* of the step in progress */
    bool *waiting; /* per node */
    uint32_t n_waiting;
    bool *answered; /* per rank, in the step in progress */
};

struct rf_run_steps *rf_run_steps_create(const struct rf_scenario *scenario)
{
    struct rf_run_steps *steps = rf_xcalloc(1, sizeof(*steps));
    steps->scenario = scenario;
    steps->waiting =
        rf_xcalloc(scenario->world->n_nodes, sizeof(*steps->waiting));
    steps->answered =
        rf_xcalloc(scenario->world->n_ranks, sizeof(*steps->answered));
    return steps;
}

void rf_run_steps_destroy(struct rf_run_steps *steps)
{
    if (steps != NULL) {
        free(steps->waiting);
        free(steps->answered);
        free(steps);
    }
}

bool rf_run_steps_involve(const struct rf_run_steps *steps, uint32_t node)
{
    return rf_scenario_node_ranks(steps->scenario, node) > 0;
}

bool rf_run_steps_wait_for(const struct rf_run_steps *steps, uint32_t node)
{
    return steps->waiting[node];
}

static void wait_for_all(struct rf_run_steps *steps)
{
    steps->n_waiting = 0;
    for (uint32_t i = 0; i < steps->scenario->world->n_nodes; i++) {
        steps->waiting[i] = rf_run_steps_involve(steps, i);
        steps->n_waiting += steps->waiting[i];
    }
}

/* An awaited node has answered. */
static enum rf_verdict node_answered(struct rf_run_steps *steps, uint32_t node)
{
    steps->waiting[node] = false;
    return --steps->n_waiting > 0 ? RF_VERDICT_GO_ON : RF_VERDICT_NEXT;
}

uint64_t rf_run_steps_ask(struct rf_run_steps *steps)
{
    memset(steps->answered, 0,
           steps->scenario->world->n_ranks * sizeof(*steps->answered));
    wait_for_all(steps);
    return ++steps->seq;
}

/* The fault of a rank that failed, in the rank's words. */
static struct rf_fault rank_failed(uint32_t node,
                                   const struct rf_msg_answer *answer)
{
    enum rf_status status = RF_ERR_INTERNAL;
    struct rf_fault fault;
#define X(name, value, words)                                                  \
    if (answer->status != NULL && strcmp(answer->status, words) == 0) {        \
        status = RF_##name;                                                    \
    }
    RF_STATUS_MAP(X)
#undef X
    fault = rf_fault_make(node, answer->rank, status, "%s",
                          answer->error != NULL && answer->error[0] != '\0'
                              ? answer->error
                              : "failed, no reason given");
    if (answer->phase != NULL) {
        fault.phase = rf_xstrdup(answer->phase);
    }
    return fault;
}

/* Takes one answer; false, with `*fault`: it failed or is invalid. */
static bool take_answer(struct rf_run_steps *steps, uint32_t node,
                        const struct rf_msg_answer *answer,
                        struct rf_run_taker taker, struct rf_fault *fault)
{
    struct rf_err err = {0};
    if (!rf_scenario_rank_on(steps->scenario, answer->rank, node) ||
        steps->answered[answer->rank]) {
        *fault =
            rf_fault_make(node, RF_NONE, RF_ERR_PROTOCOL,
                          "answered twice, or for a rank that is not its own");
        return false;
    }
    steps->answered[answer->rank] = true;
    if (!answer->ok) {
        *fault = rank_failed(node, answer);
        return false;
    }
    if (taker.take(answer, taker.data, &err) != RF_OK) {
        *fault = rf_fault_make(node, answer->rank, err.status, "%s", err.text);
        return false;
    }
    return true;
}

/* Takes the ranks that DONE does not list, if it says that they are done. */
static bool take_rest(struct rf_run_steps *steps, uint32_t node,
                      struct rf_run_taker taker, struct rf_fault *fault)
{
    const uint32_t *ranks = rf_scenario_ranks_of(steps->scenario, node);
    const uint32_t n = rf_scenario_node_ranks(steps->scenario, node);
    struct rf_msg_answer answer;
    rf_schema_init(&rf_msg_answer_schema, &answer);
    answer.ok = true;
    for (uint32_t i = 0; i < n; i++) {
        answer.rank = ranks[i];
        if (!steps->answered[ranks[i]] &&
            !take_answer(steps, node, &answer, taker, fault)) {
            return false;
        }
    }
    return true;
}

enum rf_verdict rf_run_steps_done(struct rf_run_steps *steps, uint32_t node,
                                  const struct rf_msg_done *done,
                                  struct rf_run_taker taker,
                                  struct rf_fault *fault)
{
    if (done->seq > steps->seq) {
        *fault = rf_fault_make(node, RF_NONE, RF_ERR_PROTOCOL,
                               "answered a step that was not requested");
        return RF_VERDICT_ABORT;
    }
    if (done->seq < steps->seq || !steps->waiting[node]) {
        rf_debug("%s: ignored a second answer to step %llu",
                 steps->scenario->config->node_names[node],
                 (unsigned long long)done->seq);
        return RF_VERDICT_GO_ON;
    }
    for (size_t i = 0; i < done->n_ranks; i++) {
        if (!take_answer(steps, node, &done->ranks[i], taker, fault)) {
            return RF_VERDICT_ABORT;
        }
    }
    if (done->ok && !take_rest(steps, node, taker, fault)) {
        return RF_VERDICT_ABORT;
    }
    if (!done->ok &&
        done->n_ranks < rf_scenario_node_ranks(steps->scenario, node)) {
        *fault = rf_fault_make(node, RF_NONE, RF_ERR_PROTOCOL,
                               "its answer leaves out ranks");
        return RF_VERDICT_ABORT;
    }
    if (done->network != NULL) {
        taker.take_network(node, done->network, taker.data);
    }
    return node_answered(steps, node);
}

/* The node's rank if it has only one, which has not answered. */
static uint32_t only_rank(const struct rf_run_steps *steps, uint32_t node)
{
    uint32_t rank;
    if (rf_scenario_node_ranks(steps->scenario, node) != 1) {
        return RF_NONE;
    }
    rank = *rf_scenario_ranks_of(steps->scenario, node);
    return steps->answered[rank] ? RF_NONE : rank;
}

/* "beta (rank 3), gamma and 2 more": the nodes that have not answered. Returns
 * how many, and the first of them. */
static uint32_t name_silent(const struct rf_run_steps *steps, char **out,
                            uint32_t *first)
{
    uint32_t silent = 0;
    *first = RF_NONE;
    for (uint32_t i = 0; i < steps->scenario->world->n_nodes; i++) {
        const uint32_t rank = steps->waiting[i] ? only_rank(steps, i) : RF_NONE;
        if (!steps->waiting[i] || ++silent > SILENT_NAMED) {
            continue;
        }
        *first = RF_MIN(*first, i);
        rf_text_add(out, ", ", "%.64s", steps->scenario->config->node_names[i]);
        if (rank != RF_NONE) {
            rf_text_add(out, " ", "(rank %u)", rank);
        }
    }
    if (silent > SILENT_NAMED) {
        rf_text_add(out, " and ", "%u more", silent - SILENT_NAMED);
    }
    return silent;
}

struct rf_fault rf_run_steps_silence(const struct rf_run_steps *steps,
                                     const char *step, double seconds,
                                     const char *limit)
{
    char *names = NULL;
    uint32_t first;
    const bool alone = name_silent(steps, &names, &first) == 1;
    const struct rf_fault fault = rf_fault_make(
        alone ? first : RF_NONE, alone ? only_rank(steps, first) : RF_NONE,
        RF_ERR_TIMEOUT, "no answer to \"%s\" for %.1f s from %s%s", step,
        seconds, names != NULL ? names : "", limit);
    free(names);
    return fault;
}

void rf_run_steps_abort(struct rf_run_steps *steps)
{
    wait_for_all(steps);
}

enum rf_verdict rf_run_steps_aborted(struct rf_run_steps *steps, uint32_t node)
{
    return steps->waiting[node] ? node_answered(steps, node) : RF_VERDICT_GO_ON;
}

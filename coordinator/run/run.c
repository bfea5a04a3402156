/*
 * The run's state machine: states, deadlines and what ends them. See run.h for
 * the rules, run_internal.h for the diagram. The work inside a state is in
 * run_begin.c, run_step.c and run_take.c; faults are in run_fault.c.
 */
#include "coordinator/run/run_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/run/exit_code.h"

#define NOT_RUN_SHOWN 4    /* names of scenarios in one line */
#define LOG_LINE_BYTES 301 /* of what is kept of a line, with its end */
#define N(state) RF_SM_NEXT(RUN_##state)
#define FAULT (N(SETTLING) | N(ABORTING))
#define S(n) ((n)*RF_NS_PER_S)

/* Deadlines here are what a state has when sizes do not matter; rf_run_move()
 * gives longer ones. */
static const struct rf_sm_state states[RUN_STATES] = {
    [RUN_IDLE] = {"idle", N(LAUNCHING), 0},
    [RUN_LAUNCHING] = {"launching", N(STARTING) | N(STOPPING), S(60)},
    [RUN_STORING] = {"storing", N(STARTING) | N(STOPPING), 0},
    [RUN_STARTING] = {"starting",
                      N(PREPARING) | N(STORING) | N(STARTING) | N(STOPPING),
                      S(600)},
    [RUN_PREPARING] = {"preparing", N(PROBING) | FAULT, S(120)},
    [RUN_PROBING] = {"probing", N(FILLING) | FAULT, S(60)},
    [RUN_FILLING] = {"filling", N(RUNNING) | FAULT, S(60)},
    [RUN_RUNNING] = {"running",
                     N(VERIFYING) | N(FILLING) | N(PROBING_AGAIN) | FAULT,
                     S(60)},
    [RUN_VERIFYING] = {"verifying",
                       N(FILLING) | N(PROBING_AGAIN) | N(CLOSING) | FAULT,
                       S(60)},
    [RUN_PROBING_AGAIN] = {"probing again", N(CLOSING) | FAULT, S(60)},
    [RUN_CLOSING] = {"closing", N(STORING) | N(STARTING) | N(STOPPING) | FAULT,
                     S(60)},
    [RUN_SETTLING] = {"settling", N(ABORTING), RF_NS_PER_S / 2},
    [RUN_ABORTING] = {"aborting", N(STORING) | N(STARTING) | N(STOPPING),
                      S(30)},
    [RUN_STOPPING] = {"stopping", N(DONE), S(20)},
    [RUN_DONE] = {"done", 0, 0},
};

struct rf_run *rf_run_create(const struct rf_config *config, const bool *skip,
                             uint32_t timeout_s, const struct rf_run_ops *ops,
                             void *data)
{
    struct rf_run *run = rf_xcalloc(1, sizeof(*run));
    size_t n = config->n_nodes;
    run->config = config;
    run->skip = skip;
    run->ops = ops;
    run->data = data;
    run->nodes = rf_xcalloc(n, sizeof(*run->nodes));
    run->pair_rate = rf_xcalloc(n * n, sizeof(*run->pair_rate));
    run->run_deadline_ns =
        timeout_s > 0 ? ops->now(data) + S((int64_t)timeout_s) : INT64_MAX;
    rf_sm_init(&run->sm, "run", states, RUN_STATES, RUN_IDLE, ops->now(data));
    return run;
}

void rf_run_destroy(struct rf_run *run)
{
    if (run == NULL) {
        return;
    }
    rf_run_exchange_clear(run);
    rf_attempt_destroy(run->attempt);
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        json_decref(run->nodes[i].hello);
        free(run->nodes[i].why);
        for (unsigned l = 0; l < LOG_LINES; l++) {
            free(run->nodes[i].log[l].text);
        }
    }
    json_decref(run->test);
    free(run->answered);
    free(run->pairs);
    free(run->pair_rate);
    free(run->nodes);
    free(run);
}

void rf_run_set_test(struct rf_run *run, json_t *test)
{
    json_decref(run->test);
    run->test = test;
}

void rf_run_set_strict(struct rf_run *run)
{
    run->strict = true;
}

const char *rf_run_state(const struct rf_run *run)
{
    return rf_sm_state_name(&run->sm);
}

const char *rf_run_node_error(const struct rf_run *run, uint32_t node)
{
    return run->nodes[node].why;
}

const char *rf_run_host(const struct rf_run *run, uint32_t node)
{
    return run->config->node_names[node];
}

bool rf_run_in_scenario(const struct rf_run *run)
{
    return run->sm.state >= RUN_PREPARING && run->sm.state <= RUN_ABORTING;
}

void rf_run_arm(struct rf_run *run)
{
    int64_t at = RF_MIN(run->limit_ns, run->run_deadline_ns);
    run->ops->arm(run->sm.state == RUN_DONE ? INT64_MAX : at, run->data);
}

void rf_run_show_progress(struct rf_run *run)
{
    struct rf_run_view view = {.state = rf_sm_state_name(&run->sm),
                               .scenario_at = run->begun,
                               .n_nodes = run->config->n_nodes,
                               .over = run->sm.state >= RUN_STOPPING};
    for (size_t i = 0; i < run->config->n_scenarios; i++) {
        view.n_scenarios += run->skip == NULL || !run->skip[i];
    }
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        view.nodes_joined += run->nodes[i].hello != NULL;
    }
    if (run->attempt != NULL && run->attempt->scenario != NULL) {
        const struct rf_spec *spec = run->attempt->scenario->spec;
        view.scenario = spec->name;
        view.round = run->round;
        view.n_warmup = spec->warmup;
        view.n_rounds = spec->warmup + spec->iterations;
    }
    run->ops->progress(&view, run->data);
}

void rf_run_move(struct rf_run *run, enum run_state state, int64_t limit_s)
{
    int64_t now = run->ops->now(run->data);
    rf_sm_move(&run->sm, state, now);
    run->limit_ns = rf_sm_deadline_ns(&run->sm);
    if (run->limit_ns != INT64_MAX) {
        run->limit_ns = RF_MAX(run->limit_ns, now + S(limit_s));
    }
    rf_run_arm(run);
    rf_run_show_progress(run);
}

void rf_run_start(struct rf_run *run)
{
    rf_run_move(run, RUN_LAUNCHING, rf_config_join_limit_s(run->config));
    run->ops->launch(run->data);
}

/* Ends the agents. Idle ones have nothing to abort. */
void rf_run_stop(struct rf_run *run)
{
    rf_run_move(run, RUN_STOPPING, 0);
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].hello != NULL && !run->nodes[i].lost) {
            run->ops->send(i, RF_MSG_SHUTDOWN, json_object(), run->data);
        }
    }
    run->ops->stop(run->interrupts > 1, run->data);
}

void rf_run_end_scenario(struct rf_run *run)
{
    struct rf_attempt *attempt = run->attempt;
    rf_run_exchange_clear(run);
    run->attempt = NULL;
    attempt->finished_ns = run->ops->now(run->data);
    run->ops->utc(attempt->finished_at, sizeof(attempt->finished_at),
                  run->data);
    run->failed |= attempt->outcome == RF_OUTCOME_FAILED;
    run->mismatch |= attempt->outcome == RF_OUTCOME_MISMATCH;
    run->storing = true;
    run->ops->scenario_end(attempt, run->data);
    rf_attempt_destroy(attempt);
}

/* Wants the next scenario, or ends the run when none is left. Called in
 * LAUNCHING, STORING, STARTING, CLOSING and ABORTING. */
void rf_run_next_scenario(struct rf_run *run)
{
    while (run->skip != NULL && run->next_scenario < run->config->n_scenarios &&
           run->skip[run->next_scenario]) {
        run->next_scenario++;
    }
    if (run->over || run->next_scenario == run->config->n_scenarios) {
        rf_run_stop(run);
        return;
    }
    if (run->storing) {
        rf_run_move(run, RUN_STORING, 0);
        return;
    }
    run->begun++;
    rf_run_move(run, RUN_STARTING, 0);
    run->ops->build(run->next_scenario, run->data);
}

/* One that cannot begin is recorded as failed. */
void rf_run_built(struct rf_run *run, struct rf_scenario *scenario,
                  const struct rf_err *why)
{
    struct rf_err err = {0};
    if (run->sm.state != RUN_STARTING) {
        rf_scenario_destroy(scenario);
        return;
    }
    if (rf_run_begin(run, scenario, why, &err)) {
        rf_run_move(
            run, RUN_PREPARING,
            60 + (int64_t)(run->attempt->scenario->plan->totals.bytes_total /
                           UINT64_C(50000000)));
        rf_run_step_send(run, STEP_PREPARE, json_object());
        return;
    }
    rf_error("scenario %s: %s",
             run->config->scenarios[run->next_scenario - 1].name, err.text);
    rf_attempt_error(run->attempt, NULL, RF_NONE, "starting", err.status,
                     err.text, NULL);
    run->refused++;
    rf_run_end_scenario(run);
    rf_run_next_scenario(run);
}

void rf_run_message(struct rf_run *run, uint32_t node, enum rf_msg_type type,
                    const json_t *payload)
{
    int64_t attempt = -1;
    if (run->nodes[node].lost || run->sm.state == RUN_DONE) {
        return;
    }
    if (type == RF_MSG_ERROR) {
        struct rf_err err = {0};
        const char *text = json_string_value(json_object_get(payload, "text"));
        rf_err_set(&err, RF_ERR_PROTOCOL, "its agent reports: %.400s",
                   text != NULL ? text : "an error without text");
        run->ops->drop(node, run->data);
        rf_run_node_lost(run, node, &err);
        return;
    }
    /* What belongs to an attempt that is over has nothing to say any more. */
    if (run->attempt == NULL || !rf_run_in_scenario(run) ||
        !run->nodes[node].in_scenario ||
        !rf_run_get_integer(payload, "attempt", 0, UINT32_MAX, &attempt) ||
        attempt != run->attempt->number) {
        rf_debug("%s: ignored a late %s", rf_run_host(run, node),
                 rf_msg_name((uint8_t)type));
        return;
    }
    switch (type) {
    case RF_MSG_DONE:
        rf_run_step_done(run, node, payload);
        break;
    case RF_MSG_EXCHANGE:
        rf_run_exchange(run, node, payload);
        break;
    case RF_MSG_RANK_EXIT:
        rf_run_rank_exit(run, node, payload);
        break;
    case RF_MSG_ABORTED:
        rf_run_aborted(run, node, payload);
        break;
    default:
        rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                     "sent a message that an agent may not send", NULL);
        break;
    }
}

void rf_run_log(struct rf_run *run, uint32_t node, uint32_t rank,
                const char *line)
{
    struct run_node *from = &run->nodes[node];
    struct log_line *slot = &from->log[from->log_at];
    char text[LOG_LINE_BYTES];
    rf_text_fit(text, sizeof(text), snprintf(text, sizeof(text), "%s", line));
    free(slot->text);
    slot->text = rf_xstrdup(text);
    slot->rank = rank;
    from->log_at = (from->log_at + 1) % LOG_LINES;
}

int rf_run_exit_code(const struct rf_run *run)
{
    if (run->interrupt_code != 0) {
        return run->interrupt_code;
    }
    if (run->launch_failed) {
        return RF_EXIT_LAUNCH;
    }
    if (run->mismatch) {
        return RF_EXIT_MISMATCH;
    }
    if (run->timed_out || run->unstored) {
        return RF_EXIT_FAILED;
    }
    if (run->failed) {
        return run->refused == run->begun ? RF_EXIT_LAUNCH : RF_EXIT_FAILED;
    }
    return RF_EXIT_OK;
}

void rf_run_stopped(struct rf_run *run)
{
    if (run->sm.state != RUN_STOPPING) {
        return;
    }
    rf_run_move(run, RUN_DONE, 0);
    run->ops->done(run->data);
}

static void state_deadline(struct rf_run *run)
{
    struct rf_err err = {0};
    switch ((enum run_state)run->sm.state) {
    case RUN_LAUNCHING:
        rf_run_join_timeout(run);
        break;
    case RUN_STARTING:
        rf_err_set(&err, RF_ERR_TIMEOUT,
                   "planning took longer than %lld s: larger chunk_bytes or "
                   "bucket_bytes make fewer operations",
                   (long long)(states[RUN_STARTING].deadline_ns / RF_NS_PER_S));
        run->over = true; /* the next one would wait for this one's plan */
        rf_run_built(run, NULL, &err);
        break;
    case RUN_SETTLING:
        rf_run_abort(run, "a rank lost its peer");
        break;
    case RUN_ABORTING:
        for (uint32_t i = 0; i < run->config->n_nodes; i++) {
            if (run->nodes[i].waiting && run->sm.state == RUN_ABORTING) {
                rf_err_set(&err, RF_ERR_TIMEOUT,
                           "did not end its ranks in time; it is left alone "
                           "from now on");
                run->ops->drop(i, run->data);
                rf_run_node_lost(run, i, &err);
            }
        }
        break;
    case RUN_STOPPING:
        if (!run->forced) {
            run->forced = true;
            run->limit_ns = run->ops->now(run->data) + S(10);
            run->ops->stop(true, run->data);
        } else {
            rf_warn("some agents did not end in time");
            rf_run_stopped(run);
        }
        break;
    default:
        rf_run_step_timeout(run);
        break;
    }
}

/* The scenarios that a run which is over will not begin. */
static void say_not_run(const struct rf_run *run)
{
    char names[400] = "";
    size_t count = 0;
    for (size_t i = run->next_scenario; i < run->config->n_scenarios; i++) {
        size_t used = strlen(names);
        if ((run->skip != NULL && run->skip[i]) || ++count > NOT_RUN_SHOWN) {
            continue;
        }
        snprintf(names + used, sizeof(names) - used, "%s%.80s",
                 used > 0 ? ", " : "", run->config->scenarios[i].name);
    }
    if (count > NOT_RUN_SHOWN) {
        rf_error("not run: %s and %zu more", names, count - NOT_RUN_SHOWN);
    } else if (count > 0) {
        rf_error("not run: %s", names);
    }
}

void rf_run_tick(struct rf_run *run)
{
    int64_t now = run->ops->now(run->data);
    if (run->sm.state == RUN_DONE || run->sm.state == RUN_IDLE) {
        return;
    }
    if (now >= run->run_deadline_ns) {
        run->run_deadline_ns = INT64_MAX;
        if (run->sm.state == RUN_STOPPING) {
            rf_run_arm(run);
            return; /* all scenarios are over: too late to fail one */
        }
        run->over = run->timed_out = true;
        rf_error("the time given by --timeout is over");
        say_not_run(run);
        if (run->sm.state == RUN_LAUNCHING) {
            rf_run_join_timeout(run);
        } else if (run->sm.state == RUN_STARTING ||
                   run->sm.state == RUN_STORING) {
            rf_run_stop(run);
        } else if (rf_run_in_scenario(run)) {
            rf_run_fault(run, RF_NONE, RF_NONE, NULL, RF_ERR_TIMEOUT,
                         "the time given by --timeout was over", NULL);
        }
    } else if (now >= run->limit_ns) {
        run->limit_ns = INT64_MAX;
        state_deadline(run);
    }
    rf_run_arm(run);
}

static void end_everything(struct rf_run *run)
{
    if (run->attempt != NULL) {
        if (run->attempt->outcome == RF_OUTCOME_OK) {
            run->attempt->outcome = RF_OUTCOME_INTERRUPTED;
        }
        rf_run_end_scenario(run);
    }
    if (run->sm.state == RUN_STOPPING) {
        run->forced = true;
        run->ops->stop(true, run->data);
        return;
    }
    if (rf_run_in_scenario(run) && run->sm.state != RUN_ABORTING) {
        rf_sm_move(&run->sm, RUN_ABORTING, run->ops->now(run->data));
    }
    rf_run_stop(run);
}

void rf_run_interrupt(struct rf_run *run, int code)
{
    if (run->sm.state == RUN_DONE) {
        return;
    }
    run->interrupts++;
    run->interrupt_code = code;
    run->over = true;
    if (run->interrupts > 1) {
        end_everything(run);
        return;
    }
    if (run->sm.state == RUN_LAUNCHING || run->sm.state == RUN_STORING ||
        run->sm.state == RUN_STARTING) {
        rf_run_stop(run);
    } else if (rf_run_in_scenario(run) && run->sm.state != RUN_ABORTING) {
        if (run->attempt->outcome == RF_OUTCOME_OK) {
            run->attempt->outcome = RF_OUTCOME_INTERRUPTED;
        }
        rf_run_abort(run, "interrupted");
    }
}

void rf_run_stored(struct rf_run *run, const struct rf_err *why)
{
    run->storing = false;
    if (why != NULL) {
        rf_error("%s%s", why->text,
                 run->over ? "" : "; no further scenario is begun");
        run->over = run->unstored = true;
    }
    if (run->sm.state == RUN_STORING) {
        rf_run_next_scenario(run);
    }
}

/* One attempt at a scenario: from the plan to the end of its ranks.
 * run_internal.h describes the shared functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/preflight/preflight.h"
#include "coordinator/run/run_internal.h"
#include "coordinator/run/start.h"

#define REASON_BYTES 512 /* of ABORT's text, with its NUL */

/* Whether the ranks are being ended, or soon will be. */
static bool ending(const struct rf_run *run)
{
    return run->sm.state == RUN_SETTLING || run->sm.state == RUN_ABORTING;
}

/* Whether a node has ranks in the attempt in progress. */
static bool involved(const struct rf_run *run, uint32_t node)
{
    return run->steps != NULL && rf_run_steps_involve(run->steps, node);
}

void rf_run_free_attempt(struct rf_run *run)
{
    rf_run_steps_destroy(run->steps);
    rf_run_exchange_destroy(run->exchange);
    rf_run_measure_destroy(run->measure);
    rf_attempt_destroy(run->attempt);
    run->steps = NULL;
    run->exchange = NULL;
    run->measure = NULL;
    run->attempt = NULL;
}

/* --- Faults --------------------------------------------------------------- */

/* Adds the iteration, if the phase or the state is in one, to `phase` (taken;
 * NULL: the current state). The caller frees the result. */
static char *whole_phase(const struct rf_run *run, char *phase)
{
    char *whole;
    if (phase == NULL) {
        phase = rf_xstrdup(ending(run) ? "aborting" : rf_run_state(run));
    }
    /* A step may be named late, while its iteration is being ended. */
    if (!rf_state_step_in_iteration(phase) &&
        !rf_state_in_iteration(run->sm.state)) {
        return phase;
    }
    whole = rf_run_faults_phase(phase, rf_run_measure_iteration(run->measure),
                                run->attempt->scenario->spec);
    free(phase);
    return whole;
}

/* Completes the phase of a fault. */
static void name_phase(const struct rf_run *run, struct rf_fault *fault)
{
    fault->phase = whole_phase(run, fault->phase);
}

void rf_run_attempt_log(struct rf_run *run, uint32_t node, uint32_t rank,
                        const char *line)
{
    struct rf_attempt *attempt = run->attempt;
    char *phase;
    if (run->measure != NULL &&
        rf_scenario_rank_on(attempt->scenario, rank, node)) {
        phase = whole_phase(run, NULL);
        rf_rank_log_add(&attempt->logs[rank], phase, line);
        free(phase);
    }
}

static void act_on_fault(struct rf_run *run, enum rf_verdict verdict)
{
    if (verdict == RF_VERDICT_ABORT) {
        rf_run_abort(run, run->attempt->faults[0].text);
    } else if (verdict == RF_VERDICT_SETTLE) {
        rf_run_move(run, RUN_SETTLING, 0);
    }
}

/* Takes a fault of the attempt and acts on it. */
static void fail(struct rf_run *run, struct rf_fault *fault)
{
    name_phase(run, fault);
    act_on_fault(run, rf_run_faults_cause(run->faults, fault));
}

/* A fault that a rank reports about itself: a lost peer is rarely the cause. */
static void fail_rank(struct rf_run *run, struct rf_fault *fault)
{
    if (fault->rank != RF_NONE) {
        rf_run_faults_add_lines(run->faults, fault);
    }
    if (fault->rank == RF_NONE ||
        (fault->status != RF_ERR_PEER && fault->status != RF_ERR_ABORTED)) {
        fail(run, fault);
        return;
    }
    name_phase(run, fault);
    act_on_fault(run, rf_run_faults_notice(run->faults, fault));
}

/* A fault of a node, not of a rank. */
static void fail_node(struct rf_run *run, uint32_t node,
                      const struct rf_err *why)
{
    struct rf_fault fault =
        rf_fault_make(node, RF_NONE, why->status, "%s", why->text);
    fail(run, &fault);
}

/* --- Beginning and end ---------------------------------------------------- */

/* A failed scenario would hardly be ok next time, and would cost as much. */
static void drop_repeats(struct rf_run *run)
{
    const struct rf_attempt *attempt = run->attempt;
    if (attempt->outcome == RF_OUTCOME_OK ||
        !rf_run_agenda_drop(run->agenda, attempt->index) || run->over) {
        return;
    }
    rf_warn("scenario %s: repeat %u of %u failed, remaining repeats skipped%s",
            run->config->scenarios[attempt->index].name, attempt->repeat + 1,
            attempt->n_repeats,
            attempt->repeat > 0 ? "; earlier repeats are kept" : "");
}

void rf_run_end_attempt(struct rf_run *run)
{
    struct rf_attempt *attempt = run->attempt;
    rf_run_count_time(run);
    attempt->begun_ns = run->begun_ns;
    attempt->finished_ns = run->counted_ns;
    memcpy(attempt->phase_ns, run->phase_ns, sizeof(attempt->phase_ns));
    memset(run->phase_ns, 0, sizeof(run->phase_ns));
    run->begun_ns = run->counted_ns;
    run->ops->utc(attempt->finished_at, sizeof(attempt->finished_at),
                  run->data);
    rf_run_tally_add(&run->tally, attempt->outcome);
    drop_repeats(run);
    run->storing = true;
    run->ops->scenario_end(attempt, run->data);
    rf_run_free_attempt(run);
}

static void end_scenario(struct rf_run *run)
{
    rf_run_end_attempt(run);
    rf_run_next_scenario(run);
}

/* The nodes that have ranks in the attempt and are not lost. The caller frees
 * it. */
static bool *list_involved(const struct rf_run *run)
{
    bool *list = rf_xcalloc(run->config->n_nodes, sizeof(*list));
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        list[i] = involved(run, i) && !rf_run_is_lost(run, i);
    }
    return list;
}

/* Sends to all of them. */
static void send_to_all(struct rf_run *run, const struct rf_msg *message)
{
    bool *to = list_involved(run);
    run->ops->send_all(to, message, run->data);
    free(to);
}

/* Sends each node its own link of a probe (at most one); the whole list to
 * every node would be too many bytes. */
static void send_links(struct rf_run *run, const struct rf_msg *message)
{
    const struct rf_rank *ranks = run->attempt->scenario->world->ranks;
    bool *to = list_involved(run);
    struct rf_msg own = *message; /* borrows all that it holds */
    own.step.n_links = 1;
    for (size_t i = 0; i < message->step.n_links; i++) {
        struct rf_msg_link *link = &message->step.links[i];
        const uint32_t ends[] = {ranks[link->from].node, ranks[link->to].node};
        own.step.links = link;
        for (size_t e = 0; e < RF_ARRAY_SIZE(ends); e++) {
            if (to[ends[e]]) {
                run->ops->send(ends[e], &own, run->data);
            }
            to[ends[e]] = false;
        }
    }
    own.step.n_links = 0;
    run->ops->send_all(to, &own, run->data);
    free(to);
}

static void send_start(struct rf_run *run)
{
    uint8_t key[32];
    struct rf_msg start;
    run->ops->random(key, sizeof(key), run->data);
    rf_run_start_fill(run->attempt, run->join, key, &start);
    explicit_bzero(key, sizeof(key));
    start.start.test = run->with.test; /* lent */
    send_to_all(run, &start);
    start.start.test = NULL;
    rf_msg_free(&start);
}

/* When the ranks begin: far enough ahead for the message to reach all of them.
 * The scenario's own limit counts from the refit on, which a load may delay. */
static int64_t plan_start(struct rf_run *run, int64_t load_ns)
{
    const uint32_t timeout_s = run->attempt->scenario->spec->timeout_s;
    const int64_t at = run->ops->now(run->data) + 25 * RF_NS_PER_MS +
                       4 * run->ops->round_trip_ns(run->data) +
                       RF_NS_PER_MS * (int64_t)run->config->n_nodes;
    if (timeout_s > 0) {
        rf_run_set_limit(run, at + RF_MAX(load_ns, (int64_t)0) +
                                  (int64_t)timeout_s * RF_NS_PER_S);
    }
    return at;
}

/* Time left in the state: how long ranks may wait for each other. */
static double seconds_left(const struct rf_run *run)
{
    int64_t left_ns = run->limit_ns - run->ops->now(run->data);
    return (double)RF_MAX(left_ns, (int64_t)0) / 1e9;
}

/* Whether ranks start together and are timed. */
static bool is_timed(const struct rf_run *run)
{
    return run->sm.state == RUN_RUNNING || run->sm.state == RUN_YARDSTICK;
}

/* Asks the ranks for the step of this state. */
static void ask(struct rf_run *run)
{
    struct rf_msg step;
    rf_msg_init(&step, RF_MSG_STEP);
    rf_run_measure_ask(run->measure, run->sm.state, &step.step);
    if (is_timed(run)) {
        step.step.start_at_ns = plan_start(run, step.step.load_ns);
    }
    step.step.attempt = run->attempt->number;
    step.step.seq = rf_run_steps_ask(run->steps);
    step.step.timeout_s = seconds_left(run);
    if (step.step.n_links > 0) {
        send_links(run, &step);
    } else {
        send_to_all(run, &step);
    }
    rf_msg_free(&step);
}

static void enter(struct rf_run *run, enum rf_state state)
{
    rf_run_move(run, state, rf_run_measure_enter(run->measure, state));
    ask(run);
}

static void begin_attempt(struct rf_run *run, struct rf_scenario *scenario)
{
    struct rf_run_turn turn = {0};
    struct rf_attempt *attempt;
    (void)rf_run_agenda_left(run->agenda, 0, &turn);
    rf_run_agenda_take(run->agenda);
    attempt = rf_attempt_create(++run->attempts, turn.scenario, scenario);
    attempt->repeat = turn.repeat;
    attempt->n_repeats = rf_run_agenda_repeats(run->agenda);
    run->attempt = attempt;
    run->ops->utc(attempt->started_at, sizeof(attempt->started_at), run->data);
    rf_run_faults_begin(run->faults, attempt);
}

static void begin_steps(struct rf_run *run)
{
    const struct rf_scenario *scenario = run->attempt->scenario;
    bool *traced = &run->traced[run->attempt->index];
    run->steps = rf_run_steps_create(scenario);
    run->exchange = rf_run_exchange_create(scenario);
    run->measure = rf_run_measure_create(run->attempt, run->probes);
    if (run->with.trace && !*traced) {
        *traced = true;
        rf_run_measure_trace(run->measure);
    }
    run->ops->scenario_begin(run->attempt, run->data);
    send_start(run);
    enter(run, RUN_PREPARING);
}

/* A scenario that cannot begin is recorded as failed. */
static void refuse_scenario(struct rf_run *run, const struct rf_err *why)
{
    struct rf_fault fault =
        rf_fault_make(RF_NONE, RF_NONE, why->status, "%s", why->text);
    rf_error("scenario %s: %s",
             run->config->scenarios[run->attempt->index].name, why->text);
    fault.phase = rf_xstrdup(rf_run_state(run));
    rf_attempt_add_fault(run->attempt, &fault);
    run->tally.refused++;
    end_scenario(run);
}

void rf_run_built(struct rf_run *run, struct rf_scenario *scenario,
                  const struct rf_err *why)
{
    struct rf_err err = {0};
    if (run->sm.state != RUN_STARTING) {
        rf_scenario_destroy(scenario);
        return;
    }
    begin_attempt(run, scenario);
    if (scenario == NULL) {
        refuse_scenario(run, why);
    } else if (rf_preflight_check(scenario, run->join, &err) != RF_OK) {
        refuse_scenario(run, &err);
    } else {
        begin_steps(run);
    }
}

/* --- Steps ---------------------------------------------------------------- */

/* All ranks have answered the step. */
static void step_complete(struct rf_run *run)
{
    enum rf_state next = run->sm.state;
    struct rf_fault fault;
    switch (
        rf_run_measure_answered(run->measure, run->sm.state, &next, &fault)) {
    case RF_VERDICT_ABORT:
        fail(run, &fault);
        return;
    case RF_VERDICT_NEXT:
        break;
    default: /* each request gets the state's full time */
        rf_run_set_limit(run, run->ops->now(run->data) +
                                  rf_states[run->sm.state].deadline_ns);
        ask(run);
        return;
    }
    if (next == RUN_STARTING) {
        end_scenario(run);
    } else {
        enter(run, next);
    }
}

static enum rf_status take_answer(const struct rf_msg_answer *answer,
                                  void *data, struct rf_err *err)
{
    struct rf_run *run = data;
    return rf_run_measure_take(run->measure, run->sm.state, answer, err);
}

static void take_network(uint32_t node, const struct rf_msg_network *network,
                         void *data)
{
    struct rf_run *run = data;
    rf_attempt_take_network(run->attempt, node, network);
}

/* A rank has failed: only other failures matter. */
static enum rf_status ignore_answer(const struct rf_msg_answer *answer,
                                    void *data, struct rf_err *err)
{
    (void)answer, (void)data, (void)err;
    return RF_OK;
}

static void take_done(struct rf_run *run, uint32_t node,
                      const struct rf_msg_done *done)
{
    const bool settling = run->sm.state == RUN_SETTLING;
    const struct rf_run_taker taker = {settling ? ignore_answer : take_answer,
                                       run, take_network};
    struct rf_fault fault;
    if (run->sm.state == RUN_ABORTING) {
        return;
    }
    switch (rf_run_steps_done(run->steps, node, done, taker, &fault)) {
    case RF_VERDICT_NEXT: /* never while settling: a rank was not ok */
        step_complete(run);
        break;
    case RF_VERDICT_ABORT:
        fail_rank(run, &fault);
        break;
    default:
        break;
    }
}

static void take_exchange(struct rf_run *run, uint32_t node,
                          const struct rf_msg_exchange *parts)
{
    struct rf_err err = {0};
    struct rf_msg all;
    if (ending(run)) {
        return;
    }
    switch (rf_run_exchange_take(run->exchange, node, parts, &all, &err)) {
    case RF_VERDICT_NEXT:
        send_to_all(run, &all);
        rf_msg_free(&all);
        break;
    case RF_VERDICT_ABORT:
        fail_node(run, node, &err);
        break;
    default:
        break;
    }
}

/* Blames the nodes that the current step waits for. */
static void fail_silent(struct rf_run *run, const char *limit)
{
    const int64_t stay_ns = run->ops->now(run->data) - run->sm.entered_ns;
    struct rf_fault fault = rf_run_steps_silence(
        run->steps, rf_state_step(run->sm.state), (double)stay_ns / 1e9, limit);
    fail(run, &fault);
}

void rf_run_step_timeout(struct rf_run *run)
{
    const uint32_t timeout_s = run->attempt->scenario->spec->timeout_s;
    char limit[96] = "";
    if (is_timed(run) && timeout_s > 0) {
        snprintf(
            limit, sizeof(limit),
            "; raise the scenario's timeout_s (%u) if the refit takes longer",
            timeout_s);
    }
    fail_silent(run, limit);
}

void rf_run_attempt_deadline(struct rf_run *run)
{
    char limit[64];
    struct rf_fault fault;
    snprintf(limit, sizeof(limit), "--timeout reached (%u s); raise it",
             run->with.timeout_s);
    if (rf_state_step(run->sm.state) != NULL) {
        char behind[80];
        snprintf(behind, sizeof(behind), "; %s", limit);
        fail_silent(run, behind);
        return;
    }
    fault = rf_fault_make(RF_NONE, RF_NONE, RF_ERR_TIMEOUT, "%s", limit);
    fail(run, &fault);
}

/* --- Ending an attempt ---------------------------------------------------- */

/* A node has ended its ranks, or is gone. */
static void node_aborted(struct rf_run *run, uint32_t node)
{
    if (rf_run_steps_aborted(run->steps, node) == RF_VERDICT_NEXT) {
        end_scenario(run);
    }
}

void rf_run_abort(struct rf_run *run, const char *reason)
{
    struct rf_msg message;
    char text[REASON_BYTES];
    rf_text_fit(text, sizeof(text), snprintf(text, sizeof(text), "%s", reason));
    rf_run_faults_abort(run->faults);
    rf_run_move(run, RUN_ABORTING, 0);
    rf_run_steps_abort(run->steps);
    rf_msg_init(&message, RF_MSG_ABORT);
    message.abort.attempt = run->attempt->number;
    message.abort.reason = rf_xstrdup(text);
    send_to_all(run, &message);
    rf_msg_free(&message);
    for (uint32_t i = 0; i < run->config->n_nodes && run->steps != NULL; i++) {
        if (rf_run_is_lost(run, i) && involved(run, i)) {
            node_aborted(run, i);
        }
    }
}

static void take_aborted(struct rf_run *run, uint32_t node,
                         const struct rf_msg_aborted *aborted)
{
    if (run->sm.state == RUN_ABORTING &&
        rf_run_steps_wait_for(run->steps, node)) {
        rf_run_faults_aborted(run->faults, node, aborted);
        node_aborted(run, node);
    }
}

static void take_exit(struct rf_run *run, uint32_t node,
                      const struct rf_msg_rank_exit *exit)
{
    struct rf_fault fault;
    if (exit->rank != RF_ABSENT_U32 &&
        !rf_scenario_rank_on(run->attempt->scenario, exit->rank, node)) {
        fault = rf_fault_make(node, RF_NONE, RF_ERR_PROTOCOL,
                              "reported the end of a rank that is not its own");
        fail(run, &fault);
    } else if (run->sm.state != RUN_ABORTING) { /* else it was told to end */
        fault = rf_run_faults_of_exit(node, exit);
        rf_run_faults_add_lines(run->faults, &fault);
        fail(run, &fault);
    }
}

void rf_run_attempt_lost(struct rf_run *run, uint32_t node, const char *why)
{
    struct rf_fault fault;
    if (!involved(run, node)) {
        return;
    }
    fault = rf_fault_make(node, RF_NONE, RF_ERR_PEER, "%s", why);
    rf_run_faults_add_lines(run->faults, &fault);
    fail(run, &fault);
    if (run->sm.state == RUN_ABORTING &&
        rf_run_steps_wait_for(run->steps, node)) {
        node_aborted(run, node);
    }
}

/* Cuts off a node that cannot be worked with. */
static void drop_node(struct rf_run *run, uint32_t node,
                      const struct rf_err *why)
{
    run->ops->drop(node, run->data);
    rf_run_node_lost(run, node, why);
}

/* Cuts off nodes that have not ended their ranks in time. */
void rf_run_abort_timeout(struct rf_run *run)
{
    struct rf_err err = {0};
    (void)rf_err_set(&err, RF_ERR_TIMEOUT,
                     "did not end its ranks in time; ignored from now on");
    for (uint32_t i = 0;
         i < run->config->n_nodes && run->sm.state == RUN_ABORTING; i++) {
        if (rf_run_steps_wait_for(run->steps, i)) {
            drop_node(run, i, &err);
        }
    }
}

/* --- Messages ------------------------------------------------------------- */

/* The attempt of a message; 0: none. */
static uint32_t attempt_of(const struct rf_msg *message)
{
    switch (message->type) {
    case RF_MSG_DONE:
        return message->done.attempt;
    case RF_MSG_EXCHANGE:
        return message->exchange.attempt;
    case RF_MSG_RANK_EXIT:
        return message->rank_exit.attempt;
    case RF_MSG_ABORTED:
        return message->aborted.attempt;
    default:
        return 0;
    }
}

static void take_message(struct rf_run *run, uint32_t node,
                         const struct rf_msg *message)
{
    struct rf_err err = {0};
    switch (message->type) {
    case RF_MSG_DONE:
        take_done(run, node, &message->done);
        break;
    case RF_MSG_EXCHANGE:
        take_exchange(run, node, &message->exchange);
        break;
    case RF_MSG_RANK_EXIT:
        take_exit(run, node, &message->rank_exit);
        break;
    case RF_MSG_ABORTED:
        take_aborted(run, node, &message->aborted);
        break;
    default:
        (void)rf_err_set(&err, RF_ERR_PROTOCOL,
                         "sent a message that an agent may not send");
        fail_node(run, node, &err);
        break;
    }
}

void rf_run_message(struct rf_run *run, uint32_t node,
                    const struct rf_msg *message)
{
    struct rf_err err = {0};
    if (rf_run_is_lost(run, node) || run->sm.state == RUN_DONE) {
        return;
    }
    if (message->type == RF_MSG_ERROR) {
        (void)rf_err_set(&err, RF_ERR_PROTOCOL, "its agent reports: %.400s",
                         message->error.text);
        drop_node(run, node, &err);
        return;
    }
    if (message->type == RF_MSG_HEADERS && run->sm.state == RUN_INSPECTING) {
        rf_run_take_headers(run, node, &message->headers);
        return;
    }
    /* Messages of a past attempt no longer matter. */
    if (!involved(run, node) || attempt_of(message) != run->attempt->number) {
        rf_debug("%s: ignored a late %s", rf_run_host(run, node),
                 rf_msg_name((uint8_t)message->type));
        return;
    }
    take_message(run, node, message);
}

/* Whether a message does not concern the attempt in progress. */
static bool is_beside(const struct rf_run *run, uint32_t node,
                      const struct rf_msg_bad *bad)
{
    return !involved(run, node) || bad->type == RF_MSG_LEASE ||
           (bad->attempt != 0 && bad->attempt != run->attempt->number);
}

static void ignore_bad(struct rf_run *run, uint32_t node,
                       const struct rf_msg_bad *bad)
{
    if (run->warned[node]) {
        rf_debug("%s: ignored a message: %s", rf_run_host(run, node),
                 bad->why->text);
    } else {
        rf_warn("%s: ignored a message: %s", rf_run_host(run, node),
                bad->why->text);
    }
    run->warned[node] = true;
}

void rf_run_bad_message(struct rf_run *run, uint32_t node,
                        const struct rf_msg_bad *bad)
{
    if (rf_run_is_lost(run, node) || run->sm.state == RUN_DONE) {
        return;
    }
    if (bad->type == RF_MSG_ERROR) {
        drop_node(run, node, bad->why);
    } else if (bad->type == RF_MSG_HEADERS && run->sm.state == RUN_INSPECTING) {
        rf_run_fail_headers(run, node, bad->why->text);
    } else if (is_beside(run, node, bad)) {
        ignore_bad(run, node, bad);
    } else if (bad->type == RF_MSG_ABORTED && run->sm.state == RUN_ABORTING) {
        drop_node(run, node, bad->why); /* no other will come */
    } else {
        fail_node(run, node, bad->why);
    }
}

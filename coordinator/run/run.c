/*
 * The run's state machine from launch to end; run_attempt.c has the part in
 * which a scenario is measured. Both pass each event to the module concerned
 * and act on its verdict. See run.h for the rules, states.h for the diagram.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/run/run_internal.h"

#define NOT_RUN_SHOWN 4        /* scenario names in one line */
#define FORCED_STOP_S 10       /* then remaining agents are left alone */
#define S(n) ((n)*RF_NS_PER_S) /* seconds */

/* --- Life ----------------------------------------------------------------- */

struct rf_run *rf_run_create(const struct rf_config *config,
                             const struct rf_run_options *options,
                             const struct rf_run_ops *ops, void *data)
{
    struct rf_run *run = rf_xcalloc(1, sizeof(*run));
    run->config = config;
    run->with = *options;
    run->ops = ops;
    run->data = data;
    run->agenda = rf_run_agenda_create(
        config->n_scenarios, RF_MAX(options->n_repeats, 1), options->skip);
    run->join = rf_preflight_join_create(config);
    run->faults = rf_run_faults_create(config);
    run->probes = rf_run_probes_create(config->n_nodes);
    run->warned = rf_xcalloc(config->n_nodes, sizeof(*run->warned));
    run->traced = rf_xcalloc(config->n_scenarios + 1, sizeof(*run->traced));
    run->reading = rf_xcalloc(config->n_nodes, sizeof(*run->reading));
    run->begun_ns = run->counted_ns = ops->now(data);
    run->run_deadline_ns = options->timeout_s > 0
                               ? ops->now(data) + S((int64_t)options->timeout_s)
                               : INT64_MAX;
    rf_sm_init(&run->sm, "run", rf_states, RUN_STATES, RUN_IDLE,
               ops->now(data));
    return run;
}

void rf_run_destroy(struct rf_run *run)
{
    if (run == NULL) {
        return;
    }
    rf_run_free_attempt(run);
    rf_run_agenda_destroy(run->agenda);
    rf_preflight_join_destroy(run->join);
    rf_run_faults_destroy(run->faults);
    rf_run_probes_destroy(run->probes);
    free(run->warned);
    free(run->traced);
    free(run->reading);
    free(run);
}

const char *rf_run_state(const struct rf_run *run)
{
    return rf_sm_state_name(&run->sm);
}

const char *rf_run_node_error(const struct rf_run *run, uint32_t node)
{
    const char *lost = rf_preflight_join_lost(run->join, node);
    return lost == NULL && run->with.inspect != NULL
               ? rf_preflight_inspect_error(run->with.inspect, node)
               : lost;
}

int rf_run_exit_code(const struct rf_run *run)
{
    return rf_run_tally_exit_code(&run->tally);
}

const char *rf_run_host(const struct rf_run *run, uint32_t node)
{
    return run->config->node_names[node];
}

bool rf_run_is_lost(const struct rf_run *run, uint32_t node)
{
    return rf_preflight_join_lost(run->join, node) != NULL;
}

/* Whether ranks are at work, or being ended. */
static bool in_attempt(const struct rf_run *run)
{
    return rf_state_in_attempt(run->sm.state);
}

/* --- States --------------------------------------------------------------- */

static void arm(struct rf_run *run)
{
    int64_t at = RF_MIN(run->limit_ns, run->run_deadline_ns);
    run->ops->arm(run->sm.state == RUN_DONE ? INT64_MAX : at, run->data);
}

void rf_run_set_limit(struct rf_run *run, int64_t at_ns)
{
    run->limit_ns = at_ns;
    arm(run);
}

/* Sums over all nodes; a checkpoint read to its end is not shown. */
static void view_reading(const struct rf_run *run, struct rf_run_view *view)
{
    uint64_t done = 0, of = 0;
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        done += run->reading[i].done_bytes;
        of += run->reading[i].of_bytes;
    }
    if (run->sm.state == RUN_FILLING && done < of) {
        view->read_bytes = done;
        view->of_bytes = of;
    }
}

static void show_progress(struct rf_run *run)
{
    struct rf_run_view view = {.state = rf_sm_state_name(&run->sm),
                               .scenario_at = run->tally.begun,
                               .n_scenarios = rf_run_agenda_count(run->agenda),
                               .n_repeats = rf_run_agenda_repeats(run->agenda),
                               .nodes_joined =
                                   rf_preflight_join_count(run->join),
                               .n_nodes = run->config->n_nodes,
                               .over = run->sm.state >= RUN_STOPPING};
    if (run->measure != NULL) {
        const struct rf_spec *spec = run->attempt->scenario->spec;
        view.scenario = spec->name;
        view.repeat = run->attempt->repeat;
        view.iteration = rf_run_measure_iteration(run->measure);
        view.n_warmup = spec->warmup;
        view.n_iterations = run->attempt->n_wanted;
        view.n_expected = rf_run_measure_expected(run->measure);
    }
    view_reading(run, &view);
    run->ops->progress(&view, run->data);
}

void rf_run_count_time(struct rf_run *run)
{
    const int64_t now = run->ops->now(run->data);
    run->phase_ns[rf_state_phase(run->sm.state)] += now - run->counted_ns;
    run->counted_ns = now;
}

void rf_run_move(struct rf_run *run, enum rf_state state, int64_t least_s)
{
    int64_t now = run->ops->now(run->data), at;
    rf_run_count_time(run);
    memset(run->reading, 0, run->config->n_nodes * sizeof(*run->reading));
    rf_sm_move(&run->sm, state, now);
    at = rf_sm_deadline_ns(&run->sm);
    rf_run_set_limit(run, at != INT64_MAX ? RF_MAX(at, now + S(least_s)) : at);
    show_progress(run);
}

/* --- Joining -------------------------------------------------------------- */

void rf_run_start(struct rf_run *run)
{
    rf_run_move(run, RUN_LAUNCHING, rf_config_join_limit_s(run->config));
    run->ops->launch(run->data);
}

/* Ends the agents. Idle ones have nothing to abort. */
static void stop(struct rf_run *run)
{
    struct rf_msg shutdown;
    size_t capacity = 0;
    bool *to = rf_xcalloc(run->config->n_nodes, sizeof(*to));
    rf_run_move(run, RUN_STOPPING, 0);
    rf_msg_init(&shutdown, RF_MSG_SHUTDOWN);
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        const struct rf_msg_hello *hello =
            rf_preflight_join_hello(run->join, i);
        to[i] = rf_preflight_join_is_there(run->join, i);
        if (!to[i] && hello != NULL && hello->files != NULL) {
            RF_PUSH(shutdown.shutdown.gone.list, shutdown.shutdown.gone.n,
                    capacity, rf_xstrdup(hello->files));
        }
    }
    run->ops->send_all(to, &shutdown, run->data);
    rf_msg_free(&shutdown);
    free(to);
    run->ops->stop(run->interrupts > 1, run->data);
}

static void ask_for_headers(struct rf_run *run)
{
    struct rf_msg inspect;
    rf_run_move(run, RUN_INSPECTING,
                rf_preflight_inspect_limit_s(run->with.inspect));
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (rf_preflight_inspect_ask(run->with.inspect, i, &inspect)) {
            run->ops->send(i, &inspect, run->data);
            rf_msg_free(&inspect);
        }
    }
}

/* A node has joined or was lost during the launch. */
static void act_on_join(struct rf_run *run, enum rf_verdict verdict)
{
    if (verdict == RF_VERDICT_NEXT) {
        run->ops->joined(run->data);
        if (run->with.inspect != NULL) {
            ask_for_headers(run);
        } else {
            rf_run_next_scenario(run);
        }
    } else if (verdict == RF_VERDICT_ABORT) {
        stop(run);
    }
}

static void lose_node(struct rf_run *run, uint32_t node,
                      const struct rf_err *why)
{
    enum rf_verdict verdict =
        rf_preflight_join_lose(run->join, node, why->text);
    if (run->sm.state == RUN_LAUNCHING) {
        run->tally.launch_failed = true;
        act_on_join(run, verdict);
    } else if (run->sm.state == RUN_INSPECTING ||
               run->sm.state == RUN_PLANNING) {
        run->tally.launch_failed = true;
        stop(run);
    } else if (run->sm.state != RUN_STOPPING) {
        rf_error("%s: %s", rf_run_host(run, node), why->text);
        rf_run_attempt_lost(run, node, why->text);
    }
}

void rf_run_node_lost(struct rf_run *run, uint32_t node,
                      const struct rf_err *why)
{
    if (!rf_run_is_lost(run, node) && run->sm.state != RUN_DONE) {
        lose_node(run, node, why);
    }
}

static void refuse(struct rf_run *run, uint32_t node, const struct rf_err *why)
{
    struct rf_msg error;
    rf_msg_init(&error, RF_MSG_ERROR);
    error.error.text = rf_xstrdup(why->text);
    run->ops->send(node, &error, run->data);
    rf_msg_free(&error);
    run->ops->drop(node, run->data);
    lose_node(run, node, why);
}

static bool welcome(struct rf_run *run, uint32_t node,
                    struct rf_msg_hello *hello)
{
    struct rf_err err = {0};
    struct rf_msg answer;
    enum rf_verdict verdict;
    rf_msg_init(&answer, RF_MSG_WELCOME);
    if (rf_preflight_join_judge(run->join, node, hello, run->with.strict,
                                &answer.welcome.protocol, &err) != RF_OK) {
        refuse(run, node, &err);
        return false;
    }
    verdict = rf_preflight_join_add(run->join, node, hello);
    run->ops->send(node, &answer, run->data);
    show_progress(run);
    act_on_join(run, verdict);
    return true;
}

bool rf_run_hello(struct rf_run *run, uint32_t node, struct rf_msg_hello *hello)
{
    bool welcomed = run->sm.state == RUN_LAUNCHING &&
                    rf_preflight_join_hello(run->join, node) == NULL &&
                    !rf_run_is_lost(run, node) && welcome(run, node, hello);
    rf_schema_free(&rf_msg_hello_schema, hello);
    return welcomed;
}

/* Gives up the nodes that did not join in time. */
static void join_timeout(struct rf_run *run)
{
    struct rf_err err = {0};
    long long waited_s =
        (run->ops->now(run->data) - run->sm.entered_ns) / RF_NS_PER_S;
    for (uint32_t i = 0;
         i < run->config->n_nodes && run->sm.state == RUN_LAUNCHING; i++) {
        if (rf_preflight_join_hello(run->join, i) == NULL) {
            rf_err_set(&err, RF_ERR_TIMEOUT, "did not join within %lld s%s",
                       waited_s, run->ops->waits_for(i, run->data));
            rf_run_node_lost(run, i, &err);
        }
    }
}

/* --- A checkpoint's headers ----------------------------------------------- */

static void act_on_inspect(struct rf_run *run, enum rf_verdict verdict)
{
    json_t *headers = rf_preflight_inspect_headers(run->with.inspect);
    if (verdict == RF_VERDICT_NEXT &&
        rf_preflight_inspect_more(run->with.inspect)) {
        ask_for_headers(run);
    } else if (verdict == RF_VERDICT_NEXT && headers == NULL) {
        rf_run_next_scenario(run); /* planned already */
    } else if (verdict == RF_VERDICT_NEXT) {
        rf_run_move(run, RUN_PLANNING, 0);
        run->ops->inspected(headers, run->data);
    } else if (verdict == RF_VERDICT_ABORT) {
        run->tally.launch_failed = true;
        stop(run);
    }
}

void rf_run_take_headers(struct rf_run *run, uint32_t node,
                         const struct rf_msg_headers *headers)
{
    act_on_inspect(run,
                   rf_preflight_inspect_take(run->with.inspect, node, headers));
}

void rf_run_fail_headers(struct rf_run *run, uint32_t node, const char *why)
{
    act_on_inspect(run,
                   rf_preflight_inspect_fail(run->with.inspect, node, why));
}

static void inspect_timeout(struct rf_run *run)
{
    act_on_inspect(run, rf_preflight_inspect_silence(
                            run->with.inspect,
                            (run->ops->now(run->data) - run->sm.entered_ns) /
                                RF_NS_PER_S));
}

void rf_run_all_planned(struct rf_run *run, const struct rf_err *why)
{
    if (run->sm.state != RUN_PLANNING) {
        return;
    }
    if (why == NULL) {
        rf_run_next_scenario(run);
        return;
    }
    rf_error("%s", why->text);
    run->tally.impossible = true;
    stop(run);
}

/* --- Scenarios ------------------------------------------------------------ */

void rf_run_next_scenario(struct rf_run *run)
{
    struct rf_run_turn turn;
    if (run->over || !rf_run_agenda_left(run->agenda, 0, &turn)) {
        stop(run);
        return;
    }
    if (run->storing) {
        rf_run_move(run, RUN_STORING, 0);
        return;
    }
    run->tally.begun++;
    rf_run_move(run, RUN_STARTING, 0);
    run->ops->build(turn.scenario, run->data);
}

void rf_run_log(struct rf_run *run, uint32_t node, uint32_t rank,
                const char *line)
{
    rf_run_faults_log(run->faults, node, rank, line);
    rf_run_attempt_log(run, node, rank, line);
}

void rf_run_reading(struct rf_run *run, uint32_t node,
                    const struct rf_msg_lease *lease)
{
    if (run->sm.state == RUN_FILLING && lease->done_bytes != RF_ABSENT_U64) {
        run->reading[node] = *lease;
        show_progress(run);
    }
}

/* --- Time ----------------------------------------------------------------- */

/* Planning all scenarios, or the next one, took too long. */
static void planning_timeout(struct rf_run *run)
{
    struct rf_err err = {0};
    rf_err_set(&err, RF_ERR_TIMEOUT,
               "planning took longer than %lld s: raise chunk_bytes or "
               "bucket_bytes for fewer operations",
               (long long)(rf_states[run->sm.state].deadline_ns / RF_NS_PER_S));
    if (run->sm.state == RUN_PLANNING) {
        rf_run_all_planned(run, &err);
        return;
    }
    run->over = true; /* the next one would wait for this one's plan */
    rf_run_built(run, NULL, &err);
}

static void stop_timeout(struct rf_run *run)
{
    if (!run->forced) {
        run->forced = true;
        rf_run_set_limit(run, run->ops->now(run->data) + S(FORCED_STOP_S));
        run->ops->stop(true, run->data);
    } else {
        rf_warn("some agents did not end in time");
        rf_run_stopped(run);
    }
}

static void state_deadline(struct rf_run *run)
{
    switch ((enum rf_state)run->sm.state) {
    case RUN_LAUNCHING:
        join_timeout(run);
        break;
    case RUN_INSPECTING:
        inspect_timeout(run);
        break;
    case RUN_PLANNING:
    case RUN_STARTING:
        planning_timeout(run);
        break;
    case RUN_SETTLING:
        rf_run_abort(run, "a rank lost its peer");
        break;
    case RUN_ABORTING:
        rf_run_abort_timeout(run);
        break;
    case RUN_STOPPING:
        stop_timeout(run);
        break;
    default:
        rf_run_step_timeout(run);
        break;
    }
}

/* Names the scenarios that the finished run will not begin. */
static void say_not_run(const struct rf_run *run)
{
    char *names = NULL;
    size_t count = 0;
    struct rf_run_turn turn;
    for (; rf_run_agenda_left(run->agenda, count, &turn); count++) {
        if (count >= NOT_RUN_SHOWN) {
            continue;
        }
        rf_text_add(&names, ", ", "%.80s",
                    run->config->scenarios[turn.scenario].name);
        if (rf_run_agenda_repeats(run->agenda) > 1) {
            rf_text_add(&names, " ", "(repeat %u)", turn.repeat + 1);
        }
    }
    if (count > NOT_RUN_SHOWN) {
        rf_error("not run: %s and %zu more", names, count - NOT_RUN_SHOWN);
    } else if (count > 0) {
        rf_error("not run: %s", names);
    }
    free(names);
}

/* --timeout; cannot fail anything once all scenarios are over. */
static void run_deadline(struct rf_run *run)
{
    run->run_deadline_ns = INT64_MAX;
    if (run->sm.state == RUN_STOPPING) {
        return;
    }
    run->over = run->tally.timed_out = true;
    rf_error("--timeout reached (%u s); raise it, or select fewer "
             "scenarios with --scenario",
             run->with.timeout_s);
    say_not_run(run);
    if (run->sm.state == RUN_LAUNCHING) {
        join_timeout(run);
    } else if (run->sm.state == RUN_INSPECTING) {
        inspect_timeout(run);
    } else if (!in_attempt(run)) {
        stop(run);
    } else {
        rf_run_attempt_deadline(run);
    }
}

void rf_run_tick(struct rf_run *run)
{
    int64_t now = run->ops->now(run->data);
    if (run->sm.state == RUN_DONE || run->sm.state == RUN_IDLE) {
        return;
    }
    if (now >= run->run_deadline_ns) {
        run_deadline(run);
    } else if (now >= run->limit_ns) {
        run->limit_ns = INT64_MAX;
        state_deadline(run);
    }
    arm(run);
}

/* --- The end -------------------------------------------------------------- */

void rf_run_stopped(struct rf_run *run)
{
    if (run->sm.state == RUN_STOPPING) {
        rf_run_move(run, RUN_DONE, 0);
        run->ops->done(run->data);
    }
}

static void mark_interrupted(struct rf_run *run)
{
    if (run->attempt != NULL && run->attempt->outcome == RF_OUTCOME_OK) {
        run->attempt->outcome = RF_OUTCOME_INTERRUPTED;
    }
}

/* A second interrupt waits for nothing. */
static void end_everything(struct rf_run *run)
{
    if (run->attempt != NULL) {
        mark_interrupted(run);
        rf_run_end_attempt(run);
    }
    if (run->sm.state == RUN_STOPPING) {
        run->forced = true;
        run->ops->stop(true, run->data);
        return;
    }
    if (in_attempt(run) && run->sm.state != RUN_ABORTING) {
        rf_sm_move(&run->sm, RUN_ABORTING, run->ops->now(run->data));
    }
    stop(run);
}

void rf_run_interrupt(struct rf_run *run, int code)
{
    if (run->sm.state == RUN_DONE) {
        return;
    }
    run->interrupts++;
    run->tally.interrupt_code = code;
    run->over = true;
    if (run->interrupts > 1) {
        end_everything(run);
    } else if (in_attempt(run)) {
        if (run->sm.state != RUN_ABORTING) {
            mark_interrupted(run);
            rf_run_abort(run, "interrupted");
        }
    } else if (run->sm.state != RUN_IDLE && run->sm.state != RUN_STOPPING) {
        stop(run);
    }
}

void rf_run_stored(struct rf_run *run, const struct rf_err *why)
{
    run->storing = false;
    if (why != NULL) {
        rf_error("%s%s", why->text,
                 run->over ? "" : "; no further scenarios start");
        run->over = run->tally.unstored = true;
    }
    if (run->sm.state == RUN_STORING) {
        rf_run_next_scenario(run);
    }
}

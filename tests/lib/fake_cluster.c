/* A simulated cluster. See fake_cluster.h; its agents are in fake_agent.c.
 * Events are kept in a list sorted by time. */
#include "tests/lib/fake_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/model_read.h"
#include "tests/lib/asserts.h"
#include "tests/lib/configured.h"
#include "tests/lib/fake_cluster_internal.h"

#define WIRE_NS FAKE_MS

void fake_push(struct fake_cluster *fake, struct fake_event event)
{
    struct fake_event *copy = rf_xmalloc(sizeof(*copy));
    struct fake_event **link = &fake->events;
    *copy = event;
    while (*link != NULL && (*link)->at_ns <= copy->at_ns) {
        link = &(*link)->next;
    }
    copy->next = *link;
    *link = copy;
}

void fake_push_message(struct fake_cluster *fake, int64_t after_ns,
                       uint32_t node, enum rf_msg_type type, json_t *payload)
{
    fake_push(fake, (struct fake_event){.at_ns = fake->now_ns + after_ns,
                                        .kind = EV_MESSAGE,
                                        .node = node,
                                        .type = type,
                                        .payload = payload});
}

static const struct fake_fault *launch_fault(struct fake_cluster *fake,
                                             uint32_t node)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        struct fake_fault *fault = &fake->faults[i];
        if (fault->kind != FAKE_NO_FAULT && fault->step == NULL &&
            fault->node == node) {
            fault->applied = true;
            return fault;
        }
    }
    return NULL;
}

/* --- Operations ----------------------------------------------------------- */

static int64_t op_now(void *data)
{
    return ((struct fake_cluster *)data)->now_ns;
}

static void op_utc(char *out, size_t size, void *data)
{
    (void)data;
    snprintf(out, size, "2026-01-02T03:04:05Z");
}

static void op_arm(int64_t at_ns, void *data)
{
    ((struct fake_cluster *)data)->timer_ns = at_ns;
}

static void op_launch(void *data)
{
    struct fake_cluster *fake = data;
    for (uint32_t i = 0; i < fake->config->n_nodes; i++) {
        const struct fake_fault *fault = launch_fault(fake, i);
        if (fault != NULL && fault->kind == FAKE_NEVER_JOINS) {
            continue;
        }
        if (fault != NULL && fault->kind == FAKE_LAUNCH_FAILS) {
            fake_push(fake, (struct fake_event){.at_ns = fake->now_ns + FAKE_MS,
                                                .kind = EV_LOST,
                                                .node = i,
                                                .text = "connection refused"});
            continue;
        }
        fake_push(fake,
                  (struct fake_event){.at_ns = fake->now_ns + 50 * FAKE_MS,
                                      .kind = EV_HELLO,
                                      .node = i,
                                      .payload = fake_agent_hello(i, fault)});
    }
}

static void op_joined(void *data)
{
    ((struct fake_cluster *)data)->joined_called = true;
}

static void count_links(struct fake_cluster *fake, uint32_t node,
                        const struct rf_msg_step *step)
{
    for (size_t i = 0; i < step->n_links; i++) {
        const struct rf_msg_link *link = &step->links[i];
        const bool own =
            rf_scenario_rank_on(fake->scenario, link->from, node) ||
            rf_scenario_rank_on(fake->scenario, link->to, node);
        fake->links += own;
        fake->foreign_links += !own;
    }
}

static void op_send(uint32_t node, const struct rf_msg *message, void *data)
{
    struct fake_cluster *fake = data;
    switch (message->type) {
    case RF_MSG_START:
        fake->starts++;
        fake->attempt = message->start.attempt;
        json_decref(fake->seen_start);
        fake->seen_start = rf_msg_json(message);
        break;
    case RF_MSG_INSPECT:
        fake->inspects++;
        fake->wholes += message->inspect.whole;
        fake_agent_inspect(fake, node, &message->inspect);
        break;
    case RF_MSG_STEP:
        count_links(fake, node, &message->step);
        fake_agent_step(fake, node, &message->step);
        break;
    case RF_MSG_ABORT:
        fake->aborts++;
        if (fake_agent_answers_abort(fake, node)) {
            fake_push_message(fake, 5 * WIRE_NS, node, RF_MSG_ABORTED,
                              json_pack("{s:i, s:[], s:[]}", "attempt",
                                        (int)message->abort.attempt,
                                        "unkillable", "unanswered"));
        }
        break;
    case RF_MSG_SHUTDOWN:
        fake->shutdowns++;
        fake->gone = message->shutdown.gone.n;
        break;
    case RF_MSG_EXCHANGED:
        fake->exchanged++;
        json_decref(fake->last_exchanged);
        fake->last_exchanged = rf_msg_json(message);
        break;
    default:
        break;
    }
}

static void op_send_all(const bool *to, const struct rf_msg *message,
                        void *data)
{
    const struct fake_cluster *fake = data;
    for (uint32_t i = 0; i < fake->config->n_nodes; i++) {
        if (to[i]) {
            op_send(i, message, data);
        }
    }
}

static void op_drop(uint32_t node, void *data)
{
    (void)node;
    ((struct fake_cluster *)data)->drops++;
}

static void op_stop(bool force, void *data)
{
    struct fake_cluster *fake = data;
    fake->stops++;
    fake->forced_stops += force;
    if (!fake->deaf || force) {
        fake_push(fake,
                  (struct fake_event){.at_ns = fake->now_ns + 10 * FAKE_MS,
                                      .kind = EV_STOPPED});
    }
}

static const char *op_waits_for(uint32_t node, void *data)
{
    (void)node;
    (void)data;
    return ": its shell";
}

static int64_t op_round_trip(void *data)
{
    (void)data;
    return FAKE_MS;
}

static void op_random(void *out, size_t size, void *data)
{
    (void)data;
    memset(out, 0x5A, size);
}

static void op_progress(const struct rf_run_view *view, void *data)
{
    struct fake_cluster *fake = data;
    ck_assert_ptr_nonnull(view->state);
    ck_assert_uint_le(view->scenario_at, view->n_scenarios);
    fake->view = *view;
}

static void op_inspected(json_t *headers, void *data)
{
    struct fake_cluster *fake = data;
    rf_config_add_headers(fake->config, headers);
    fake_push(fake, (struct fake_event){.at_ns = fake->now_ns + fake->plan_ns,
                                        .kind = EV_PLANNED});
}

static void op_build(size_t index, void *data)
{
    struct fake_cluster *fake = data;
    fake_push(fake, (struct fake_event){.at_ns = fake->now_ns + fake->plan_ns,
                                        .kind = EV_BUILT,
                                        .scenario = index});
}

static void op_begin(const struct rf_attempt *attempt, void *data)
{
    struct fake_cluster *fake = data;
    fake->scenario = attempt->scenario;
    rf_hash_text(&attempt->scenario->plan->digest, fake->plan_digest);
    rf_hash_text(&attempt->scenario->schedule->digest, fake->schedule_digest);
}

static void copy_faults(const struct rf_attempt *attempt,
                        struct fake_attempt *kept)
{
    kept->n_faults = attempt->n_faults;
    kept->faults = rf_xcalloc(attempt->n_faults + 1, sizeof(*kept->faults));
    for (size_t i = 0; i < attempt->n_faults; i++) {
        const struct rf_fault *fault = &attempt->faults[i];
        struct rf_fault *copy = &kept->faults[i];
        *copy = rf_fault_make(fault->node, fault->rank, fault->status, "%s",
                              fault->text);
        copy->phase = rf_xstrdup(fault->phase);
        copy->lines.list = rf_xcalloc(fault->lines.n + 1, sizeof(char *));
        for (; copy->lines.n < fault->lines.n; copy->lines.n++) {
            copy->lines.list[copy->lines.n] =
                rf_xstrdup(fault->lines.list[copy->lines.n]);
        }
    }
}

static void op_end(const struct rf_attempt *attempt, void *data)
{
    struct fake_cluster *fake = data;
    struct fake_attempt *kept = &fake->attempts[fake->n_attempts++];
    ck_assert_uint_le(fake->n_attempts, FAKE_ATTEMPTS_MAX);
    snprintf(kept->name, sizeof(kept->name), "%s",
             fake->config->scenarios[attempt->index].name);
    kept->repeat = attempt->repeat;
    kept->n_repeats = attempt->n_repeats;
    kept->outcome = attempt->outcome;
    kept->n_iterations = attempt->n_iterations;
    kept->verified = attempt->verified;
    kept->bytes_total = attempt->scenario != NULL
                            ? attempt->scenario->plan->totals.bytes_total
                            : 0;
    kept->checked_bytes = attempt->checked_bytes;
    kept->mismatched_bytes = attempt->mismatched_bytes;
    copy_faults(attempt, kept);
    kept->probed_before = attempt->probed_before;
    kept->probed_after = attempt->probed_after;
    kept->closed = attempt->closed;
    kept->total_ns = attempt->finished_ns - attempt->begun_ns;
    memcpy(kept->phase_ns, attempt->phase_ns, sizeof(kept->phase_ns));
    if (attempt->scenario != NULL) {
        kept->copy_gbytes_per_s = attempt->before.copy_gbytes_per_s[0];
        kept->pair_gbytes_per_s = attempt->before.n_nodes > 1
                                      ? attempt->before.pair_gbytes_per_s[1]
                                      : 0;
    }
    if (!fake->slow_store) {
        rf_run_stored(fake->run, NULL);
    }
}

static void op_done(void *data)
{
    struct fake_cluster *fake = data;
    ck_assert(!fake->done);
    fake->done = true;
    fake->exit_code = rf_run_exit_code(fake->run);
}

static const struct rf_run_ops fake_ops = {
    op_now,      op_utc,       op_arm,   op_launch,    op_joined,     op_send,
    op_send_all, op_drop,      op_stop,  op_waits_for, op_round_trip, op_random,
    op_progress, op_inspected, op_build, op_begin,     op_end,        op_done,
};

/* --- Time ----------------------------------------------------------------- */

static void build(struct fake_cluster *fake, size_t index)
{
    struct rf_err why = {0};
    struct rf_scenario *scenario = NULL;
    if (rf_scenario_build(fake->config, fake->model, index, &scenario, &why) !=
        RF_OK) {
        scenario = NULL;
    }
    rf_run_built(fake->run, scenario, &why);
}

/* Reads the model once the headers have come, as a command does before it
 * plans. */
static void plan_all(struct fake_cluster *fake)
{
    struct rf_jnode node = rf_jnode_root(fake->config->model, "c.json");
    struct rf_err why = {0};
    rf_run_all_planned(
        fake->run,
        rf_model_from_json(&node, &fake->model, &why) == RF_OK ? NULL : &why);
}

static void deliver_hello(struct fake_cluster *fake,
                          const struct fake_event *event)
{
    struct rf_msg_hello hello;
    struct rf_err err = {0};
    assert_ok(rf_schema_decode(&rf_msg_hello_schema, event->payload, "HELLO",
                               &hello, &err),
              err);
    rf_run_hello(fake->run, event->node, &hello);
    ck_assert_ptr_null(hello.boot_id); /* rf_run_hello() took its contents */
}

/* Decodes and delivers a message, as a real cluster's connections do. */
static void deliver_message(struct fake_cluster *fake, uint32_t node,
                            enum rf_msg_type type, json_t *payload)
{
    struct rf_msg message;
    struct rf_err err = {0};
    if (rf_msg_decode(type, payload, &message, &err) == RF_OK) {
        rf_run_message(fake->run, node, &message);
        rf_msg_free(&message);
    } else {
        const struct rf_msg_bad bad = rf_msg_bad(type, payload, &err);
        rf_run_bad_message(fake->run, node, &bad);
    }
}

static void deliver(struct fake_cluster *fake, struct fake_event *event)
{
    struct rf_err why = {.status = RF_ERR_PEER};
    switch (event->kind) {
    case EV_HELLO:
        deliver_hello(fake, event);
        break;
    case EV_LOST:
        snprintf(why.text, sizeof(why.text), "%s", event->text);
        rf_run_node_lost(fake->run, event->node, &why);
        break;
    case EV_MESSAGE:
        deliver_message(fake, event->node, event->type, event->payload);
        break;
    case EV_BUILT:
        build(fake, event->scenario);
        break;
    case EV_PLANNED:
        plan_all(fake);
        break;
    case EV_STOPPED:
        rf_run_stopped(fake->run);
        break;
    }
}

/* Handles one event or timer; false when there is none until `until_ns`. */
static bool advance(struct fake_cluster *fake, int64_t until_ns)
{
    struct fake_event *event = fake->events;
    int64_t next = event != NULL ? event->at_ns : INT64_MAX;
    if (fake->timer_ns < next) {
        if (fake->timer_ns > until_ns) {
            return false;
        }
        fake->now_ns = RF_MAX(fake->now_ns, fake->timer_ns);
        rf_run_tick(fake->run);
        return true;
    }
    if (next > until_ns || event == NULL) {
        return false;
    }
    fake->now_ns = RF_MAX(fake->now_ns, next);
    fake->events = event->next;
    deliver(fake, event);
    json_decref(event->payload);
    free(event);
    return true;
}

void fake_cluster_start(struct fake_cluster *fake)
{
    if (!fake->started) {
        fake->started = true;
        rf_run_start(fake->run);
    }
}

bool fake_cluster_run(struct fake_cluster *fake, int64_t limit_ns)
{
    int64_t until = fake->now_ns + limit_ns;
    fake_cluster_start(fake);
    while (!fake->done && advance(fake, until)) {
    }
    return fake->done;
}

bool fake_cluster_until(struct fake_cluster *fake, const char *state,
                        int64_t limit_ns)
{
    int64_t until = fake->now_ns + limit_ns;
    fake_cluster_start(fake);
    while (strcmp(rf_run_state(fake->run), state) != 0 && !fake->done) {
        if (!advance(fake, until)) {
            return false;
        }
    }
    return strcmp(rf_run_state(fake->run), state) == 0;
}

void fake_cluster_say(struct fake_cluster *fake, uint32_t node,
                      enum rf_msg_type type, json_t *payload)
{
    deliver_message(fake, node, type, payload);
    json_decref(payload);
}

/* --- Life ----------------------------------------------------------------- */

struct fake_cluster *fake_cluster_create(const char *text, const bool *skip,
                                         uint32_t timeout_s)
{
    return fake_cluster_with(
        text, (struct rf_run_options){.skip = skip, .timeout_s = timeout_s});
}

struct fake_cluster *fake_cluster_with(const char *text,
                                       struct rf_run_options options)
{
    struct fake_cluster *fake = rf_xcalloc(1, sizeof(*fake));
    configured(text, &fake->config, &fake->model);
    fake->now_ns = 1000 * FAKE_S;
    fake->timer_ns = INT64_MAX;
    fake->seen_limits = json_object();
    ck_assert_int_eq(
        rf_preflight_inspect_create(fake->config, &fake->inspect, NULL), RF_OK);
    options.inspect = fake->inspect;
    fake->run = rf_run_create(fake->config, &options, &fake_ops, fake);
    return fake;
}

void fake_cluster_fault(struct fake_cluster *fake, struct fake_fault fault)
{
    size_t i = 0;
    while (fake->faults[i].kind != FAKE_NO_FAULT) {
        i++;
        ck_assert_uint_lt(i, FAKE_FAULTS_MAX);
    }
    fake->faults[i] = fault;
}

void fake_cluster_destroy(struct fake_cluster *fake)
{
    while (fake->events != NULL) {
        struct fake_event *next = fake->events->next;
        json_decref(fake->events->payload);
        free(fake->events);
        fake->events = next;
    }
    for (size_t i = 0; i < fake->n_attempts; i++) {
        for (size_t f = 0; f < fake->attempts[i].n_faults; f++) {
            rf_fault_free(&fake->attempts[i].faults[f]);
        }
        free(fake->attempts[i].faults);
    }
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        ck_assert_msg(
            fake->faults[i].kind == FAKE_NO_FAULT || fake->faults[i].applied,
            "the run did not come to the fault at %s", fake->faults[i].step);
    }
    json_decref(fake->last_exchanged);
    json_decref(fake->seen_start);
    json_decref(fake->seen_limits);
    rf_run_destroy(fake->run);
    rf_preflight_inspect_destroy(fake->inspect);
    rf_model_destroy(fake->model);
    rf_config_destroy(fake->config);
    free(fake);
}

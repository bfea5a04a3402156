/* A simulated cluster. See fake_cluster.h. Events are kept in a list sorted by
 * time; what is sent at one moment arrives a millisecond later. */
#include "tests/lib/fake_cluster.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define WIRE_NS FAKE_MS
#define STEP_NS (10 * FAKE_MS)

enum event_kind { EV_HELLO, EV_LOST, EV_MESSAGE, EV_STOPPED };

struct fake_event {
    int64_t at_ns;
    enum event_kind kind;
    uint32_t node;
    enum rf_msg_type type;
    json_t *payload;
    const char *text;
    struct fake_event *next;
};

static void push(struct fake_cluster *fake, struct fake_event event)
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

static void push_message(struct fake_cluster *fake, int64_t after_ns,
                         uint32_t node, enum rf_msg_type type, json_t *payload)
{
    push(fake, (struct fake_event){.at_ns = fake->now_ns + after_ns,
                                   .kind = EV_MESSAGE,
                                   .node = node,
                                   .type = type,
                                   .payload = payload});
}

static const struct fake_fault *launch_fault(const struct fake_cluster *fake,
                                             uint32_t node)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        const struct fake_fault *fault = &fake->faults[i];
        if (fault->kind != FAKE_NO_FAULT && fault->step == NULL &&
            fault->node == node) {
            return fault;
        }
    }
    return NULL;
}

static const struct fake_fault *step_fault(const struct fake_cluster *fake,
                                           uint32_t node, const char *step,
                                           int64_t round)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        const struct fake_fault *fault = &fake->faults[i];
        if (fault->kind != FAKE_NO_FAULT && fault->step != NULL &&
            fault->node == node && strcmp(fault->step, step) == 0 &&
            (fault->round < 0 || fault->round == round) &&
            (fault->attempt == 0 || fault->attempt == fake->attempt)) {
            return fault;
        }
    }
    return NULL;
}

/* --- Operations -------------------------------------------------------------
 */

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

static json_t *hello_of(uint32_t node, const struct fake_fault *fault)
{
    int version = fault != NULL && fault->kind == FAKE_OLD_PROTOCOL ? 0 : 1;
    json_int_t memory = fault != NULL && fault->kind == FAKE_NO_MEMORY
                            ? 1000000
                            : INT64_C(1000000000000);
    json_t *hello = json_pack(
        "{s:[ii], s:i, s:s, s:s, s:s, s:s, s:I, s:{s:n, s:n, s:n}, s:[]}",
        "protocol", version, version, "node", (int)node, "version", "0.0.1",
        "build", "test", "boot_id", node == 0 ? "machine-a" : "machine-b",
        "address", "10.0.0.1", "memory_available_bytes", memory, "methods",
        "host", "tcp", "null", "gpus");
    if (fault != NULL && fault->kind == FAKE_NO_METHOD) {
        json_object_set_new(json_object_get(hello, "methods"), "host",
                            json_string("no shared memory"));
    }
    return hello;
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
            push(fake, (struct fake_event){.at_ns = fake->now_ns + FAKE_MS,
                                           .kind = EV_LOST,
                                           .node = i,
                                           .text = "connection refused"});
            continue;
        }
        push(fake, (struct fake_event){.at_ns = fake->now_ns + 50 * FAKE_MS,
                                       .kind = EV_HELLO,
                                       .node = i,
                                       .payload = hello_of(i, fault)});
    }
}

static void op_joined(void *data)
{
    ((struct fake_cluster *)data)->joined_called = true;
}

static json_t *prepare_answer(const struct fake_cluster *fake)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:{s:i, s:i, s:i}}", "plan_digest",
                     fake->plan_digest, "schedule_digest",
                     fake->schedule_digest, "plan_ms", 1.5, "open_ms", 2.5,
                     "arena_bytes", "train", 1, "infer", 2, "stage", 3);
}

static json_t *run_answer(const struct fake_cluster *fake, uint32_t rank)
{
    json_int_t start = fake->now_ns + 30 * FAKE_MS + rank * 1000;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                     "start_ns", start, "end_ns", start + 5 * FAKE_MS, "ns",
                     (json_int_t)(5 * FAKE_MS), "pack_ns", (json_int_t)0,
                     "wire_ns", (json_int_t)(4 * FAKE_MS), "unpack_ns",
                     (json_int_t)0, "sync_ns", (json_int_t)1000, "sent_bytes",
                     (json_int_t)100, "received_bytes", (json_int_t)100);
}

/* What a healthy rank answers. */
static json_t *good_answer(const struct fake_cluster *fake, uint32_t rank,
                           const char *step, const json_t *args)
{
    const char *kind = json_string_value(json_object_get(args, "kind"));
    if (strcmp(step, "prepare") == 0) {
        return prepare_answer(fake);
    }
    if (strcmp(step, "probe") == 0) {
        if (strcmp(kind, "link") == 0 &&
            json_integer_value(json_object_get(args, "to")) != rank) {
            return json_object();
        }
        return json_pack("{s:f, s:f, s:f}", "gbytes_per_s", 2.0,
                         "single_gbytes_per_s", 3.0, "latency_us", 20.0);
    }
    if (strcmp(step, "run") == 0) {
        return run_answer(fake, rank);
    }
    if (strcmp(step, "verify") == 0) {
        return json_pack("{s:i, s:i, s:n}", "checked_bytes", 1000,
                         "mismatched_bytes", 0, "first");
    }
    if (strcmp(step, "close") == 0) {
        return json_pack("{s:i, s:i}", "host_peak_bytes", 5000,
                         "device_peak_bytes", 0);
    }
    return json_object();
}

static json_t *answers_of(const struct fake_cluster *fake, uint32_t node,
                          const char *step, const json_t *args)
{
    json_t *list = json_array();
    for (uint32_t r = 0; r < fake->one->world->n_ranks; r++) {
        if (fake->one->world->ranks[r].node == node) {
            json_t *answer = good_answer(fake, r, step, args);
            json_object_set_new(answer, "rank", json_integer(r));
            json_object_set_new(answer, "ok", json_true());
            json_array_append_new(list, answer);
        }
    }
    return list;
}

static void break_number(json_t *answer)
{
    static const char *const keys[] = {"plan_ms", "gbytes_per_s", "ns",
                                       "checked_bytes", "host_peak_bytes"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        if (json_object_get(answer, keys[i]) != NULL) {
            json_object_set_new(answer, keys[i], json_integer(-1));
        }
    }
}

/* Changes a node's answers as the fault says. */
static void spoil(const struct fake_fault *fault, json_t *list)
{
    json_t *first = json_array_get(list, 0);
    switch (fault->kind) {
    case FAKE_WRONG_DIGEST:
        json_object_set_new(first, "plan_digest",
                            json_string("00000000000000000000000000000000"));
        break;
    case FAKE_MISMATCH:
        json_object_set_new(first, "mismatched_bytes", json_integer(1));
        json_object_set_new(first, "first",
                            json_pack("{s:s, s:[ii], s:s, s:s}", "tensor",
                                      "model.norm.weight", "index", 3, 4,
                                      "expected", "00ff", "found", "01ff"));
        break;
    case FAKE_RANK_ERROR:
        json_object_update_new(
            first, json_pack("{s:b, s:s, s:s, s:s}", "ok", 0, "status",
                             "out of memory", "error", "wanted 5 GB, 1 GB free",
                             "phase", "allocating"));
        break;
    case FAKE_WRONG_RANK:
        json_object_set_new(first, "rank", json_integer(99));
        break;
    case FAKE_RANK_MISSING:
        json_array_remove(list, 0);
        break;
    case FAKE_BAD_NUMBER:
        break_number(first);
        break;
    default:
        break;
    }
}

static uint32_t first_rank_of(const struct fake_cluster *fake, uint32_t node)
{
    uint32_t rank = 0;
    while (fake->one->world->ranks[rank].node != node) {
        rank++;
    }
    return rank;
}

static json_t *done_of(const struct fake_cluster *fake, uint64_t seq,
                       json_t *ranks)
{
    return json_pack("{s:I, s:I, s:o}", "attempt", (json_int_t)fake->attempt,
                     "seq", (json_int_t)seq, "ranks", ranks);
}

static void kill_rank(struct fake_cluster *fake, uint32_t node, int64_t after)
{
    push_message(fake, after, node, RF_MSG_RANK_EXIT,
                 json_pack("{s:I, s:i, s:i, s:n, s:i, s:s, s:[s]}", "attempt",
                           (json_int_t)fake->attempt, "rank",
                           (int)first_rank_of(fake, node), "pid", 4711,
                           "status", "signal", 9, "phase", "running", "stderr",
                           "the rank's last words"));
}

/* Faults that are not an answer; false when the node still answers. */
static bool misbehave(struct fake_cluster *fake, uint32_t node,
                      const struct fake_fault *fault, uint64_t seq)
{
    uint32_t other = node == 0 ? 1 : 0;
    switch (fault->kind) {
    case FAKE_SILENT:
        return true;
    case FAKE_RANK_KILLED:
        kill_rank(fake, node, STEP_NS);
        return true;
    case FAKE_PEER_NOTICES:
        push_message(fake, STEP_NS / 2, other, RF_MSG_DONE,
                     done_of(fake, seq,
                             json_pack("[{s:i, s:b, s:s, s:s}]", "rank",
                                       (int)first_rank_of(fake, other), "ok", 0,
                                       "status", "peer lost", "error",
                                       "rank 0 closed the connection")));
        kill_rank(fake, node, STEP_NS);
        return true;
    case FAKE_NODE_LOST:
        push(fake, (struct fake_event){.at_ns = fake->now_ns + STEP_NS,
                                       .kind = EV_LOST,
                                       .node = node,
                                       .text = "silent for 15.0 s"});
        return true;
    case FAKE_NOT_ASKED:
        push_message(fake, STEP_NS, node, RF_MSG_DONE,
                     done_of(fake, seq + 7, json_array()));
        return true;
    case FAKE_ERROR_MESSAGE:
        push_message(fake, STEP_NS, node, RF_MSG_ERROR,
                     json_pack("{s:s}", "text", "cannot go on"));
        return true;
    default:
        return false;
    }
}

static void answer_step(struct fake_cluster *fake, uint32_t node,
                        const json_t *args)
{
    const char *step = json_string_value(json_object_get(args, "step"));
    uint64_t seq = (uint64_t)json_integer_value(json_object_get(args, "seq"));
    const json_t *index = json_object_get(args, "index");
    const struct fake_fault *fault =
        step_fault(fake, node, step,
                   json_is_integer(index) ? json_integer_value(index) : -1);
    int64_t wait = STEP_NS + (strcmp(step, "run") == 0 ? 40 * FAKE_MS : 0);
    json_t *list;
    if (fault != NULL && misbehave(fake, node, fault, seq)) {
        return;
    }
    list = answers_of(fake, node, step, args);
    if (fault != NULL) {
        spoil(fault, list);
    }
    if (fault != NULL && fault->kind == FAKE_TWICE) {
        push_message(fake, wait, node, RF_MSG_DONE,
                     done_of(fake, seq, json_incref(list)));
        push_message(fake, wait + FAKE_MS, node, RF_MSG_DONE,
                     done_of(fake, seq - 1, json_array()));
    }
    push_message(fake, wait, node, RF_MSG_DONE, done_of(fake, seq, list));
}

static bool answers_abort(const struct fake_cluster *fake, uint32_t node)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        if (fake->faults[i].no_aborted && fake->faults[i].node == node) {
            return false;
        }
    }
    return true;
}

static void op_send(uint32_t node, enum rf_msg_type type, json_t *payload,
                    void *data)
{
    struct fake_cluster *fake = data;
    switch (type) {
    case RF_MSG_START:
        fake->starts++;
        fake->attempt =
            (uint32_t)json_integer_value(json_object_get(payload, "attempt"));
        json_decref(fake->seen_start);
        fake->seen_start = json_incref(payload);
        break;
    case RF_MSG_STEP:
        answer_step(fake, node, payload);
        break;
    case RF_MSG_ABORT:
        fake->aborts++;
        if (answers_abort(fake, node)) {
            push_message(fake, 5 * WIRE_NS, node, RF_MSG_ABORTED,
                         json_pack("{s:O, s:[]}", "attempt",
                                   json_object_get(payload, "attempt"),
                                   "unkillable"));
        }
        break;
    case RF_MSG_SHUTDOWN:
        fake->shutdowns++;
        break;
    case RF_MSG_EXCHANGED:
        fake->exchanged++;
        json_decref(fake->last_exchanged);
        fake->last_exchanged = json_incref(payload);
        break;
    default:
        break;
    }
    json_decref(payload);
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
        push(fake, (struct fake_event){.at_ns = fake->now_ns + 10 * FAKE_MS,
                                       .kind = EV_STOPPED});
    }
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
    (void)data;
    ck_assert_ptr_nonnull(view->state);
    ck_assert_uint_le(view->scenario_at, view->n_scenarios);
}

static void op_begin(const struct rf_attempt *attempt, void *data)
{
    struct fake_cluster *fake = data;
    fake->one = attempt->one;
    rf_hash_text(&attempt->one->plan->digest, fake->plan_digest);
    rf_hash_text(&attempt->one->schedule->digest, fake->schedule_digest);
}

static void op_end(const struct rf_attempt *attempt, void *data)
{
    struct fake_cluster *fake = data;
    struct fake_attempt *kept = &fake->attempts[fake->n_attempts++];
    ck_assert_uint_le(fake->n_attempts, FAKE_ATTEMPTS_MAX);
    snprintf(kept->name, sizeof(kept->name), "%s",
             fake->config->scenarios[attempt->index].name);
    kept->outcome = attempt->outcome;
    kept->n_iterations = attempt->n_iterations;
    kept->rounds = attempt->rounds;
    kept->checked_bytes = attempt->checked_bytes;
    kept->mismatched_bytes = attempt->mismatched_bytes;
    kept->errors = json_deep_copy(attempt->errors);
    kept->probed_before = attempt->probed_before;
    kept->probed_after = attempt->probed_after;
    kept->closed = attempt->closed;
    if (attempt->one != NULL) {
        kept->copy_gbytes_per_s = attempt->before.copy_gbytes_per_s[0];
        kept->pair_gbytes_per_s = attempt->before.n_nodes > 1
                                      ? attempt->before.pair_gbytes_per_s[1]
                                      : 0;
    }
}

static void op_done(int exit_code, void *data)
{
    struct fake_cluster *fake = data;
    ck_assert(!fake->done);
    fake->done = true;
    fake->exit_code = exit_code;
}

static const struct rf_run_ops fake_ops = {
    op_now,  op_utc,        op_arm,    op_launch,   op_joined, op_send, op_drop,
    op_stop, op_round_trip, op_random, op_progress, op_begin,  op_end,  op_done,
};

/* --- Time --------------------------------------------------------------------
 */

static void deliver(struct fake_cluster *fake, struct fake_event *event)
{
    struct rf_err why = {.status = RF_ERR_PEER};
    switch (event->kind) {
    case EV_HELLO:
        rf_run_hello(fake->run, event->node, event->payload);
        break;
    case EV_LOST:
        snprintf(why.text, sizeof(why.text), "%s", event->text);
        rf_run_node_lost(fake->run, event->node, &why);
        break;
    case EV_MESSAGE:
        rf_run_message(fake->run, event->node, event->type, event->payload);
        break;
    case EV_STOPPED:
        rf_run_stopped(fake->run);
        break;
    }
}

/* One event or timer; false when there is none before `until_ns`. */
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

bool fake_cluster_run(struct fake_cluster *fake, int64_t limit_ns)
{
    int64_t until = fake->now_ns + limit_ns;
    while (!fake->done && advance(fake, until)) {
    }
    return fake->done;
}

bool fake_cluster_until(struct fake_cluster *fake, const char *state,
                        int64_t limit_ns)
{
    int64_t until = fake->now_ns + limit_ns;
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
    rf_run_message(fake->run, node, type, payload);
    json_decref(payload);
}

/* --- Life --------------------------------------------------------------------
 */

struct fake_cluster *fake_cluster_create(const char *text, const bool *skip,
                                         uint32_t timeout_s)
{
    struct fake_cluster *fake = rf_xcalloc(1, sizeof(*fake));
    struct rf_err err = {0};
    json_t *document = NULL;
    struct rf_jnode node;
    ck_assert_msg(rf_json_parse(text, strlen(text), "test", &document, &err) ==
                      RF_OK,
                  "%s", err.text);
    ck_assert_msg(rf_config_from_json(document, "test.json", true,
                                      &fake->config, &err) == RF_OK,
                  "%s", err.text);
    node = rf_jnode_root(fake->config->model, "test.json");
    ck_assert_msg(rf_model_from_json(&node, &fake->model, &err) == RF_OK, "%s",
                  err.text);
    fake->now_ns = 1000 * FAKE_S;
    fake->timer_ns = INT64_MAX;
    fake->run = rf_run_create(fake->config, fake->model, skip, timeout_s,
                              &fake_ops, fake);
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

void fake_cluster_start(struct fake_cluster *fake)
{
    rf_run_start(fake->run);
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
        json_decref(fake->attempts[i].errors);
    }
    json_decref(fake->last_exchanged);
    json_decref(fake->seen_start);
    rf_run_destroy(fake->run);
    rf_model_destroy(fake->model);
    rf_config_destroy(fake->config);
    free(fake);
}

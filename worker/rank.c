/*
 * The rank process. See rank.h.
 *
 * The main thread never waits: it reads the agent's messages, hands steps to
 * the data thread through a short queue, sends what that thread has for the
 * agent, renews the lease and watches the agent's. The data thread may be deep
 * in a method; an abort reaches it through a flag, and if it does not end in
 * time the process ends without it (_exit: exit handlers of device libraries
 * can hang). When the agent is gone the process ends at once.
 *
 * Shared between the threads, under `lock`: the queue of steps, the outbox, the
 * exchange. `abort` is read without it.
 */
#include "worker/rank.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "transport/conn.h"
#include "transport/loop.h"
#include "worker/exec.h"
#include "worker/process.h"

#define QUEUE_STEPS 4

struct message {
    enum rf_msg_type type;
    json_t *payload;
};

struct rank {
    const struct rf_rank_options *options;
    uv_loop_t loop;
    struct rf_conn *conn;
    uv_async_t wake; /* the outbox has something, or the thread has ended */
    uv_timer_t lease, abort_timer;
    int64_t tick_ns, lease_grace_ns;
    bool leaving; /* the end of the connection is wanted */
    pthread_t thread;
    bool thread_started;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool abort;
    json_t *start; /* taken by the data thread */
    json_t *steps[QUEUE_STEPS];
    size_t n_steps;
    struct message *outbox;
    size_t n_outbox, cap_outbox;
    bool thread_ended;
    json_int_t attempt, exchange_seq;
    json_t *exchanged; /* answer to exchange_seq, taken by the data thread */
};

/* --- Data thread ---------------------------------------------------------- */

static void post(struct rank *rank, enum rf_msg_type type, json_t *payload)
{
    pthread_mutex_lock(&rank->lock);
    RF_PUSH(rank->outbox, rank->n_outbox, rank->cap_outbox,
            ((struct message){type, payload}));
    pthread_mutex_unlock(&rank->lock);
    uv_async_send(&rank->wake);
}

/* Waits for the answer to the exchange that was just sent. Holds `lock`. */
static json_t *await_exchanged(struct rank *rank, int64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / RF_NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % RF_NS_PER_S)};
    json_t *answer;
    while (rank->exchanged == NULL && !atomic_load(&rank->abort) &&
           rf_now_ns() < deadline_ns) {
        pthread_cond_timedwait(&rank->changed, &rank->lock, &until);
    }
    answer = rank->exchanged;
    rank->exchanged = NULL;
    return answer;
}

static enum rf_status decode_exchanged(const json_t *answer,
                                       struct rf_blob **all, uint32_t *n_all,
                                       struct rf_err *err)
{
    const json_t *data = json_object_get(answer, "data");
    size_t n = json_array_size(data);
    struct rf_blob *blobs = rf_xcalloc(n, sizeof(*blobs));
    for (size_t i = 0; i < n; i++) {
        const json_t *part = json_array_get(data, i);
        size_t size = json_string_length(part) / 2;
        if (!json_is_string(part)) {
            goto bad;
        }
        blobs[i].data = size > 0 ? rf_xmalloc(size) : NULL;
        blobs[i].size = size;
        if (size > 0 &&
            !rf_hex_decode(json_string_value(part), blobs[i].data, size)) {
            goto bad;
        }
    }
    *all = blobs;
    *n_all = (uint32_t)n;
    return RF_OK;
bad:
    rf_blobs_free(blobs, (uint32_t)n);
    free(blobs);
    return rf_err_set(err, RF_ERR_PROTOCOL, "EXCHANGED is not well-formed");
}

static enum rf_status exchange(void *data, const void *mine, size_t size,
                               int64_t deadline_ns, struct rf_blob **all,
                               uint32_t *n_all, struct rf_err *err)
{
    struct rank *rank = data;
    char *hex = rf_xmalloc(2 * size + 1);
    json_t *answer, *message;
    enum rf_status status;
    rf_hex_encode(mine, size, hex);
    message = json_pack("{s:I, s:I, s:[{s:i, s:s}]}", "attempt", rank->attempt,
                        "seq", rank->exchange_seq, "parts", "rank",
                        (int)rank->options->rank, "data", hex);
    free(hex);
    post(rank, RF_MSG_EXCHANGE, message);
    pthread_mutex_lock(&rank->lock);
    answer = await_exchanged(rank, deadline_ns);
    rank->exchange_seq++;
    pthread_mutex_unlock(&rank->lock);
    if (answer == NULL) {
        return atomic_load(&rank->abort)
                   ? rf_err_set(err, RF_ERR_ABORTED, "aborted")
                   : rf_err_set(err, RF_ERR_TIMEOUT,
                                "the other ranks did not come to the exchange");
    }
    status = decode_exchanged(answer, all, n_all, err);
    json_decref(answer);
    return status;
}

/* The next step, NULL when there will be none. */
static json_t *next_step(struct rank *rank)
{
    json_t *step = NULL;
    pthread_mutex_lock(&rank->lock);
    while (rank->n_steps == 0 && !atomic_load(&rank->abort)) {
        pthread_cond_wait(&rank->changed, &rank->lock);
    }
    if (!atomic_load(&rank->abort)) {
        step = rank->steps[0];
        rank->n_steps--;
        memmove(rank->steps, rank->steps + 1,
                rank->n_steps * sizeof(rank->steps[0]));
    }
    pthread_mutex_unlock(&rank->lock);
    return step;
}

static void *data_thread(void *data)
{
    struct rank *rank = data;
    struct rf_exec_env env = {.rank = rank->options->rank,
                              .abort = &rank->abort,
                              .exchange = exchange,
                              .exchange_data = rank};
    struct rf_exec *exec = rf_exec_create(rank->start, &env);
    while (!rf_exec_closed(exec)) {
        json_t *step = next_step(rank);
        if (step == NULL) {
            break;
        }
        post(rank, RF_MSG_DONE, rf_exec_step(exec, step));
        json_decref(step);
    }
    rf_exec_destroy(exec);
    pthread_mutex_lock(&rank->lock);
    rank->thread_ended = true;
    pthread_mutex_unlock(&rank->lock);
    uv_async_send(&rank->wake);
    return NULL;
}

/* --- Main thread ---------------------------------------------------------- */

/* A message that goes to the data thread goes whole: Jansson's counters are no
 * way to share a value between threads. The next three take it. */

static void on_start(struct rank *rank, json_t *start)
{
    int failed;
    if (rank->thread_started) {
        rf_warn("a second START is ignored");
        json_decref(start);
        return;
    }
    rank->start = start;
    rank->attempt = json_integer_value(json_object_get(start, "attempt"));
    failed = pthread_create(&rank->thread, NULL, data_thread, rank);
    if (failed != 0) {
        rf_error("cannot start a thread: %s", strerror(failed));
        _exit(1);
    }
    rank->thread_started = true;
}

static void on_step(struct rank *rank, json_t *step)
{
    bool full;
    pthread_mutex_lock(&rank->lock);
    full = rank->n_steps == QUEUE_STEPS;
    if (!full) {
        rank->steps[rank->n_steps++] = step;
    }
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    if (full) {
        rf_error("more steps than can wait");
        _exit(1);
    }
}

static void on_exchanged(struct rank *rank, json_t *answer)
{
    pthread_mutex_lock(&rank->lock);
    if (json_integer_value(json_object_get(answer, "seq")) ==
            rank->exchange_seq &&
        rank->exchanged == NULL) {
        rank->exchanged = answer;
        answer = NULL;
    }
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    json_decref(answer);
}

static void on_abort_overdue(uv_timer_t *timer)
{
    (void)timer;
    rf_error("the abort did not end in time");
    _exit(RF_EXIT_STUCK);
}

static void on_abort(struct rank *rank)
{
    if (!rank->thread_started) {
        _exit(0);
    }
    pthread_mutex_lock(&rank->lock);
    atomic_store(&rank->abort, true);
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    uv_timer_start(&rank->abort_timer, on_abort_overdue,
                   rank->options->abort_ms, 0);
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct rank *rank = data;
    struct rf_err err;
    json_t *message = NULL;
    if (frame->type == RF_MSG_LEASE) {
        return;
    }
    if (rf_msg_parse(frame, &message, &err) != RF_OK) {
        rf_conn_fail(conn, &err);
        return;
    }
    switch (frame->type) {
    case RF_MSG_START:
        on_start(rank, message);
        break;
    case RF_MSG_STEP:
        on_step(rank, message);
        break;
    case RF_MSG_EXCHANGED:
        on_exchanged(rank, message);
        break;
    case RF_MSG_ABORT:
        on_abort(rank);
        json_decref(message);
        break;
    default:
        json_decref(message);
        break;
    }
}

static void on_ready(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data;
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct rank *rank = data;
    (void)conn;
    if (!rank->leaving) {
        rf_error("the agent is gone%s%s", why->status != RF_OK ? ": " : "",
                 why->status != RF_OK ? why->text : "");
        _exit(1);
    }
    rank->conn = NULL;
}

static const struct rf_conn_ops agent_ops = {on_ready, on_frame, on_close};

static void leave(struct rank *rank)
{
    rank->leaving = true;
    pthread_join(rank->thread, NULL);
    uv_close((uv_handle_t *)&rank->wake, NULL);
    uv_close((uv_handle_t *)&rank->lease, NULL);
    uv_close((uv_handle_t *)&rank->abort_timer, NULL);
    rf_conn_close(rank->conn);
}

static void on_wake(uv_async_t *async)
{
    struct rank *rank = async->data;
    struct message *outbox;
    size_t n;
    bool ended;
    pthread_mutex_lock(&rank->lock);
    outbox = rank->outbox;
    n = rank->n_outbox;
    ended = rank->thread_ended;
    rank->outbox = NULL;
    rank->n_outbox = rank->cap_outbox = 0;
    pthread_mutex_unlock(&rank->lock);
    for (size_t i = 0; i < n; i++) {
        rf_conn_send(rank->conn, outbox[i].type, rank->options->rank,
                     outbox[i].payload);
    }
    free(outbox);
    if (ended && !rank->leaving) {
        leave(rank);
    }
}

static void on_lease(uv_timer_t *timer)
{
    struct rank *rank = timer->data;
    const struct rf_rank_options *options = rank->options;
    int64_t now = rf_now_ns();
    /* A process that was stopped must not judge the agent by that time. */
    if (now - rank->tick_ns > options->lease_ms * RF_NS_PER_MS / 3) {
        rank->lease_grace_ns = now + options->lease_period_ms * RF_NS_PER_MS;
    }
    rank->tick_ns = now;
    if (now > rank->lease_grace_ns && now - rf_conn_last_heard_ns(rank->conn) >
                                          options->lease_ms * RF_NS_PER_MS) {
        rf_error("the agent has been silent too long");
        _exit(1);
    }
    rf_conn_send(rank->conn, RF_MSG_LEASE, options->rank,
                 json_pack("{s:I}", "t", (json_int_t)now));
}

static void init_locks(struct rank *rank)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&rank->lock, NULL);
    pthread_cond_init(&rank->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_init(&rank->abort, false);
}

int rf_rank_run(const struct rf_rank_options *options)
{
    struct rank rank = {.options = options};
    struct rf_err err = {.text = ""};
    uv_pipe_t *pipe;
    if (!rf_process_bind_to_parent(options->parent)) {
        return 1;
    }
    rf_process_name_rank(options->rank);
    signal(SIGPIPE, SIG_IGN);
    init_locks(&rank);
    if (rf_loop_init(&rank.loop, &err) != RF_OK) {
        rf_error("%s", err.text);
        return 1;
    }
    uv_async_init(&rank.loop, &rank.wake, on_wake);
    uv_timer_init(&rank.loop, &rank.lease);
    uv_timer_init(&rank.loop, &rank.abort_timer);
    rank.wake.data = rank.lease.data = &rank;
    pipe = rf_xmalloc(sizeof(*pipe));
    uv_pipe_init(&rank.loop, pipe, 0);
    if (uv_pipe_open(pipe, RF_RANK_CONTROL_FD) != 0) {
        rf_error("descriptor %d is not a socket to an agent",
                 RF_RANK_CONTROL_FD);
        return 2;
    }
    rank.conn = rf_conn_open((uv_stream_t *)pipe, NULL, &agent_ops, &rank);
    rank.tick_ns = rf_now_ns();
    uv_timer_start(&rank.lease, on_lease, options->lease_period_ms,
                   options->lease_period_ms);
    uv_run(&rank.loop, UV_RUN_DEFAULT);
    uv_loop_close(&rank.loop);
    for (size_t i = 0; i < rank.n_steps; i++) {
        json_decref(rank.steps[i]);
    }
    json_decref(rank.exchanged);
    pthread_cond_destroy(&rank.changed);
    pthread_mutex_destroy(&rank.lock);
    return 0;
}

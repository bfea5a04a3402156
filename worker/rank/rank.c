/*
 * The rank process. See rank.h.
 *
 * The main thread never waits: it reads the agent's messages, queues steps for
 * the data thread, sends that thread's messages, renews its lease and watches
 * the agent's. The data thread may be deep in a method: an abort reaches it
 * through a flag, and if it does not end in time the process exits without it
 * (_exit: exit handlers of device libraries can hang). When the agent is gone
 * the process exits at once.
 *
 * Shared between the threads, under `lock`: the queue of steps, the outbox, the
 * exchange. `abort` and `reading` are read without it.
 */
#include "worker/rank/rank.h"

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
#include "common/spawn.h"
#include "transport/control/conn.h"
#include "transport/net/loop.h"
#include "worker/rank/attempt.h"
#include "worker/shared/process.h"

#define QUEUE_STEPS 4

struct rank {
    const struct rf_rank_options *options;
    uv_loop_t loop;
    struct rf_conn *conn;
    uv_async_t wake; /* outbox not empty, or thread ended */
    uv_timer_t lease, abort_timer;
    int64_t tick_ns, lease_grace_ns;
    bool leaving; /* we close the connection */
    pthread_t thread;
    bool thread_started;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool abort;
    struct rf_reading reading; /* read without the lock */
    struct rf_msg_start start; /* taken by the data thread */
    struct rf_msg_step steps[QUEUE_STEPS];
    size_t n_steps;
    struct rf_msg *outbox;
    size_t n_outbox, cap_outbox;
    bool thread_ended;
    uint32_t attempt;
    uint64_t exchange_seq;
    bool has_exchanged; /* the answer to exchange_seq is here */
    struct rf_msg_exchanged exchanged;
};

/* --- Data thread ---------------------------------------------------------- */

/* Takes over `message`. */
static void post(struct rank *rank, const struct rf_msg *message)
{
    pthread_mutex_lock(&rank->lock);
    RF_PUSH(rank->outbox, rank->n_outbox, rank->cap_outbox, *message);
    pthread_mutex_unlock(&rank->lock);
    uv_async_send(&rank->wake);
}

static void post_exchange(struct rank *rank, const void *mine, size_t size)
{
    struct rf_msg message;
    struct rf_msg_share *share = rf_schema_new(&rf_msg_share_schema);
    share->rank = rank->options->rank;
    share->data = rf_xmalloc(2 * size + 1);
    rf_hex_encode(mine, size, share->data);
    rf_msg_init(&message, RF_MSG_EXCHANGE);
    message.exchange.attempt = rank->attempt;
    message.exchange.seq = rank->exchange_seq;
    message.exchange.parts = share;
    message.exchange.n_parts = 1;
    post(rank, &message);
}

/* Waits for the answer to the exchange just sent; false if none came. Call with
 * `lock` held. */
static bool await_exchanged(struct rank *rank, int64_t deadline_ns,
                            struct rf_msg_exchanged *out)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / RF_NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % RF_NS_PER_S)};
    bool came;
    while (!rank->has_exchanged && !atomic_load(&rank->abort) &&
           rf_now_ns() < deadline_ns) {
        pthread_cond_timedwait(&rank->changed, &rank->lock, &until);
    }
    came = rank->has_exchanged;
    rank->has_exchanged = false;
    if (came) {
        *out = rank->exchanged;
    }
    return came;
}

/* A single part means that all parts are equal. */
static enum rf_status take_parts(const struct rf_msg_exchanged *answer,
                                 struct rf_blob *all, uint32_t n,
                                 struct rf_err *err)
{
    const size_t n_parts = answer->data.n;
    if (n_parts != 1 && n_parts != n) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "an exchange of %" PRIu32 " ranks has %zu parts", n,
                          n_parts);
    }
    for (uint32_t r = 0; r < n; r++) {
        const char *part = answer->data.list[n_parts == 1 ? 0 : r];
        const size_t size = strlen(part) / 2;
        all[r].data = size > 0 ? rf_xmalloc(size) : NULL;
        all[r].size = size;
        if (size > 0 && !rf_hex_decode(part, all[r].data, size)) {
            rf_blobs_free(all, n);
            return rf_err_set(
                err, RF_ERR_PROTOCOL,
                "EXCHANGED: $.data[%" PRIu32 "]: must be hexadecimal", r);
        }
    }
    return RF_OK;
}

static enum rf_status exchange(void *data,
                               const struct rf_rank_attempt_exchange *exchange,
                               struct rf_err *err)
{
    struct rank *rank = data;
    struct rf_msg_exchanged answer;
    enum rf_status status;
    bool came;
    post_exchange(rank, exchange->mine, exchange->size);
    pthread_mutex_lock(&rank->lock);
    came = await_exchanged(rank, exchange->deadline_ns, &answer);
    rank->exchange_seq++;
    pthread_mutex_unlock(&rank->lock);
    if (!came) {
        return atomic_load(&rank->abort)
                   ? rf_err_set(err, RF_ERR_ABORTED, "aborted")
                   : rf_err_set(err, RF_ERR_TIMEOUT,
                                "the other ranks did not join the exchange");
    }
    status = take_parts(&answer, exchange->all, exchange->n, err);
    rf_schema_free(&rf_msg_exchanged_schema, &answer);
    return status;
}

/* The next step; false on abort. */
static bool next_step(struct rank *rank, struct rf_msg_step *step)
{
    bool got;
    pthread_mutex_lock(&rank->lock);
    while (rank->n_steps == 0 && !atomic_load(&rank->abort)) {
        pthread_cond_wait(&rank->changed, &rank->lock);
    }
    got = !atomic_load(&rank->abort);
    if (got) {
        *step = rank->steps[0];
        rank->n_steps--;
        memmove(rank->steps, rank->steps + 1,
                rank->n_steps * sizeof(rank->steps[0]));
    }
    pthread_mutex_unlock(&rank->lock);
    return got;
}

static void *data_thread(void *data)
{
    struct rank *rank = data;
    struct rf_rank_attempt_env env = {.rank = rank->options->rank,
                                      .abort = &rank->abort,
                                      .reading = &rank->reading,
                                      .exchange = exchange,
                                      .exchange_data = rank};
    struct rf_rank_attempt *attempt =
        rf_rank_attempt_create(&rank->start, &env);
    struct rf_msg_step step;
    while (!rf_rank_attempt_closed(attempt) && next_step(rank, &step)) {
        struct rf_msg message = {.type = RF_MSG_DONE};
        rf_rank_attempt_step(attempt, &step, &message.done);
        post(rank, &message);
        rf_schema_free(&rf_msg_step_schema, &step);
    }
    rf_rank_attempt_destroy(attempt);
    pthread_mutex_lock(&rank->lock);
    rank->thread_ended = true;
    pthread_mutex_unlock(&rank->lock);
    uv_async_send(&rank->wake);
    return NULL;
}

/* --- Main thread ---------------------------------------------------------- */

/* Messages move to the data thread as a whole: START holds Jansson trees, whose
 * reference counts threads cannot share. The next three functions take over
 * their message. */

static void on_start(struct rank *rank, struct rf_msg_start *start)
{
    int failed;
    if (rank->thread_started) {
        rf_warn("ignored a second START");
        rf_schema_free(&rf_msg_start_schema, start);
        return;
    }
    rank->attempt = start->attempt;
    rank->start = *start;
    failed = pthread_create(&rank->thread, NULL, data_thread, rank);
    if (failed != 0) {
        rf_error("cannot start a thread%s: %s", rf_spawn_limits(failed),
                 strerror(failed));
        _exit(1);
    }
    rank->thread_started = true;
}

static void on_step(struct rank *rank, const struct rf_msg_step *step)
{
    bool full;
    pthread_mutex_lock(&rank->lock);
    full = rank->n_steps == QUEUE_STEPS;
    if (!full) {
        rank->steps[rank->n_steps++] = *step;
    }
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    if (full) {
        rf_error("too many queued steps");
        _exit(1);
    }
}

static void on_exchanged(struct rank *rank, struct rf_msg_exchanged *answer)
{
    bool wanted;
    pthread_mutex_lock(&rank->lock);
    wanted = answer->seq == rank->exchange_seq && !rank->has_exchanged;
    if (wanted) {
        rank->exchanged = *answer;
        rank->has_exchanged = true;
    }
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    if (!wanted) {
        rf_schema_free(&rf_msg_exchanged_schema, answer);
    }
}

static void on_abort_overdue(uv_timer_t *timer)
{
    (void)timer;
    rf_error("the rank could not stop its transfers in time");
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
    struct rf_msg message;
    if (frame->type == RF_MSG_LEASE) {
        return;
    }
    if (rf_msg_read(frame, &message, &err) != RF_OK) {
        rf_conn_fail(conn, &err);
        return;
    }
    switch (message.type) {
    case RF_MSG_START:
        on_start(rank, &message.start);
        break;
    case RF_MSG_STEP:
        on_step(rank, &message.step);
        break;
    case RF_MSG_EXCHANGED:
        on_exchanged(rank, &message.exchanged);
        break;
    case RF_MSG_ABORT:
        on_abort(rank);
        rf_msg_free(&message);
        break;
    default:
        rf_msg_free(&message);
        break;
    }
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

static const struct rf_conn_ops agent_ops = {NULL, on_frame, on_close};

static void send_message(struct rank *rank, const struct rf_msg *message)
{
    rf_conn_send(rank->conn, message->type, rank->options->rank,
                 rf_msg_json(message));
}

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
    struct rf_msg *outbox;
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
        send_message(rank, &outbox[i]);
        rf_msg_free(&outbox[i]);
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
    struct rf_msg lease;
    int64_t now = rf_now_ns();
    /* Time in which this process was stopped must not count against the
     * agent. */
    if (now - rank->tick_ns > options->lease_ms * RF_NS_PER_MS / 3) {
        rank->lease_grace_ns = now + options->lease_period_ms * RF_NS_PER_MS;
    }
    rank->tick_ns = now;
    if (now > rank->lease_grace_ns && now - rf_conn_last_heard_ns(rank->conn) >
                                          options->lease_ms * RF_NS_PER_MS) {
        rf_error("the agent has been silent too long");
        _exit(1);
    }
    rf_msg_init(&lease, RF_MSG_LEASE);
    lease.lease.t = now;
    if (atomic_load(&rank->reading.of_bytes) > 0) {
        lease.lease.done_bytes = atomic_load(&rank->reading.done_bytes);
        lease.lease.of_bytes = atomic_load(&rank->reading.of_bytes);
    }
    send_message(rank, &lease);
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
    rank->reading.abort = &rank->abort;
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
    if (!rf_loop_may_open(RF_RANK_CONTROL_FD)) {
        rf_error("descriptor %d is not a socket to an agent",
                 RF_RANK_CONTROL_FD);
        return 2;
    }
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
    uv_pipe_open(pipe, RF_RANK_CONTROL_FD); /* a socket, checked above */
    rank.conn = rf_conn_open((uv_stream_t *)pipe, NULL, &agent_ops, &rank);
    rank.tick_ns = rf_now_ns();
    uv_timer_start(&rank.lease, on_lease, options->lease_period_ms,
                   options->lease_period_ms);
    uv_run(&rank.loop, UV_RUN_DEFAULT);
    uv_loop_close(&rank.loop);
    for (size_t i = 0; i < rank.n_steps; i++) {
        rf_schema_free(&rf_msg_step_schema, &rank.steps[i]);
    }
    if (rank.has_exchanged) {
        rf_schema_free(&rf_msg_exchanged_schema, &rank.exchanged);
    }
    pthread_cond_destroy(&rank.changed);
    pthread_mutex_destroy(&rank.lock);
    return 0;
}

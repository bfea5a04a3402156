/*
 * Connecting to the coordinator. See join.h.
 *
 * Each candidate, and each address of a name, is an attempt: resolve, connect,
 * wait for its turn, TLS. The first successful TLS handshake wins; the others
 * are closed. One timer starts attempts, another limits the total. The object
 * lives until all its handles are closed; `pending` counts them.
 *
 * The winning connection still calls through its attempt, which passes frames
 * and the close to the agent; so the attempt lives as long as the connection.
 */
#include "worker/agent/join.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/net/loop.h"
#include "transport/net/tcp_options.h"

#define STAGGER_MS 250
#define ADDRESSES_MAX 8 /* of one name */
/* Of one address: a coordinator that strangers flood drops the oldest that has
 * not proved itself, which can be a node. */
#define CUT_HANDSHAKES_MAX 3

enum connect_state {
    ATTEMPT_IDLE,
    ATTEMPT_RESOLVING,
    ATTEMPT_CONNECTING,
    ATTEMPT_WAITING, /* connected; another handshake is in progress */
    ATTEMPT_HANDSHAKE,
    ATTEMPT_WON,
    ATTEMPT_FAILED,
};

struct connect_attempt {
    struct rf_join *join;
    enum connect_state state;
    char *address;
    uint16_t port;
    struct sockaddr_storage to; /* AF_UNSPEC until known */
    char name[160];             /* "address:port" for messages */
    char local[INET6_ADDRSTRLEN];
    char why[256];
    unsigned cut_handshakes;
    uv_getaddrinfo_t resolve;
    uv_tcp_t *tcp; /* until the connection takes it */
    uv_connect_t connect;
    struct rf_conn *conn; /* from state HANDSHAKE on */
};

struct rf_join {
    uv_loop_t *loop;
    struct connect_attempt **attempts;
    size_t n_attempts, cap_attempts, next; /* next: the one to try next */
    char *identity;
    uint8_t psk[RF_PSK_BYTES];
    bool retry, over;
    unsigned pending; /* callbacks still to come, timers included */
    uv_timer_t stagger, deadline;
    const struct rf_conn_ops *ops;
    rf_join_done_fn done;
    void *data;
};

static void next_handshake(struct rf_join *join);

static void release(struct rf_join *join)
{
    if (--join->pending > 0) {
        return;
    }
    for (size_t i = 0; i < join->n_attempts; i++) {
        free(join->attempts[i]->address);
        free(join->attempts[i]);
    }
    free(join->attempts);
    free(join->identity);
    free(join);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_tcp_closed(uv_handle_t *handle)
{
    struct connect_attempt *attempt = handle->data;
    free(handle);
    release(attempt->join);
}

static void close_tcp(struct connect_attempt *attempt)
{
    if (attempt->tcp != NULL) {
        uv_close((uv_handle_t *)attempt->tcp, on_tcp_closed);
        attempt->tcp = NULL;
    }
}

/* The error of every address, for the log. */
static void summary(const struct rf_join *join, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < join->n_attempts && used < size; i++) {
        const struct connect_attempt *attempt = join->attempts[i];
        used += (size_t)snprintf(out + used, size - used, "%s%s: %s",
                                 i == 0 ? "" : "; ", attempt->name,
                                 attempt->why[0] != '\0' ? attempt->why
                                                         : "no answer in time");
    }
}

/* Stops joining: closes everything but the winner. */
static void finish(struct rf_join *join, struct connect_attempt *winner)
{
    join->over = true;
    uv_close((uv_handle_t *)&join->stagger, on_timer_closed);
    uv_close((uv_handle_t *)&join->deadline, on_timer_closed);
    for (size_t i = 0; i < join->n_attempts; i++) {
        struct connect_attempt *attempt = join->attempts[i];
        if (attempt->state == ATTEMPT_RESOLVING) {
            uv_cancel((uv_req_t *)&attempt->resolve);
        }
        if (attempt->state == ATTEMPT_HANDSHAKE && attempt != winner) {
            rf_conn_close(attempt->conn);
        }
        close_tcp(attempt);
    }
    explicit_bzero(join->psk, sizeof(join->psk));
}

static void report(struct rf_join *join, struct connect_attempt *winner)
{
    char why[1024];
    if (join->over) {
        return;
    }
    finish(join, winner);
    summary(join, why, sizeof(why));
    if (winner != NULL) {
        join->done(winner->conn, winner->name, winner->local, why, join->data);
    } else {
        join->done(NULL, NULL, NULL, why, join->data);
    }
}

static void end_attempt(struct connect_attempt *attempt, const char *why,
                        bool again)
{
    struct rf_join *join = attempt->join;
    bool all_failed = true;
    attempt->state = again || join->retry ? ATTEMPT_IDLE : ATTEMPT_FAILED;
    snprintf(attempt->why, sizeof(attempt->why), "%s", why);
    close_tcp(attempt);
    for (size_t i = 0; i < join->n_attempts; i++) {
        all_failed &= join->attempts[i]->state == ATTEMPT_FAILED;
    }
    if (all_failed) {
        report(join, NULL);
    }
}

static void fail_attempt(struct connect_attempt *attempt, const char *why)
{
    end_attempt(attempt, why, false);
}

/* --- TLS ------------------------------------------------------------------ */

static void on_ready(struct rf_conn *conn, void *data)
{
    struct connect_attempt *attempt = data;
    struct rf_join *join = attempt->join;
    if (join->over) { /* the time ran out in the meantime */
        rf_conn_close(conn);
        return;
    }
    attempt->state = ATTEMPT_WON;
    report(join, attempt);
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct connect_attempt *attempt = data;
    if (attempt->state == ATTEMPT_WON) {
        attempt->join->ops->on_frame(conn, frame, attempt->join->data);
    }
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct connect_attempt *attempt = data;
    struct rf_join *join = attempt->join;
    if (attempt->state == ATTEMPT_WON) {
        join->ops->on_close(conn, why, join->data);
    } else if (!join->over) {
        bool again = why->status == RF_ERR_PEER &&
                     ++attempt->cut_handshakes < CUT_HANDSHAKES_MAX;
        end_attempt(attempt,
                    why->status == RF_OK ? "closed the connection" : why->text,
                    again);
        next_handshake(join);
    }
    release(join);
}

static const struct rf_conn_ops link_ops = {on_ready, on_frame, on_close};

static void note_local_address(struct connect_attempt *attempt)
{
    struct sockaddr_storage address;
    int size = sizeof(address);
    const void *name = &address;
    if (uv_tcp_getsockname(attempt->tcp, (struct sockaddr *)&address, &size) !=
        0) {
        return;
    }
    if (address.ss_family == AF_INET6) {
        uv_ip6_name(name, attempt->local, sizeof(attempt->local));
    } else {
        uv_ip4_name(name, attempt->local, sizeof(attempt->local));
    }
}

static void start_handshake(struct connect_attempt *attempt)
{
    struct rf_join *join = attempt->join;
    struct rf_err err;
    struct rf_tls *tls = NULL;
    uv_os_fd_t fd;
    if (rf_tls_client_create(join->identity, join->psk, &tls, &err) != RF_OK) {
        fail_attempt(attempt, err.text);
        return;
    }
    if (uv_fileno((uv_handle_t *)attempt->tcp, &fd) == 0) {
        rf_tcp_tune_control(fd);
    }
    note_local_address(attempt);
    attempt->state = ATTEMPT_HANDSHAKE;
    /* `pending` now counts the connection instead of the socket. */
    attempt->conn =
        rf_conn_open((uv_stream_t *)attempt->tcp, tls, &link_ops, attempt);
    attempt->tcp = NULL;
}

/* Starts the next waiting handshake unless one is in progress. */
static void next_handshake(struct rf_join *join)
{
    struct connect_attempt *waiting = NULL;
    for (size_t i = 0; i < join->n_attempts; i++) {
        if (join->attempts[i]->state == ATTEMPT_HANDSHAKE) {
            return;
        }
        if (join->attempts[i]->state == ATTEMPT_WAITING && waiting == NULL) {
            waiting = join->attempts[i];
        }
    }
    if (waiting != NULL && !join->over) {
        start_handshake(waiting);
    }
}

/* --- TCP ------------------------------------------------------------------ */

static void on_connected(uv_connect_t *request, int status)
{
    struct connect_attempt *attempt = request->data;
    if (attempt->join->over || status == UV_ECANCELED) {
        return; /* closing; on_tcp_closed follows */
    }
    if (status != 0) {
        fail_attempt(attempt, uv_strerror(status));
        return;
    }
    attempt->state = ATTEMPT_WAITING;
    next_handshake(attempt->join);
}

/* Connects to the known address; the socket counts in `pending`. */
static void start_connect(struct connect_attempt *attempt)
{
    struct rf_join *join = attempt->join;
    int status;
    join->pending++;
    attempt->tcp = rf_xmalloc(sizeof(*attempt->tcp));
    uv_tcp_init(join->loop, attempt->tcp);
    attempt->tcp->data = attempt;
    attempt->connect.data = attempt;
    attempt->state = ATTEMPT_CONNECTING;
    status = uv_tcp_connect(&attempt->connect, attempt->tcp,
                            (struct sockaddr *)&attempt->to, on_connected);
    if (status != 0) {
        fail_attempt(attempt, uv_strerror(status));
    }
}

static struct connect_attempt *add_attempt(struct rf_join *join,
                                           const char *address, uint16_t port)
{
    struct connect_attempt *attempt = rf_xcalloc(1, sizeof(*attempt));
    bool colon = strchr(address, ':') != NULL;
    attempt->join = join;
    attempt->address = rf_xstrdup(address);
    attempt->port = port;
    snprintf(attempt->name, sizeof(attempt->name), "%s%.120s%s:%" PRIu16,
             colon ? "[" : "", address, colon ? "]" : "", port);
    RF_PUSH(join->attempts, join->n_attempts, join->cap_attempts, attempt);
    return attempt;
}

static void keep_address(struct connect_attempt *attempt,
                         const struct addrinfo *info)
{
    memcpy(&attempt->to, info->ai_addr,
           RF_MIN((size_t)info->ai_addrlen, sizeof(attempt->to)));
}

/* The first address is this attempt's; each further one becomes a new attempt,
 * tried in turn. */
static void share_out(struct connect_attempt *attempt,
                      const struct addrinfo *list)
{
    int n = 1;
    keep_address(attempt, list);
    for (list = list->ai_next; list != NULL && n < ADDRESSES_MAX;
         list = list->ai_next, n++) {
        char numeric[INET6_ADDRSTRLEN + 16] = "?";
        uv_ip_name(list->ai_addr, numeric, sizeof(numeric));
        keep_address(add_attempt(attempt->join, numeric, attempt->port), list);
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status,
                        struct addrinfo *list)
{
    struct connect_attempt *attempt = request->data;
    struct rf_join *join = attempt->join;
    if (status == 0 && !join->over) {
        share_out(attempt, list);
        start_connect(attempt);
    } else if (!join->over) {
        fail_attempt(attempt, uv_strerror(status));
    }
    uv_freeaddrinfo(list);
    release(join);
}

/* Needs no look-up, hence no thread. */
static bool is_numeric(const struct connect_attempt *attempt, const char *port,
                       struct addrinfo **out)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
                                   .ai_socktype = SOCK_STREAM};
    return getaddrinfo(attempt->address, port, &hints, out) == 0;
}

static void start_resolve(struct connect_attempt *attempt)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    struct rf_err err = {0};
    char port[8];
    int status;
    snprintf(port, sizeof(port), "%" PRIu16, attempt->port);
    if (is_numeric(attempt, port, &list)) {
        share_out(attempt, list);
        freeaddrinfo(list);
        start_connect(attempt);
        return;
    }
    if (rf_loop_pool_fits(&err) != RF_OK) {
        fail_attempt(attempt, err.text);
        return;
    }
    attempt->state = ATTEMPT_RESOLVING;
    attempt->resolve.data = attempt;
    status = uv_getaddrinfo(attempt->join->loop, &attempt->resolve, on_resolved,
                            attempt->address, port, &hints);
    if (status != 0) {
        fail_attempt(attempt, uv_strerror(status));
        return;
    }
    attempt->join->pending++;
}

/* Round robin, so that an address that is refused at once and retried does not
 * starve those after it. */
static void try_next(struct rf_join *join)
{
    for (size_t i = 0; i < join->n_attempts; i++) {
        struct connect_attempt *attempt = join->attempts[join->next];
        join->next = (join->next + 1) % join->n_attempts;
        if (attempt->state == ATTEMPT_IDLE) {
            if (attempt->to.ss_family == AF_UNSPEC) {
                start_resolve(attempt);
            } else {
                start_connect(attempt);
            }
            return;
        }
    }
}

static void on_stagger(uv_timer_t *timer)
{
    struct rf_join *join = timer->data;
    if (!join->over) {
        try_next(join);
    }
}

static void on_deadline(uv_timer_t *timer)
{
    report(timer->data, NULL);
}

struct rf_join *rf_join_start(uv_loop_t *loop, const struct rf_join_how *how,
                              const struct rf_conn_ops *ops,
                              rf_join_done_fn done, void *data)
{
    struct rf_join *join = rf_xcalloc(1, sizeof(*join));
    join->loop = loop;
    join->identity = rf_xstrdup(how->identity);
    memcpy(join->psk, how->psk, RF_PSK_BYTES);
    join->retry = how->retry;
    join->ops = ops;
    join->done = done;
    join->data = data;
    for (size_t i = 0; i < how->n_candidates; i++) {
        add_attempt(join, how->candidates[i].address,
                    (uint16_t)how->candidates[i].port);
    }
    join->pending = 2;
    uv_timer_init(loop, &join->stagger);
    uv_timer_init(loop, &join->deadline);
    join->stagger.data = join;
    join->deadline.data = join;
    uv_timer_start(&join->stagger, on_stagger, 0, STAGGER_MS);
    uv_timer_start(&join->deadline, on_deadline, how->total_ms, 0);
    return join;
}

void rf_join_cancel(struct rf_join *join)
{
    finish(join, NULL);
}

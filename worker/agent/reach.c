/*
 * Both ends of test connections. See reach.h.
 *
 * A guest is a connection from another node; its frames are echoed. A trial is
 * a connection to one: it joins (join.h), then sends one long frame. The echo,
 * a failure or a timeout decides it. All of them refer to the object, which
 * lives until the last handle is closed.
 */
#include "worker/agent/reach.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "transport/tcp/datalink.h"
#include "worker/agent/join.h"

#define LONG_BYTES (16u << 10) /* more than any packet; LOG's cap */
#define GUESTS_MAX 64

struct reach_guest {
    struct rf_reach *reach;
    struct rf_conn *conn;
    struct reach_guest *next;
};

struct reach_trial {
    struct rf_reach *reach;
    uint32_t node;
    char at[300];         /* "ADDRESS port N" */
    struct rf_join *join; /* NULL once joined */
    struct rf_conn *conn; /* once joined; NULL once closed */
    uv_timer_t timer;
    bool decided;
    char *why; /* once decided; NULL: it can be reached */
};

struct rf_reach {
    uv_loop_t *loop;
    struct rf_reach_limits limits;
    uint8_t key[RF_PSK_BYTES];
    char identity[32]; /* that guests must name */
    uv_tcp_t listener;
    struct reach_guest *guests;
    unsigned n_guests;
    struct reach_trial *trials; /* NULL: none requested */
    size_t n_trials, n_decided;
    unsigned open; /* the owner, listener, guests, timers and connections of
                      trials */
    bool ending;
    rf_reach_done_fn done;
    void *data;
};

static void release(struct rf_reach *reach)
{
    if (--reach->open > 0) {
        return;
    }
    for (size_t i = 0; i < reach->n_trials; i++) {
        free(reach->trials[i].why);
    }
    free(reach->trials);
    explicit_bzero(reach->key, sizeof(reach->key));
    free(reach);
}

static void make_identity(uint32_t node, char out[32])
{
    snprintf(out, 32, "reach/%" PRIu32, node);
}

static void ready_cb(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data;
}

/* --- Guests --------------------------------------------------------------- */

static void guest_frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                           void *data)
{
    (void)data;
    rf_conn_send_raw(conn, RF_MSG_LOG, RF_FRAME_NO_RANK, frame->payload,
                     frame->length);
}

static void guest_close_cb(struct rf_conn *conn, const struct rf_err *why,
                           void *data)
{
    struct reach_guest *guest = data, **link = &guest->reach->guests;
    (void)conn;
    (void)why;
    while (*link != guest) {
        link = &(*link)->next;
    }
    *link = guest->next;
    guest->reach->n_guests--;
    release(guest->reach);
    free(guest);
}

static const struct rf_conn_ops guest_ops = {ready_cb, guest_frame_cb,
                                             guest_close_cb};

static bool find_key(const char *identity, uint8_t key[RF_PSK_BYTES],
                     void *data)
{
    const struct rf_reach *reach = data;
    memcpy(key, reach->key, RF_PSK_BYTES);
    return strcmp(identity, reach->identity) == 0;
}

static void listener_closed_cb(uv_handle_t *handle)
{
    release(handle->data);
}

static void close_listener(struct rf_reach *reach)
{
    if (!uv_is_closing((uv_handle_t *)&reach->listener)) {
        uv_close((uv_handle_t *)&reach->listener, listener_closed_cb);
    }
}

static void listener_cb(uv_stream_t *listener, int status)
{
    struct rf_reach *reach = listener->data;
    struct rf_tls *tls = NULL;
    struct rf_err err = {.text = ""};
    struct reach_guest *guest;
    uv_tcp_t *tcp;
    if (status != 0) { /* libuv would call us again without end */
        close_listener(reach);
        return;
    }
    tcp = rf_xmalloc(sizeof(*tcp));
    uv_tcp_init(reach->loop, tcp);
    if (uv_accept(listener, (uv_stream_t *)tcp) != 0 ||
        reach->n_guests == GUESTS_MAX ||
        rf_tls_server_create(find_key, reach, &tls, &err) != RF_OK) {
        uv_close((uv_handle_t *)tcp, (uv_close_cb)free);
        return;
    }
    guest = rf_xcalloc(1, sizeof(*guest));
    *guest = (struct reach_guest){.reach = reach, .next = reach->guests};
    reach->guests = guest;
    reach->n_guests++;
    reach->open++;
    guest->conn = rf_conn_open((uv_stream_t *)tcp, tls, &guest_ops, guest);
}

static bool bind_to(uv_tcp_t *listener, const char *address)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    const struct sockaddr *name =
        uv_ip4_addr(address, 0, &in) == 0    ? (const void *)&in
        : uv_ip6_addr(address, 0, &in6) == 0 ? (const void *)&in6
                                             : NULL;
    return name != NULL && uv_tcp_bind(listener, name, 0) == 0 &&
           uv_listen((uv_stream_t *)listener, GUESTS_MAX, listener_cb) == 0;
}

/* 0: unknown. */
static uint32_t port_of(const uv_tcp_t *listener)
{
    struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
    int size = (int)sizeof(name);
    (void)uv_tcp_getsockname(listener, (struct sockaddr *)&name, &size);
    /* same offset in both families */
    return ntohs(((const struct sockaddr_in *)(const void *)&name)->sin_port);
}

struct rf_reach *rf_reach_listen(uv_loop_t *loop, const char *address,
                                 uint32_t node, const uint8_t key[RF_PSK_BYTES],
                                 struct rf_reach_limits limits,
                                 uint32_t *port_out)
{
    struct rf_reach *reach = rf_xcalloc(1, sizeof(*reach));
    uint32_t port = 0;
    reach->loop = loop;
    reach->limits = limits;
    memcpy(reach->key, key, RF_PSK_BYTES);
    make_identity(node, reach->identity);
    uv_tcp_init(loop, &reach->listener);
    reach->listener.data = reach;
    reach->open = 2;
    if (bind_to(&reach->listener, address)) {
        port = port_of(&reach->listener);
    }
    if (port == 0) {
        rf_reach_end(reach);
        return NULL;
    }
    *port_out = port;
    return reach;
}

/* --- Trials --------------------------------------------------------------- */

static void answer(struct rf_reach *reach)
{
    struct rf_msg message;
    struct rf_msg_reached *reached = &message.reached;
    rf_msg_init(&message, RF_MSG_REACHED);
    reached->peers = rf_xcalloc(reach->n_trials + 1, sizeof(*reached->peers));
    for (; reached->n_peers < reach->n_trials; reached->n_peers++) {
        const struct reach_trial *trial = &reach->trials[reached->n_peers];
        reached->peers[reached->n_peers] = (struct rf_msg_reached_peer){
            trial->node, rf_xstrdup_or_null(trial->why)};
    }
    reach->done(&message, reach->data);
    rf_msg_free(&message);
}

static void timer_closed_cb(uv_handle_t *handle)
{
    release(((struct reach_trial *)handle->data)->reach);
}

/* Takes over `why`; NULL: the frame came back. */
static void decide(struct reach_trial *trial, char *why)
{
    struct rf_reach *reach = trial->reach;
    if (trial->decided) {
        free(why);
        return;
    }
    trial->decided = true;
    trial->why = why;
    if (why != NULL) {
        rf_text_clean(why, strlen(why));
    }
    uv_close((uv_handle_t *)&trial->timer, timer_closed_cb);
    if (trial->conn != NULL) {
        rf_conn_close(trial->conn);
    }
    if (++reach->n_decided == reach->n_trials && !reach->ending) {
        answer(reach);
    }
}

static void trial_frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                           void *data)
{
    (void)conn;
    (void)frame;
    decide(data, NULL);
}

static void trial_close_cb(struct rf_conn *conn, const struct rf_err *why,
                           void *data)
{
    struct reach_trial *trial = data;
    (void)conn;
    trial->conn = NULL;
    decide(trial, rf_xasprintf("%s: %s", trial->at,
                               why->status != RF_OK ? why->text
                                                    : "it closed the "
                                                      "connection"));
    release(trial->reach);
}

static const struct rf_conn_ops trial_ops = {ready_cb, trial_frame_cb,
                                             trial_close_cb};

static void timer_cb(uv_timer_t *timer)
{
    struct reach_trial *trial = timer->data;
    decide(trial,
           rf_xasprintf(
               "%s: connected, but %u bytes did not return within %" PRIu32
               " ms: are long packets lost at a smaller MTU on the path?",
               trial->at, LONG_BYTES, trial->reach->limits.answer_ms));
}

static void joined_cb(struct rf_conn *conn, const char *candidate,
                      const char *local, const char *why, void *data)
{
    static const uint8_t bytes[LONG_BYTES];
    struct reach_trial *trial = data;
    (void)candidate;
    (void)local;
    trial->join = NULL;
    if (conn == NULL) {
        decide(trial, rf_xasprintf("%s%s", why, rf_datalink_ports));
        return;
    }
    trial->conn = conn;
    trial->reach->open++;
    rf_conn_send_raw(conn, RF_MSG_LOG, RF_FRAME_NO_RANK, bytes, sizeof(bytes));
    uv_timer_start(&trial->timer, timer_cb, trial->reach->limits.answer_ms, 0);
}

static void start(struct rf_reach *reach, struct reach_trial *trial,
                  const struct rf_msg_reach_peer *peer)
{
    const struct rf_msg_candidate candidate = {peer->address, peer->port};
    char identity[32];
    make_identity(peer->node, identity);
    trial->reach = reach;
    trial->node = peer->node;
    snprintf(trial->at, sizeof(trial->at), "%s port %" PRIu32, peer->address,
             peer->port);
    uv_timer_init(reach->loop, &trial->timer);
    trial->timer.data = trial;
    reach->open++;
    trial->join = rf_join_start(
        reach->loop,
        &(struct rf_join_how){.candidates = &candidate,
                              .n_candidates = 1,
                              .identity = identity,
                              .psk = reach->key,
                              .total_ms = reach->limits.connect_ms},
        &trial_ops, joined_cb, trial);
}

bool rf_reach_try(struct rf_reach *reach, const struct rf_msg_reach *asked,
                  rf_reach_done_fn done, void *data)
{
    if (reach->trials != NULL) {
        return false;
    }
    reach->done = done;
    reach->data = data;
    reach->n_trials = asked->n_peers;
    reach->trials = rf_xcalloc(asked->n_peers + 1, sizeof(*reach->trials));
    for (size_t i = 0; i < asked->n_peers; i++) {
        start(reach, &reach->trials[i], &asked->peers[i]);
    }
    return true;
}

void rf_reach_end(struct rf_reach *reach)
{
    if (reach == NULL || reach->ending) {
        return;
    }
    reach->ending = true;
    close_listener(reach);
    for (struct reach_guest *guest = reach->guests; guest != NULL;
         guest = guest->next) {
        rf_conn_close(guest->conn);
    }
    for (size_t i = 0; i < reach->n_trials; i++) {
        if (reach->trials[i].join != NULL) {
            rf_join_cancel(reach->trials[i].join);
        }
        decide(&reach->trials[i], NULL);
    }
    release(reach);
}

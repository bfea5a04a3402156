/*
 * Accepting, handshakes and proved keys. See listener.h.
 *
 * A connection is a peer from accept until it has closed; unauthenticated peers
 * are also in a list.
 */
#include "coordinator/cluster/listener.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/ports.h"
#include "transport/net/tcp_options.h"

/* More than twice what all ports accept per turn of the loop, so that a peer's
 * bytes are read before its place is taken. */
#define STRANGERS_PER_SOURCE 64

/* An identity that a connection may prove. */
struct expected_peer {
    uint32_t node;
    enum {
        EXPECTED_UNKNOWN,
        EXPECTED_AWAITED,
        EXPECTED_LENT,    /* held by a connection until it ends or joins */
        EXPECTED_SETTLED, /* no connection may claim it any more */
    } state;
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES];
    unsigned claims; /* further claims, for the log */
};

struct listener_peer {
    struct rf_listener *listener;
    struct expected_peer *expected; /* NULL: an unauthenticated peer */
    uv_tcp_t *tcp;                  /* until the first bytes; then conn */
    struct rf_conn *conn;
    struct in6_addr source;
    int64_t since_ns;
    bool listed; /* among unauthenticated peers */
    TAILQ_ENTRY(listener_peer) next;
};

struct rf_listener {
    struct rf_listener_options options;
    struct rf_listener_ops ops;
    void *data;
    struct rf_ports *ports;
    struct expected_peer *expected_peers;              /* by node */
    TAILQ_HEAD(, listener_peer) unauthenticated_peers; /* oldest first */
    unsigned n_unauthenticated_peers;
    unsigned n_peers; /* not yet closed */
    unsigned refused; /* unauthenticated peers so far, for the log */
};

/* --- Unauthenticated peers ------------------------------------------------ */

static void leave_unauthenticated_peers(struct listener_peer *peer)
{
    struct rf_listener *listener = peer->listener;
    if (!peer->listed) {
        return; /* already turned away, or now a node */
    }
    peer->listed = false;
    TAILQ_REMOVE(&listener->unauthenticated_peers, peer, next);
    listener->n_unauthenticated_peers--;
}

static void join_unauthenticated_peers(struct listener_peer *peer)
{
    struct rf_listener *listener = peer->listener;
    peer->listed = true;
    TAILQ_INSERT_TAIL(&listener->unauthenticated_peers, peer, next);
    listener->n_unauthenticated_peers++;
}

/* Whether to log an event: the first, second, fourth, eighth… one. */
static bool worth_telling(unsigned count)
{
    return (count & (count - 1)) == 0;
}

/* Logs only: unauthenticated peers never matter to the run. */
static void tell_refused(const struct listener_peer *peer, const char *why)
{
    struct rf_listener *listener = peer->listener;
    char source[INET6_ADDRSTRLEN] = "?";
    if (worth_telling(++listener->refused)) {
        uv_inet_ntop(AF_INET6, &peer->source, source, sizeof(source));
        rf_info("refused a connection from %s (%s); %u so far",
                IN6_IS_ADDR_V4MAPPED(&peer->source) ? strrchr(source, ':') + 1
                                                    : source,
                why, listener->refused);
    }
}

/* Call after freeing a peer. */
static void peer_gone(struct rf_listener *listener)
{
    listener->n_peers--;
    listener->ops.on_close(listener->data);
}

static void tcp_closed_cb(uv_handle_t *handle)
{
    struct listener_peer *peer = handle->data;
    struct rf_listener *listener = peer->listener;
    free(handle);
    free(peer);
    peer_gone(listener);
}

/* Ends a connection that has not proved a key. */
static void turn_away(struct listener_peer *peer, const char *text)
{
    struct rf_err why = {.status = RF_ERR_AUTH};
    leave_unauthenticated_peers(peer);
    if (peer->conn != NULL) {
        snprintf(why.text, sizeof(why.text), "%s", text);
        rf_conn_fail(peer->conn, &why);
        return;
    }
    tell_refused(peer, text);
    uv_close((uv_handle_t *)peer->tcp, tcp_closed_cb);
}

/* Makes room for one more connection from `source`; false: no other may be
 * closed for it. */
static bool make_room(struct rf_listener *listener,
                      const struct in6_addr *source)
{
    unsigned limit_there =
        RF_MAX(STRANGERS_PER_SOURCE, listener->options.config->n_nodes);
    unsigned there = 0;
    struct listener_peer *oldest = NULL, *oldest_there = NULL, *peer;
    TAILQ_FOREACH (peer, &listener->unauthenticated_peers, next) {
        bool same = IN6_ARE_ADDR_EQUAL(&peer->source, source);
        there += same;
        if (peer->conn != NULL && rf_conn_has_proof(peer->conn)) {
            continue;
        }
        oldest = oldest != NULL ? oldest : peer;
        oldest_there = oldest_there != NULL || !same ? oldest_there : peer;
    }
    if (there >= limit_there) {
        oldest = oldest_there;
    } else if (listener->n_unauthenticated_peers <
               listener->options.max_unauthenticated_peers) {
        return true;
    }
    if (oldest != NULL) {
        turn_away(oldest, "dropped unauthenticated, to make room for others");
    }
    return oldest != NULL;
}

void rf_listener_tick(struct rf_listener *listener)
{
    int64_t since =
        listener->options.now() - RF_CONN_HANDSHAKE_MS * RF_NS_PER_MS;
    struct listener_peer *peer = TAILQ_FIRST(&listener->unauthenticated_peers);
    struct listener_peer *next;
    for (; peer != NULL && peer->since_ns <= since; peer = next) {
        next = TAILQ_NEXT(peer, next);
        if (peer->conn == NULL) { /* a connection has its own limit */
            turn_away(peer, "it sent nothing");
        }
    }
}

/* --- Handshakes ----------------------------------------------------------- */

static struct expected_peer *expected_of(struct rf_listener *listener,
                                         const char *identity)
{
    for (uint32_t i = 0;
         identity != NULL && i < listener->options.config->n_nodes; i++) {
        struct expected_peer *expected = &listener->expected_peers[i];
        if (expected->state != EXPECTED_UNKNOWN &&
            strcmp(expected->identity, identity) == 0) {
            return expected;
        }
    }
    return NULL;
}

/* Whether the identity is available. Counts claims to one that is not. */
static bool is_free(struct rf_listener *listener,
                    struct expected_peer *expected)
{
    if (expected->state == EXPECTED_AWAITED) {
        return true;
    }
    if (worth_telling(++expected->claims)) {
        rf_warn("refused a second connection as %s",
                listener->options.config->node_names[expected->node]);
    }
    return false;
}

static bool find_psk(const char *identity, uint8_t psk[RF_PSK_BYTES],
                     void *data)
{
    struct expected_peer *expected = expected_of(data, identity);
    if (expected == NULL || !is_free(data, expected)) {
        return false;
    }
    memcpy(psk, expected->psk, RF_PSK_BYTES);
    return true;
}

static void settle(struct expected_peer *expected)
{
    expected->state = EXPECTED_SETTLED;
    explicit_bzero(expected->psk, sizeof(expected->psk));
}

static void ready_cb(struct rf_conn *conn, void *data)
{
    struct listener_peer *peer = data;
    struct rf_listener *listener = peer->listener;
    struct expected_peer *expected =
        expected_of(listener, rf_conn_identity(conn));
    if (expected == NULL || !is_free(listener, expected)) {
        /* taken since its handshake began */
        turn_away(peer, "the node is already connected");
        return;
    }
    leave_unauthenticated_peers(peer);
    peer->expected = expected;
    if (listener->options.lends) {
        expected->state = EXPECTED_LENT;
    } else {
        settle(expected);
    }
    listener->ops.on_proof(expected->node, conn, listener->data);
}

static void frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    const struct listener_peer *peer = data;
    struct rf_listener *listener = peer->listener;
    if (peer->expected != NULL) {
        listener->ops.on_frame(peer->expected->node, conn, frame,
                               listener->data);
    }
}

static void close_cb(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct listener_peer *peer = data;
    struct rf_listener *listener = peer->listener;
    leave_unauthenticated_peers(peer);
    if (peer->expected == NULL) {
        tell_refused(peer, why->text);
    } else {
        if (peer->expected->state == EXPECTED_LENT) {
            peer->expected->state = EXPECTED_AWAITED;
        }
        listener->ops.on_end(peer->expected->node, conn, why, listener->data);
    }
    free(peer);
    peer_gone(listener);
}

static const struct rf_conn_ops conn_ops = {ready_cb, frame_cb, close_cb};

/* --- Accepting ------------------------------------------------------------ */

/* No buffer: the bytes stay in the socket for the connection to read. */
static void no_buffer_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(NULL, 0);
}

/* Bytes have arrived (UV_ENOBUFS), or the end. */
static void first_bytes_cb(uv_stream_t *stream, ssize_t nread,
                           const uv_buf_t *buf)
{
    struct listener_peer *peer = stream->data;
    struct rf_tls *tls = NULL;
    struct rf_err err = {0};
    uv_os_fd_t fd;
    (void)buf;
    if (nread == 0) {
        return;
    }
    uv_read_stop(stream);
    if (rf_tls_server_create(find_psk, peer->listener, &tls, &err) != RF_OK) {
        turn_away(peer, err.text);
        return;
    }
    if (uv_fileno((uv_handle_t *)stream, &fd) == 0) {
        rf_tcp_tune_control(fd);
    }
    peer->tcp = NULL;
    peer->conn = rf_conn_open(stream, tls, &conn_ops, peer);
}

static struct in6_addr source_of(const uv_tcp_t *tcp)
{
    struct sockaddr_storage name = {0};
    int size = (int)sizeof(name);
    struct in6_addr source = {0};
    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&name, &size) != 0) {
        return source;
    }
    if (name.ss_family == AF_INET6) {
        return ((const struct sockaddr_in6 *)&name)->sin6_addr;
    }
    source.s6_addr[10] = source.s6_addr[11] = 0xff; /* ::ffff:ADDRESS */
    memcpy(&source.s6_addr[12], &((const struct sockaddr_in *)&name)->sin_addr,
           4);
    return source;
}

static void connection_cb(uv_stream_t *server, void *data)
{
    struct rf_listener *listener = data;
    struct listener_peer *peer = rf_xcalloc(1, sizeof(*peer));
    peer->listener = listener;
    peer->since_ns = listener->options.now();
    peer->tcp = rf_xmalloc(sizeof(*peer->tcp));
    peer->tcp->data = peer;
    uv_tcp_init(listener->options.loop, peer->tcp);
    listener->n_peers++;
    if (uv_accept(server, (uv_stream_t *)peer->tcp) != 0) {
        uv_close((uv_handle_t *)peer->tcp, tcp_closed_cb);
        return;
    }
    peer->source = source_of(peer->tcp);
    if (!make_room(listener, &peer->source) ||
        uv_read_start((uv_stream_t *)peer->tcp, no_buffer_cb, first_bytes_cb) !=
            0) {
        turn_away(peer, "too many unauthenticated connections");
        return;
    }
    join_unauthenticated_peers(peer);
}

static void port_closed_cb(void *data)
{
    struct rf_listener *listener = data;
    listener->ops.on_close(listener->data);
}

static const struct rf_ports_ops ports_ops = {connection_cb, port_closed_cb};

/* --- The object ----------------------------------------------------------- */

struct rf_listener *
rf_listener_create(const struct rf_listener_options *options,
                   const struct rf_listener_ops *ops, void *data)
{
    struct rf_listener *listener = rf_xcalloc(1, sizeof(*listener));
    listener->options = *options;
    listener->ops = *ops;
    listener->data = data;
    TAILQ_INIT(&listener->unauthenticated_peers);
    listener->expected_peers =
        rf_xcalloc(options->config->n_nodes, sizeof(*listener->expected_peers));
    listener->ports = rf_ports_create(options->loop, &options->config->control,
                                      &ports_ops, listener);
    return listener;
}

void rf_listener_await(struct rf_listener *listener, uint32_t node,
                       const char *identity, const uint8_t psk[RF_PSK_BYTES])
{
    struct expected_peer *expected = &listener->expected_peers[node];
    expected->node = node;
    expected->state = EXPECTED_AWAITED;
    snprintf(expected->identity, sizeof(expected->identity), "%s", identity);
    memcpy(expected->psk, psk, RF_PSK_BYTES);
}

void rf_listener_settle(struct rf_listener *listener, uint32_t node)
{
    settle(&listener->expected_peers[node]);
}

uint32_t rf_listener_open(struct rf_listener *listener, const char *address)
{
    return rf_ports_open(listener->ports, address);
}

char *rf_listener_open_all(struct rf_listener *listener)
{
    return rf_ports_open_all(listener->ports);
}

void rf_listener_close(struct rf_listener *listener)
{
    rf_ports_close(listener->ports);
    while (!TAILQ_EMPTY(&listener->unauthenticated_peers)) {
        turn_away(TAILQ_FIRST(&listener->unauthenticated_peers),
                  "no further nodes are expected");
    }
}

bool rf_listener_is_closed(const struct rf_listener *listener)
{
    return listener->n_peers == 0 && rf_ports_are_closed(listener->ports);
}

void rf_listener_destroy(struct rf_listener *listener)
{
    for (uint32_t i = 0; i < listener->options.config->n_nodes; i++) {
        settle(&listener->expected_peers[i]);
    }
    rf_ports_destroy(listener->ports);
    free(listener->expected_peers);
    free(listener);
}

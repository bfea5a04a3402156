/*
 * Who connects: a stranger until a TLS handshake has proved a node's key. That
 * key or nothing, and each identity joins once.
 *
 * Nodes must get in while others, even on a node's own address, open as many
 * connections as they can. So a stranger costs little until it has sent
 * something (no TLS object, no buffer), has RF_CONN_HANDSHAKE_MS to do so and
 * as long again for its handshake, and there is room for a limited number of
 * them, fewer where the limit of open files would not do for nodes, too. Where
 * that is used up, the one that has been there longest makes room. A node's
 * first bytes prove its key and follow at once on the connection that it tries
 * (others that it has opened meanwhile wait for that one to fail, and may be
 * sent away); whoever has proved a key is never sent away.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/cluster_internal.h"
#include "transport/tcp.h"

/* More than twice what all listeners accept in a turn of the loop, so that what
 * a stranger has sent is read before its place is taken. */
#define STRANGERS_PER_SOURCE 64

/* A TCP connection. */
struct cluster_peer {
    struct rf_cluster *cluster;
    struct cluster_node *node; /* NULL: a stranger */
    uv_tcp_t *tcp;             /* until something has come, then: */
    struct rf_conn *conn;
    struct in6_addr source;
    int64_t since_ns;
    struct cluster_peer *next; /* among strangers */
};

/* --- Strangers ------------------------------------------------------------ */

static void leave_strangers(struct cluster_peer *peer)
{
    struct rf_cluster *cluster = peer->cluster;
    struct cluster_peer **link = &cluster->strangers;
    while (*link != NULL && *link != peer) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return; /* it was turned away, or has become a node */
    }
    *link = peer->next;
    if (peer->next == NULL) {
        cluster->strangers_end = link;
    }
    cluster->n_strangers--;
}

static void join_strangers(struct cluster_peer *peer)
{
    struct rf_cluster *cluster = peer->cluster;
    *cluster->strangers_end = peer;
    cluster->strangers_end = &peer->next;
    cluster->n_strangers++;
}

/* What happens often is told the first, second, fourth, eighth time… */
static bool worth_telling(unsigned count)
{
    return (count & (count - 1)) == 0;
}

/* Strangers never matter to the run. */
static void tell_refused(const struct cluster_peer *peer, const char *why)
{
    struct rf_cluster *cluster = peer->cluster;
    char source[INET6_ADDRSTRLEN] = "?";
    if (worth_telling(++cluster->refused)) {
        uv_inet_ntop(AF_INET6, &peer->source, source, sizeof(source));
        rf_info("refused a connection from %s (%s); %u so far",
                IN6_IS_ADDR_V4MAPPED(&peer->source) ? strrchr(source, ':') + 1
                                                    : source,
                why, cluster->refused);
    }
}

static void tcp_closed_cb(uv_handle_t *handle)
{
    struct cluster_peer *peer = handle->data;
    struct rf_cluster *cluster = peer->cluster;
    free(handle);
    free(peer);
    cluster->open_handles--;
    rf_cluster_maybe_stopped(cluster);
}

/* Ends a connection that has not proved a key. */
static void turn_away(struct cluster_peer *peer, const char *text)
{
    struct rf_err why = {.status = RF_ERR_AUTH};
    leave_strangers(peer);
    if (peer->conn != NULL) {
        snprintf(why.text, sizeof(why.text), "%s", text);
        rf_conn_fail(peer->conn, &why);
        return;
    }
    tell_refused(peer, text);
    uv_close((uv_handle_t *)peer->tcp, tcp_closed_cb);
}

/* Takes a place for one more from there; false when all have a better right. */
static bool make_room(struct rf_cluster *cluster, const struct in6_addr *source)
{
    unsigned limit_there =
        RF_MAX(STRANGERS_PER_SOURCE, cluster->config->n_nodes);
    unsigned there = 0;
    struct cluster_peer *oldest = NULL, *oldest_there = NULL;
    for (struct cluster_peer *peer = cluster->strangers; peer != NULL;
         peer = peer->next) {
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
    } else if (cluster->n_strangers < cluster->max_strangers) {
        return true;
    }
    if (oldest != NULL) {
        turn_away(oldest, "others came after it and it had proved no key");
    }
    return oldest != NULL;
}

void rf_cluster_strangers_tick(struct rf_cluster *cluster, int64_t now)
{
    struct cluster_peer *peer = cluster->strangers, *next;
    int64_t since = now - RF_CONN_HANDSHAKE_MS * RF_NS_PER_MS;
    for (; peer != NULL && peer->since_ns <= since; peer = next) {
        next = peer->next;
        if (peer->conn == NULL) { /* a connection has its own limit */
            turn_away(peer, "it sent nothing");
        }
    }
}

void rf_cluster_no_strangers(struct rf_cluster *cluster)
{
    while (cluster->strangers != NULL) {
        turn_away(cluster->strangers, "no node is awaited");
    }
}

/* --- Handshakes ----------------------------------------------------------- */

static struct cluster_node *node_of(struct rf_cluster *cluster,
                                    const char *identity)
{
    for (uint32_t i = 0; identity != NULL && i < cluster->config->n_nodes;
         i++) {
        if (strcmp(cluster->nodes[i].identity, identity) == 0) {
            return &cluster->nodes[i];
        }
    }
    return NULL;
}

static void count_claim(struct cluster_node *node)
{
    if (worth_telling(++node->claims)) {
        rf_warn("a second connection claims to be %s: refused",
                rf_cluster_name(node));
    }
}

static bool find_psk(const char *identity, uint8_t psk[RF_PSK_BYTES],
                     void *data)
{
    struct cluster_node *node = node_of(data, identity);
    if (node == NULL) {
        return false;
    }
    if (node->used || node->lost) {
        count_claim(node);
        return false;
    }
    memcpy(psk, node->psk, RF_PSK_BYTES);
    return true;
}

static void peer_ready_cb(struct rf_conn *conn, void *data)
{
    struct cluster_peer *peer = data;
    struct rf_cluster *cluster = peer->cluster;
    struct cluster_node *node = node_of(cluster, rf_conn_identity(conn));
    if (cluster->stopping || node == NULL) {
        turn_away(peer, "no node is awaited");
        return;
    }
    if (node->used || node->lost) { /* since its handshake began */
        count_claim(node);
        turn_away(peer, "another connection is that node's");
        return;
    }
    leave_strangers(peer);
    node->used = true;
    node->tcp = conn;
    peer->node = node;
    if (rf_cluster_by_hand(cluster)) {
        rf_cluster_send_boot(node, conn, true);
    }
}

static void peer_frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                          void *data)
{
    struct cluster_peer *peer = data;
    if (peer->node != NULL) {
        rf_cluster_frame(peer->node, conn, frame);
    }
}

/* A connection that has proved the node's key is over, with no HELLO on it. An
 * orderly end alone says nothing where a launcher's stream is there: the agent
 * may have chosen that one, and if it has ended, the stream tells more. */
static void ended_before_hello(struct cluster_node *node,
                               const struct rf_err *why)
{
    const char *text =
        why->status != RF_OK ? why->text : "its agent closed the connection";
    if (node->lost || node->control != NULL || node->cluster->stopping) {
        return;
    }
    if (rf_cluster_by_hand(node->cluster)) {
        node->used = false;
        node->hello_by_ns = INT64_MAX;
        rf_warn("%s: before it had joined: %s; start its worker again",
                rf_cluster_name(node), text);
    } else if (why->status == RF_ERR_PROTOCOL) {
        rf_cluster_lost(node, text);
    } else if (why->status != RF_OK) {
        rf_cluster_trouble(node, "before it had joined: %s", text);
    }
}

static void node_ended(struct cluster_node *node, const struct rf_conn *conn,
                       const struct rf_err *why)
{
    node->tcp = NULL;
    if (node->control == conn) {
        node->control = NULL;
        rf_cluster_trouble(node, "its control connection ended%s%s",
                           why->status != RF_OK ? ": " : "", why->text);
    } else {
        ended_before_hello(node, why);
    }
}

static void peer_close_cb(struct rf_conn *conn, const struct rf_err *why,
                          void *data)
{
    struct cluster_peer *peer = data;
    struct rf_cluster *cluster = peer->cluster;
    leave_strangers(peer);
    if (peer->node == NULL) {
        tell_refused(peer, why->text);
    } else {
        node_ended(peer->node, conn, why);
    }
    free(peer);
    cluster->open_handles--;
    rf_cluster_maybe_stopped(cluster);
}

static const struct rf_conn_ops peer_ops = {peer_ready_cb, peer_frame_cb,
                                            peer_close_cb};

/* --- Accepting ------------------------------------------------------------ */

/* No buffer: the bytes stay where they are for the connection to read. */
static void no_buffer_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(NULL, 0);
}

/* Something has come (UV_ENOBUFS), be it the end. */
static void first_bytes_cb(uv_stream_t *stream, ssize_t nread,
                           const uv_buf_t *buf)
{
    struct cluster_peer *peer = stream->data;
    struct rf_tls *tls = NULL;
    struct rf_err err = {0};
    uv_os_fd_t fd;
    (void)buf;
    if (nread == 0) {
        return;
    }
    uv_read_stop(stream);
    if (rf_tls_server_create(find_psk, peer->cluster, &tls, &err) != RF_OK) {
        turn_away(peer, err.text);
        return;
    }
    if (uv_fileno((uv_handle_t *)stream, &fd) == 0) {
        rf_tcp_tune_control(fd);
    }
    peer->tcp = NULL;
    peer->conn = rf_conn_open(stream, tls, &peer_ops, peer);
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

void rf_cluster_accept(struct rf_cluster *cluster, uv_stream_t *server)
{
    struct cluster_peer *peer = rf_xcalloc(1, sizeof(*peer));
    peer->cluster = cluster;
    peer->since_ns = rf_now_ns();
    peer->tcp = rf_xmalloc(sizeof(*peer->tcp));
    peer->tcp->data = peer;
    uv_tcp_init(cluster->loop, peer->tcp);
    cluster->open_handles++;
    if (uv_accept(server, (uv_stream_t *)peer->tcp) != 0) {
        uv_close((uv_handle_t *)peer->tcp, tcp_closed_cb);
        return;
    }
    peer->source = source_of(peer->tcp);
    if (cluster->stopping || !make_room(cluster, &peer->source) ||
        uv_read_start((uv_stream_t *)peer->tcp, no_buffer_cb, first_bytes_cb) !=
            0) {
        turn_away(peer, "there is no room for it");
        return;
    }
    join_strangers(peer);
}

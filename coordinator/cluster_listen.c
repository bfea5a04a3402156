/*
 * The listener: agents connect back to exactly the addresses that they were
 * given. TLS with the node's own key, or nothing: a stranger costs one bounded
 * place for at most RF_CONN_HANDSHAKE_MS. Each identity joins once; the
 * listeners close when all nodes have joined.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster_internal.h"

#define BACKLOG 128
#define STRANGERS_PER_SOURCE 16

static bool find_psk(const char *identity, uint8_t psk[RF_PSK_BYTES],
                     void *data)
{
    struct rf_cluster *cluster = data;
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        if (strcmp(node->identity, identity) != 0) {
            continue;
        }
        if (node->used || node->lost) {
            rf_warn("a second connection claims to be %s: refused",
                    rf_cluster_name(node));
            return false;
        }
        memcpy(psk, node->psk, RF_PSK_BYTES);
        return true;
    }
    return false;
}

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

static void peer_ready_cb(struct rf_conn *conn, void *data)
{
    struct cluster_peer *peer = data;
    struct rf_cluster *cluster = peer->cluster;
    struct cluster_node *node = node_of(cluster, rf_conn_identity(conn));
    if (node == NULL || node->used || node->lost || cluster->stopping) {
        rf_conn_close(conn);
        return;
    }
    node->used = true;
    node->tcp = conn;
    peer->node = node;
    cluster->n_strangers--;
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

/* Strangers never matter to the run; says so rarely. */
static void stranger_ended(struct cluster_peer *peer, const struct rf_err *why)
{
    struct rf_cluster *cluster = peer->cluster;
    cluster->n_strangers--;
    cluster->refused++;
    if ((cluster->refused & (cluster->refused - 1)) == 0) {
        rf_info("refused a connection from %s (%s); %u so far", peer->source,
                why->text, cluster->refused);
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
    struct cluster_peer *peer = data, **link;
    struct rf_cluster *cluster = peer->cluster;
    for (link = &cluster->peers; *link != peer;) {
        link = &(*link)->next;
    }
    *link = peer->next;
    if (peer->node == NULL) {
        stranger_ended(peer, why);
    } else {
        node_ended(peer->node, conn, why);
    }
    free(peer);
    cluster->open_handles--;
    rf_cluster_maybe_stopped(cluster);
}

static const struct rf_conn_ops peer_ops = {peer_ready_cb, peer_frame_cb,
                                            peer_close_cb};

static void free_cb(uv_handle_t *handle)
{
    free(handle);
}

static void source_of(uv_tcp_t *tcp, char out[64])
{
    struct sockaddr_storage name;
    int size = (int)sizeof(name);
    snprintf(out, 64, "?");
    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&name, &size) != 0) {
        return;
    }
    if (name.ss_family == AF_INET) {
        uv_ip4_name((struct sockaddr_in *)&name, out, 64);
    } else if (name.ss_family == AF_INET6) {
        uv_ip6_name((struct sockaddr_in6 *)&name, out, 64);
    }
}

/* Whether there is room for one more that has not proved who it is. */
static bool room_for(const struct rf_cluster *cluster, const char *source)
{
    unsigned same = 0;
    unsigned limit = RF_MAX(64u, 2 * cluster->config->n_nodes);
    for (struct cluster_peer *peer = cluster->peers; peer != NULL;
         peer = peer->next) {
        same += peer->node == NULL && strcmp(peer->source, source) == 0;
    }
    return cluster->n_strangers < limit &&
           same < RF_MAX(STRANGERS_PER_SOURCE, cluster->config->n_nodes);
}

static void accept_cb(uv_stream_t *server, int status)
{
    struct cluster_listener *listener = server->data;
    struct rf_cluster *cluster = listener->cluster;
    uv_tcp_t *tcp;
    struct rf_tls *tls = NULL;
    struct cluster_peer *peer;
    struct rf_err err = {0};
    char source[64];
    uv_os_fd_t fd;
    if (status < 0) {
        return; /* EMFILE and the like: libuv sheds and goes on */
    }
    tcp = rf_xmalloc(sizeof(*tcp));
    uv_tcp_init(cluster->loop, tcp);
    if (uv_accept(server, (uv_stream_t *)tcp) != 0) {
        uv_close((uv_handle_t *)tcp, free_cb);
        return;
    }
    source_of(tcp, source);
    if (cluster->stopping || !room_for(cluster, source) ||
        rf_tls_server_create(find_psk, cluster, &tls, &err) != RF_OK) {
        uv_close((uv_handle_t *)tcp, free_cb);
        return;
    }
    if (uv_fileno((uv_handle_t *)tcp, &fd) == 0) {
        rf_tcp_tune(fd);
    }
    peer = rf_xcalloc(1, sizeof(*peer));
    peer->cluster = cluster;
    snprintf(peer->source, sizeof(peer->source), "%s", source);
    peer->next = cluster->peers;
    cluster->peers = peer;
    cluster->n_strangers++;
    cluster->open_handles++;
    peer->conn = rf_conn_open((uv_stream_t *)tcp, tls, &peer_ops, peer);
}

static void listener_closed_cb(uv_handle_t *handle)
{
    struct cluster_listener *listener = handle->data;
    struct rf_cluster *cluster = listener->cluster;
    free(listener);
    cluster->open_handles--;
    rf_cluster_maybe_stopped(cluster);
}

static int make_address(const char *text, uint32_t port,
                        struct sockaddr_storage *out)
{
    if (uv_ip4_addr(text, (int)port, (struct sockaddr_in *)out) == 0) {
        return 0;
    }
    return uv_ip6_addr(text, (int)port, (struct sockaddr_in6 *)out);
}

static int try_listen(struct cluster_listener *listener, const char *address,
                      uint32_t port)
{
    struct sockaddr_storage name = {0};
    int size = (int)sizeof(name);
    int result = make_address(address, port, &name);
    if (result == 0) {
        result = uv_tcp_bind(&listener->tcp, (const struct sockaddr *)&name, 0);
    }
    if (result == 0) {
        result = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, accept_cb);
    }
    if (result == 0) {
        result =
            uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&name, &size);
    }
    if (result == 0) {
        listener->port = ntohs(name.ss_family == AF_INET
                                   ? ((struct sockaddr_in *)&name)->sin_port
                                   : ((struct sockaddr_in6 *)&name)->sin6_port);
    }
    return result;
}

/* One attempt on a fresh handle. */
static int open_listener(struct rf_cluster *cluster, const char *bind_to,
                         const char *advertise, uint32_t port)
{
    struct cluster_listener *listener = rf_xcalloc(1, sizeof(*listener));
    int result;
    listener->cluster = cluster;
    uv_tcp_init(cluster->loop, &listener->tcp);
    listener->tcp.data = listener;
    cluster->open_handles++;
    result = try_listen(listener, bind_to, port);
    if (result != 0) {
        uv_close((uv_handle_t *)&listener->tcp, listener_closed_cb);
        return result;
    }
    snprintf(listener->address, sizeof(listener->address), "%s", advertise);
    listener->next = cluster->listeners;
    cluster->listeners = listener;
    return 0;
}

/* Binds to the address itself; where this machine does not have it (it is that
 * of a router in front) to all, which TLS makes harmless. */
static int listen_on_port(struct rf_cluster *cluster, const char *address,
                          uint32_t port)
{
    int result = open_listener(cluster, address, address, port);
    if (result == UV_EADDRNOTAVAIL) {
        result = open_listener(cluster,
                               strchr(address, ':') != NULL ? "::" : "0.0.0.0",
                               address, port);
    }
    return result;
}

static void tell_no_port(const struct rf_control_config *control,
                         const char *address, uint32_t port, int result)
{
    bool fixed = result == UV_EADDRINUSE && port > 0;
    rf_warn("cannot listen on %s port %u (%s): control stays on the launcher's "
            "stream%s%s",
            address, port, uv_strerror(result),
            fixed ? "; control.port 0 chooses a free one" : "",
            fixed && control->port_first > 0
                ? ", or give a wider control.port_range"
                : "");
}

struct cluster_listener *rf_cluster_listen(struct rf_cluster *cluster,
                                           const char *address)
{
    const struct rf_control_config *control = &cluster->config->control;
    uint32_t port =
        control->port_first > 0 ? control->port_first : control->port;
    int result;
    for (struct cluster_listener *listener = cluster->listeners;
         listener != NULL; listener = listener->next) {
        if (strcmp(listener->address, address) == 0) {
            return listener;
        }
    }
    for (;;) {
        result = listen_on_port(cluster, address, port);
        if (result == 0) {
            return cluster->listeners;
        }
        if (result != UV_EADDRINUSE || control->port_first == 0 ||
            port >= control->port_last) {
            break;
        }
        port++;
    }
    if (!cluster->told_no_port) { /* it is the same for each node */
        cluster->told_no_port = true;
        tell_no_port(control, address, port, result);
    }
    return NULL;
}

static bool worth_advertising(const uv_interface_address_t *interface)
{
    static const char *const virtual_names[] = {"docker", "virbr", "br-",
                                                "veth", "cni"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(virtual_names); i++) {
        if (strncmp(interface->name, virtual_names[i],
                    strlen(virtual_names[i])) == 0) {
            return false;
        }
    }
    return !interface->is_internal &&
           interface->address.address4.sin_family == AF_INET;
}

static char *append_listener(char *list, const struct cluster_listener *l)
{
    char *longer;
    if (l == NULL) {
        return list;
    }
    longer = rf_xasprintf(
        strchr(l->address, ':') != NULL ? "%s%s[%s]:%u" : "%s%s%s:%u",
        list != NULL ? list : "", list != NULL ? "," : "", l->address, l->port);
    free(list);
    return longer;
}

char *rf_cluster_listen_all(struct rf_cluster *cluster)
{
    const char *address = cluster->config->control.address;
    uv_interface_address_t *interfaces;
    char *list = NULL, text[64];
    int count;
    if (strcmp(address, "auto") != 0) {
        return append_listener(NULL, strcmp(address, "stdio") != 0
                                         ? rf_cluster_listen(cluster, address)
                                         : NULL);
    }
    if (uv_interface_addresses(&interfaces, &count) == 0) {
        for (int i = 0; i < count; i++) {
            if (worth_advertising(&interfaces[i])) {
                uv_ip4_name(&interfaces[i].address.address4, text,
                            sizeof(text));
                list = append_listener(list, rf_cluster_listen(cluster, text));
            }
        }
        uv_free_interface_addresses(interfaces, count);
    }
    return append_listener(list, rf_cluster_listen(cluster, "127.0.0.1"));
}

void rf_cluster_stop_listening(struct rf_cluster *cluster)
{
    while (cluster->listeners != NULL) {
        struct cluster_listener *listener = cluster->listeners;
        cluster->listeners = listener->next;
        uv_close((uv_handle_t *)&listener->tcp, listener_closed_cb);
    }
}

/*
 * The listeners: agents connect back to exactly the addresses that they were
 * given. Who may come in is decided in cluster_accept.c; the listeners close
 * when all nodes have joined.
 *
 * However many connections come, the loop's other work goes on: all listeners
 * together accept a few in each turn, one that has waited first, and the rest
 * waits in the kernel's queues.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/cluster_internal.h"

#define BACKLOG 4096 /* the kernel lowers it to net.core.somaxconn */
#define ACCEPTED_PER_TURN 16

/* Until its connection is accepted, no more come to it. */
static void wait_a_turn(struct cluster_listener *listener)
{
    struct rf_cluster *cluster = listener->cluster;
    listener->next_waiting = NULL;
    *cluster->waiting_end = listener;
    cluster->waiting_end = &listener->next_waiting;
}

static void accept_cb(uv_stream_t *server, int status)
{
    struct cluster_listener *listener = server->data;
    struct rf_cluster *cluster = listener->cluster;
    if (status < 0) {
        return; /* EMFILE and the like: libuv sheds and goes on */
    }
    if (cluster->accepted == ACCEPTED_PER_TURN) {
        wait_a_turn(listener);
        return;
    }
    cluster->accepted++;
    rf_cluster_accept(cluster, server);
}

void rf_cluster_listen_turn(struct rf_cluster *cluster)
{
    cluster->accepted = 0;
    while (cluster->waiting != NULL && cluster->accepted < ACCEPTED_PER_TURN) {
        struct cluster_listener *listener = cluster->waiting;
        cluster->waiting = listener->next_waiting;
        if (cluster->waiting == NULL) {
            cluster->waiting_end = &cluster->waiting;
        }
        cluster->accepted++;
        rf_cluster_accept(cluster, (uv_stream_t *)&listener->tcp);
    }
}

static void listener_closed_cb(uv_handle_t *handle)
{
    struct cluster_listener *listener = handle->data;
    struct rf_cluster *cluster = listener->cluster;
    free(listener);
    cluster->open_handles--;
    rf_cluster_maybe_stopped(cluster);
}

static void close_listener(struct cluster_listener *listener)
{
    uv_close((uv_handle_t *)&listener->tcp, listener_closed_cb);
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
        close_listener(listener);
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
    cluster->waiting = NULL;
    cluster->waiting_end = &cluster->waiting;
    while (cluster->listeners != NULL) {
        struct cluster_listener *listener = cluster->listeners;
        cluster->listeners = listener->next;
        close_listener(listener);
    }
    rf_cluster_no_strangers(cluster);
}

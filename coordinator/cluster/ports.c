/*
 * Listening, and fair turns among the ports. See ports.h.
 *
 * libuv offers no further connection at a port until the last one is accepted,
 * so a port whose connection must wait for the next turn is queued once.
 */
#include "coordinator/cluster/ports.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"

#define BACKLOG 4096 /* the kernel caps it at net.core.somaxconn */
#define ACCEPTED_PER_TURN 16

struct port {
    uv_tcp_t tcp;
    struct rf_ports *all;
    char address[64]; /* as advertised */
    uint32_t number;
    struct port *next;
    STAILQ_ENTRY(port) next_waiting;
};

struct rf_ports {
    uv_loop_t *loop;
    const struct rf_control_config *control;
    struct rf_ports_ops ops;
    void *data;
    struct port *first;
    /* Ports with a connection for the next turn of the loop, in order. */
    STAILQ_HEAD(, port) waiting;
    unsigned accepted;  /* in this turn */
    unsigned n_handles; /* of ports */
    uv_prepare_t turn;
    bool told_no_port; /* logged that an address cannot be used */
};

/* Queues the port for the next turn; until its connection is accepted, libuv
 * offers no other. */
static void wait_a_turn(struct port *port)
{
    STAILQ_INSERT_TAIL(&port->all->waiting, port, next_waiting);
}

static void pass_on(struct port *port)
{
    struct rf_ports *ports = port->all;
    ports->accepted++;
    ports->ops.on_connection((uv_stream_t *)&port->tcp, ports->data);
}

static void port_closed_cb(uv_handle_t *handle)
{
    struct port *port = handle->data;
    struct rf_ports *ports = port->all;
    free(port);
    ports->n_handles--;
    ports->ops.on_close(ports->data);
}

static void close_port(struct port *port)
{
    uv_close((uv_handle_t *)&port->tcp, port_closed_cb);
}

/* Closes a port that cannot accept: libuv would call it again without end. */
static void give_up(struct port *port, int status)
{
    struct port **link = &port->all->first;
    while (*link != port) {
        link = &(*link)->next;
    }
    *link = port->next;
    rf_warn("cannot accept connections on %s port %u (%s): control stays on "
            "the launcher's stream",
            port->address, port->number, uv_strerror(status));
    close_port(port);
}

static void connection_cb(uv_stream_t *server, int status)
{
    struct port *port = server->data;
    if (status < 0) {
        give_up(port, status);
        return;
    }
    if (port->all->accepted == ACCEPTED_PER_TURN) {
        wait_a_turn(port);
    } else {
        pass_on(port);
    }
}

static void turn_cb(uv_prepare_t *turn)
{
    struct rf_ports *ports = turn->data;
    ports->accepted = 0;
    while (!STAILQ_EMPTY(&ports->waiting) &&
           ports->accepted < ACCEPTED_PER_TURN) {
        struct port *port = STAILQ_FIRST(&ports->waiting);
        STAILQ_REMOVE_HEAD(&ports->waiting, next_waiting);
        pass_on(port);
    }
}

struct rf_ports *rf_ports_create(uv_loop_t *loop,
                                 const struct rf_control_config *control,
                                 const struct rf_ports_ops *ops, void *data)
{
    struct rf_ports *ports = rf_xcalloc(1, sizeof(*ports));
    ports->loop = loop;
    ports->control = control;
    ports->ops = *ops;
    ports->data = data;
    STAILQ_INIT(&ports->waiting);
    uv_prepare_init(loop, &ports->turn);
    ports->turn.data = ports;
    uv_prepare_start(&ports->turn, turn_cb);
    return ports;
}

/* --- Listening ------------------------------------------------------------ */

static int make_address(const char *text, uint32_t number,
                        struct sockaddr_storage *out)
{
    if (uv_ip4_addr(text, (int)number, (struct sockaddr_in *)out) == 0) {
        return 0;
    }
    return uv_ip6_addr(text, (int)number, (struct sockaddr_in6 *)out);
}

static int try_listen(struct port *port, const char *address, uint32_t number)
{
    struct sockaddr_storage name = {0};
    int size = (int)sizeof(name);
    int result = make_address(address, number, &name);
    if (result == 0) {
        result = uv_tcp_bind(&port->tcp, (const struct sockaddr *)&name, 0);
    }
    if (result == 0) {
        result = uv_listen((uv_stream_t *)&port->tcp, BACKLOG, connection_cb);
    }
    if (result == 0) {
        result =
            uv_tcp_getsockname(&port->tcp, (struct sockaddr *)&name, &size);
    }
    if (result == 0) {
        port->number = ntohs(name.ss_family == AF_INET
                                 ? ((struct sockaddr_in *)&name)->sin_port
                                 : ((struct sockaddr_in6 *)&name)->sin6_port);
    }
    return result;
}

/* One attempt on a fresh handle. Returns 0 or an error of libuv. */
static int open_port(struct rf_ports *ports, const char *bind_to,
                     const char *advertise, uint32_t number)
{
    struct port *port = rf_xcalloc(1, sizeof(*port));
    int result;
    port->all = ports;
    uv_tcp_init(ports->loop, &port->tcp);
    port->tcp.data = port;
    ports->n_handles++;
    result = try_listen(port, bind_to, number);
    if (result != 0) {
        close_port(port);
        return result;
    }
    snprintf(port->address, sizeof(port->address), "%s", advertise);
    port->next = ports->first;
    ports->first = port;
    return 0;
}

/* Binds to the address itself. If this machine does not have it (it is that of
 * a router in front), binds to all, which TLS makes harmless. */
static int listen_at(struct rf_ports *ports, const char *address,
                     uint32_t number)
{
    int result = open_port(ports, address, address, number);
    if (result == UV_EADDRNOTAVAIL) {
        result =
            open_port(ports, strchr(address, ':') != NULL ? "::" : "0.0.0.0",
                      address, number);
    }
    return result;
}

static void tell_no_port(struct rf_ports *ports, const char *address,
                         uint32_t number, int result)
{
    bool fixed = result == UV_EADDRINUSE && number > 0;
    if (ports->told_no_port) { /* the same for each node */
        return;
    }
    ports->told_no_port = true;
    rf_warn("cannot listen on %s port %u (%s): control stays on the launcher's "
            "stream%s%s",
            address, number, uv_strerror(result),
            fixed ? "; set control.port to 0 for a free one" : "",
            fixed && ports->control->port_first > 0
                ? ", or widen control.port_range"
                : "");
}

uint32_t rf_ports_open(struct rf_ports *ports, const char *address)
{
    const struct rf_control_config *control = ports->control;
    uint32_t number =
        control->port_first > 0 ? control->port_first : control->port;
    int result;
    for (const struct port *port = ports->first; port != NULL;
         port = port->next) {
        if (strcmp(port->address, address) == 0) {
            return port->number;
        }
    }
    result = listen_at(ports, address, number);
    while (result == UV_EADDRINUSE && control->port_first > 0 &&
           number < control->port_last) {
        result = listen_at(ports, address, ++number);
    }
    if (result != 0) {
        tell_no_port(ports, address, number, result);
        return 0;
    }
    return ports->first->number;
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

/* Opens one more port and appends it to the list. */
static void add_port(struct rf_ports *ports, const char *address, char **list)
{
    uint32_t number = rf_ports_open(ports, address);
    if (number != 0) {
        rf_text_add(list, ",",
                    strchr(address, ':') != NULL ? "[%s]:%u" : "%s:%u", address,
                    number);
    }
}

static void add_interfaces(struct rf_ports *ports, char **list)
{
    uv_interface_address_t *interfaces;
    char address[64];
    int count;
    if (uv_interface_addresses(&interfaces, &count) != 0) {
        return;
    }
    for (int i = 0; i < count; i++) {
        if (worth_advertising(&interfaces[i])) {
            uv_ip4_name(&interfaces[i].address.address4, address,
                        sizeof(address));
            add_port(ports, address, list);
        }
    }
    uv_free_interface_addresses(interfaces, count);
}

char *rf_ports_open_all(struct rf_ports *ports)
{
    const char *address = ports->control->address;
    char *list = NULL;
    if (strcmp(address, "stdio") == 0) {
        return NULL;
    }
    if (strcmp(address, "auto") != 0) {
        add_port(ports, address, &list);
        return list;
    }
    add_interfaces(ports, &list);
    add_port(ports, "127.0.0.1", &list);
    return list;
}

/* --- The end -------------------------------------------------------------- */

void rf_ports_close(struct rf_ports *ports)
{
    STAILQ_INIT(&ports->waiting);
    while (ports->first != NULL) {
        struct port *port = ports->first;
        ports->first = port->next;
        close_port(port);
    }
}

bool rf_ports_are_closed(const struct rf_ports *ports)
{
    return ports->n_handles == 0;
}

static void turn_closed_cb(uv_handle_t *handle)
{
    free(handle->data);
}

void rf_ports_destroy(struct rf_ports *ports)
{
    uv_close((uv_handle_t *)&ports->turn, turn_closed_cb);
}

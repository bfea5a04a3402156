/*
 * The ports that agents connect back to: exactly the addresses that they were
 * given. A flood of connections does not stall the loop: all ports together
 * pass on a few per turn, the longest waiting first; the rest stay in the
 * kernel's queues.
 */
#ifndef RF_COORDINATOR_CLUSTER_PORTS_H
#define RF_COORDINATOR_CLUSTER_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "coordinator/config/config.h"

struct rf_ports;

struct rf_ports_ops {
    /* A connection waits at `server`; take it with uv_accept(). */
    void (*on_connection)(uv_stream_t *server, void *data);
    /* A port has closed. */
    void (*on_close)(void *data);
};

/* `control` is borrowed. */
struct rf_ports *rf_ports_create(uv_loop_t *loop,
                                 const struct rf_control_config *control,
                                 const struct rf_ports_ops *ops, void *data);

/* Starts accepting connections to `address`, unless it does so already, and
 * returns the port; 0: cannot listen on it, which is logged once. */
uint32_t rf_ports_open(struct rf_ports *ports, const char *address);
/* The same for all addresses at which a node may know this machine, or for
 * control.address alone: "HOST:PORT,…", malloc'ed; NULL: could not listen on
 * any, or control.address is "stdio". */
char *rf_ports_open_all(struct rf_ports *ports);

/* Closes all. */
void rf_ports_close(struct rf_ports *ports);
/* Whether all have closed. */
bool rf_ports_are_closed(const struct rf_ports *ports);

/* Call only once all have closed; the loop must then run until idle. */
void rf_ports_destroy(struct rf_ports *ports);

#endif

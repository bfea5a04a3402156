/*
 * The ports that agents connect back to: exactly the addresses that they were
 * given. However many connections come, the loop's other work goes on: all
 * ports together pass on a few in each turn, one that has waited first, and the
 * rest waits in the kernel's queues.
 */
#ifndef RF_COORDINATOR_CLUSTER_PORTS_H
#define RF_COORDINATOR_CLUSTER_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "coordinator/config/config.h"

struct rf_ports;

struct rf_ports_ops {
    /* A connection waits at `server`, to be taken with uv_accept(). */
    void (*on_connection)(uv_stream_t *server, void *data);
    /* A port has closed. */
    void (*on_close)(void *data);
};

/* `control` is borrowed. */
struct rf_ports *rf_ports_create(uv_loop_t *loop,
                                 const struct rf_control_config *control,
                                 const struct rf_ports_ops *ops, void *data);

/* The port at which connections to `address` are accepted from now on; 0: it
 * cannot be listened on, which is logged once. */
uint32_t rf_ports_open(struct rf_ports *ports, const char *address);
/* The same for all addresses at which a node may know this machine, or for
 * control.address alone: "HOST:PORT,…", malloc'ed; NULL: nothing could be
 * listened on. */
char *rf_ports_open_all(struct rf_ports *ports);

/* Closes all. */
void rf_ports_close(struct rf_ports *ports);
/* Whether all have closed. */
bool rf_ports_are_closed(const struct rf_ports *ports);

/* Only once all have closed; the loop must then run until it has nothing to do.
 */
void rf_ports_destroy(struct rf_ports *ports);

#endif

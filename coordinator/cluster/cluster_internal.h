/* Private to cluster*.c. */
#ifndef RF_COORDINATOR_CLUSTER_CLUSTER_INTERNAL_H
#define RF_COORDINATOR_CLUSTER_CLUSTER_INTERNAL_H

#include "coordinator/cluster/cluster.h"
#include "coordinator/cluster/launch.h"
#include "transport/conn.h"
#include "transport/messages.h"

#define CLUSTER_HELLO_S 10 /* for HELLO beyond launch.timeout_s */
#define CLUSTER_TICK_MS 100
#define CLUSTER_LAST_LINES 6

struct cluster_node {
    struct rf_cluster *cluster;
    uint32_t index;
    const struct rf_node_config *config;
    struct rf_launch *launch; /* NULL: not started, or over */
    struct rf_conn *stdio, *tcp;
    struct rf_conn *control; /* one of these, after HELLO */
    uint8_t psk[RF_PSK_BYTES];
    char identity[RF_IDENTITY_MAX];
    bool used;       /* the identity has a connection */
    unsigned claims; /* of others to be it, for the log */
    bool answered;   /* the worker's banner has come */
    bool joined;     /* HELLO was accepted */
    bool lost;       /* reported, or dropped */
    int64_t launched_ns;
    int64_t hello_by_ns; /* INT64_MAX: not waiting */
    /* Something ended; the reason may get better until then. */
    int64_t verdict_ns;
    char trouble[700];
    char ended[64];                 /* how its process ended, comes last */
    bool cause_known;               /* what `trouble` says needs no addition */
    char *last[CLUSTER_LAST_LINES]; /* lines of its standard error */
    unsigned last_at;
    /* lease */
    unsigned quick; /* leases still to be sent in quick succession */
    int64_t next_lease_ns;
    int64_t heard_t, heard_at; /* to be echoed */
    struct rf_cluster_clock clock;
    struct rf_clock_offset exchanges;
};

struct cluster_listener {
    uv_tcp_t tcp;
    struct rf_cluster *cluster;
    char address[64]; /* as advertised */
    uint32_t port;
    struct cluster_listener *next;
    struct cluster_listener *next_waiting;
};

struct rf_cluster {
    uv_loop_t *loop;
    const struct rf_config *config;
    const char *run_id;
    struct rf_cluster_ops ops;
    void *data;
    const struct rf_launcher_ops *launcher;
    char *local_worker;
    struct rf_launch_gate *gate;
    struct rf_msg_shared *shared; /* BOOT's, or NULL */
    struct cluster_node *nodes;
    struct cluster_listener *listeners;
    /* Those with a connection for the next turn of the loop, in order. */
    struct cluster_listener *waiting, **waiting_end;
    unsigned accepted; /* in this turn, by all listeners */
    struct cluster_peer *strangers, **strangers_end; /* oldest first */
    unsigned n_strangers, max_strangers;
    unsigned refused; /* connections of strangers, for one line of log */
    uv_timer_t tick;
    uv_prepare_t turn;    /* of the loop */
    unsigned own_handles; /* these two */
    int64_t last_tick_ns, grace_until_ns;
    unsigned open_handles; /* conns, listeners: stopped waits for them */
    bool stopping, told_stopped;
    bool told_no_port; /* that an address cannot be listened on */
};

/* cluster.c */
/* Notes why a node seems to be gone; judged a little later, so that all that
 * has to do with it is told together. */
void rf_cluster_trouble(struct cluster_node *node, const char *fmt, ...)
    RF_PRINTF(2, 3);
/* The same for what explains all other notes: it stands alone. */
void rf_cluster_cause(struct cluster_node *node, const char *fmt, ...)
    RF_PRINTF(2, 3);
/* The same for how its process ended: that comes last. */
void rf_cluster_ended(struct cluster_node *node, const char *fmt, ...)
    RF_PRINTF(2, 3);
/* The time for that is over: the node is lost, with all notes. */
void rf_cluster_judge(struct cluster_node *node);
/* Reports a node lost, once, and cuts its connections. */
void rf_cluster_lost(struct cluster_node *node, const char *text);
void rf_cluster_maybe_stopped(struct rf_cluster *cluster);
const char *rf_cluster_name(const struct cluster_node *node);
/* Whether the user starts the agents: no launcher watches them, so one that
 * fails before HELLO may be started again. */
bool rf_cluster_by_hand(const struct rf_cluster *cluster);
void rf_cluster_log(struct cluster_node *node, uint32_t rank, const char *text,
                    size_t size);

/* cluster_launch.c: starting agents. */
void rf_cluster_send_boot(struct cluster_node *node, struct rf_conn *conn,
                          bool manual);

/* cluster_frame.c: what agents say, and leases. */
void rf_cluster_frame(struct cluster_node *node, struct rf_conn *conn,
                      const struct rf_frame *frame);
void rf_cluster_lease_tick(struct cluster_node *node, int64_t now);

/* cluster_accept.c: who connects. */
/* Takes the connection that `server` has. */
void rf_cluster_accept(struct rf_cluster *cluster, uv_stream_t *server);
/* Ends those that have been silent too long. */
void rf_cluster_strangers_tick(struct rf_cluster *cluster, int64_t now);
/* Ends all of them. */
void rf_cluster_no_strangers(struct rf_cluster *cluster);

/* cluster_listen.c */
/* A new turn of the loop has begun. */
void rf_cluster_listen_turn(struct rf_cluster *cluster);
struct cluster_listener *rf_cluster_listen(struct rf_cluster *cluster,
                                           const char *address);
/* For launcher manual, before anything is started: "HOST:PORT,…"; NULL when
 * nothing could be listened on. malloc'ed. */
char *rf_cluster_listen_all(struct rf_cluster *cluster);
void rf_cluster_stop_listening(struct rf_cluster *cluster);

#endif

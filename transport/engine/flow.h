/*
 * Dependencies inside a node, by the execution rules of
 * planner/schedule/schedule.h, and the shared queues of ready work.
 *
 * Every op that touches the node becomes one or more *actions*: a copy; or,
 * when it travels, a send at its source's rank and a receive at its
 * destination's. Actions wait for actions: a counter in shared memory counts
 * arrivals, and the rank that completes it hands the action to its runner.
 * Counters only grow (each iteration adds the same amount), so nothing is reset
 * between iterations.
 */
#ifndef RF_TRANSPORT_ENGINE_FLOW_H
#define RF_TRANSPORT_ENGINE_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/method/node_memory.h"

enum rf_route {
    RF_ROUTE_SHARED, /* a copy that any rank of the node may run */
    RF_ROUTE_OWN,    /* a copy that the destination's rank runs */
    RF_ROUTE_LINK,   /* the source's rank sends, the destination's receives */
    RF_ROUTE_FILE,   /* the source's rank writes, the destination's reads */
};

enum rf_action_kind {
    RF_ACTION_COPY,
    RF_ACTION_SEND,    /* over a link, or into a file */
    RF_ACTION_RECV,    /* complete when the bytes are in place */
    RF_ACTION_ADMIT,   /* the destination may take the op now: on a link it
                        notifies the source, from a file it reads */
    RF_ACTION_CONVERT, /* the rank makes what it sends, or has received, into
                          what "quantize" says: of a group, or all */
    RF_ACTION_GATE,    /* runs nothing; joins several actions */
};

#define RF_FLOW_ANYONE UINT32_MAX

struct rf_action {
    enum rf_action_kind kind;
    uint32_t op;      /* index into schedule->ops; of a conversion the group,
                         RF_NO_GROUP: all; RF_NONE of a gate */
    uint32_t owner;   /* slot of the rank that runs it, or RF_FLOW_ANYONE */
    uint32_t n_needs; /* arrivals before it may run */
    uint32_t first_next, n_next;        /* into rf_flow.next: its successors */
    uint32_t first_portion, n_portions; /* of a shared copy with needs */
    uint32_t n_parts; /* of a shared copy: its number of parts */
    bool admitted;    /* of a send: it needs the destination's admission */
};

/* The actions of one op on this node; RF_NONE: none. */
struct rf_op_actions {
    uint32_t copy, send, recv, admit;
};

struct rf_flow_queue;

struct rf_flow {
    const struct rf_schedule *schedule;
    const enum rf_route *routes; /* by op index */
    uint32_t n_actions;
    uint32_t n_local; /* ranks of this node */
    uint32_t *slots;  /* by world rank; RF_NONE: on another node */
    struct rf_action *actions;
    uint32_t *next;
    struct rf_op_actions *of_op;
    bool serialize;
    bool noted; /* a send is complete when its receiver says so, not when it is
                   handed over: others may wait for it */
    /* Portions of shared copies: [0, n_free) may run at once, the rest when
     * their action is handed out. Set before rf_flow_shared_bytes(). */
    uint32_t n_portions, n_free;
    /* at run time */
    struct rf_node_memory *shm;
    uint32_t self;
    uint32_t generation; /* of the current iteration, from 1 */
    struct rf_flow_shared *shared;
    _Atomic uint64_t *arrivals, *parts; /* by action */
    _Atomic uint64_t *ready_portions;
    struct rf_flow_queue *queues; /* by slot, in private memory */
};

struct rf_flow_how {
    const struct rf_schedule *schedule; /* ops that touch `node` */
    const struct rf_world *world;
    uint32_t node;
    const enum rf_route *routes; /* by op */
    bool serialize;
    bool groups;                /* of the scenario */
    const struct rf_plan *plan; /* whose senders convert after the start, or
                                   whose conversions overlap; NULL: neither */
};

/* Makes the actions of the schedule's ops. Routes and schedule must outlive the
 * flow and be the same on all ranks of a node. */
enum rf_status rf_flow_build(const struct rf_flow_how *how,
                             struct rf_flow **out,
                             struct rf_err *err) RF_MUST_CHECK;
void rf_flow_destroy(struct rf_flow *flow);

/* The size of its shared memory, and its attachment to it (initially zero). */
uint64_t rf_flow_shared_bytes(const struct rf_flow *flow);
void rf_flow_attach(struct rf_flow *flow, struct rf_node_memory *shm);

/* Begins an iteration on this rank. */
void rf_flow_start(struct rf_flow *flow);

/* Meets one more of an action's needs. */
void rf_flow_arrive(struct rf_flow *flow, uint32_t action);
/* Marks an action done; may hand out its successors. */
void rf_flow_complete(struct rf_flow *flow, uint32_t action);
/* Marks one part of a shared copy done; the last completes the copy. */
void rf_flow_part_done(struct rf_flow *flow, uint32_t action);

/* The next action handed to this rank. Actions without needs are never handed
 * out: their owners start them directly. */
bool rf_flow_take(struct rf_flow *flow, uint32_t *action);

/* Claims a ready portion; call rf_flow_portion_done() after it has run. */
bool rf_flow_claim_portion(struct rf_flow *flow, uint32_t *portion);
void rf_flow_portion_done(struct rf_flow *flow);
bool rf_flow_portions_finished(const struct rf_flow *flow);

/* Whether there is something to take or claim; asked before sleep. */
bool rf_flow_has_work(const struct rf_flow *flow);

#endif

/*
 * All agents of a cluster on one event loop: each has its own TCP connection
 * with TLS to a real coordinator and speaks the control protocol as an agent
 * with its ranks does, but starts no processes and moves no bytes. It answers
 * every step at once, so that what is measured is the control plane alone.
 */
#ifndef RF_TESTS_SWARM_AGENTS_H
#define RF_TESTS_SWARM_AGENTS_H

#include <stdbool.h>
#include <uv.h>

#include "planner/plan/plan.h"
#include "transport/control/conn.h"
#include "transport/control/message_fields.h"
#include "worker/shared/start_task.h"

/* What is timed, in the order in which it happens. */
enum swarm_mark {
    SWARM_CONNECT,   /* the first agent begins to connect */
    SWARM_JOINED,    /* the last one is welcome */
    SWARM_START,     /* the first START is here */
    SWARM_STARTED,   /* the last one is */
    SWARM_EXCHANGE,  /* the first part of an exchange is sent */
    SWARM_EXCHANGED, /* the last agent has all parts */
    SWARM_FILL,      /* the first iteration begins */
    SWARM_CLOSE,     /* the last one is over */
    SWARM_SHUTDOWN,  /* the result is stored */
    SWARM_MARKS
};

/* From the first STEP that an agent gets to the first of the next step: what
 * it takes to ask everybody and to hear from everybody. */
struct swarm_round {
    char step[16];
    int64_t begin_ns, cpu_ns; /* cpu_ns: of the coordinator's loop so far */
};

#define SWARM_ROUNDS_MAX 4096

struct swarm;

struct swarm_ops {
    void (*on_mark)(enum swarm_mark mark, void *data);
    /* The coordinator's processor time so far. */
    int64_t (*cpu_ns)(void *data);
    /* Nothing can come of this run any more. */
    void (*on_failure)(const char *why, void *data);
};

struct swarm_agent {
    struct swarm *swarm;
    uint32_t node;
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES];
    uv_connect_t request;
    struct rf_conn *conn;
    uint32_t first_rank, n_ranks;
    int64_t lease_ns; /* when the next one is due; 0: not welcome yet */
    unsigned burst;
    int64_t heard_t, heard_at_ns;
};

/* A message that is the same for all agents is read once. */
struct swarm_seen {
    char *text;
    size_t size;
    struct rf_msg message;
};

struct swarm {
    uv_loop_t *loop;
    uv_timer_t leases;
    struct swarm_ops ops;
    void *data;
    struct swarm_agent *agents;
    uint32_t n_agents, slots;
    uint32_t count[SWARM_MARKS];
    uint32_t n_closed;
    struct swarm_seen start, step;
    uint64_t seq; /* of the last step; counts from 1 */
    struct rf_start_task *task;
    char plan_digest[RF_HASH_TEXT_SIZE], schedule_digest[RF_HASH_TEXT_SIZE];
    bool *receives; /* by rank, of the links of the step */
    struct swarm_round rounds[SWARM_ROUNDS_MAX];
    size_t n_rounds;
    uint64_t exchanged_bytes, start_bytes; /* to one agent */
};

void swarm_init(struct swarm *swarm, uv_loop_t *loop, uint32_t n_agents,
                uint32_t slots);

/* `to` is ADDRESS:PORT, `key` 64 hexadecimal digits. */
void swarm_connect(struct swarm *swarm, uint32_t node, const char *to,
                   const char *identity, const char *key);

/* Once the loop has run dry. */
void swarm_free(struct swarm *swarm);

/* answers.c: DONE of an agent for the step in progress; free() it. */
char *swarm_done(const struct swarm *swarm, const struct swarm_agent *agent);
/* EXCHANGE of an agent with what its ranks say when they compare plans. */
char *swarm_exchange(const struct swarm *swarm,
                     const struct swarm_agent *agent);
/* HELLO of a node with a GPU for each slot. A new reference. */
json_t *swarm_hello(const struct swarm_agent *agent);

#endif

/* Internal to agent*.c. */
#ifndef RF_WORKER_AGENT_AGENT_INTERNAL_H
#define RF_WORKER_AGENT_AGENT_INTERNAL_H

#include <arpa/inet.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "common/sm.h"
#include "transport/control/clock_offset.h"
#include "transport/control/conn.h"
#include "transport/control/message_fields.h"
#include "transport/disk/disk_names.h"
#include "worker/agent/agent.h"
#include "worker/agent/join.h"
#include "worker/agent/reach.h"
#include "worker/helper/helper.h"

#define RF_AGENT_TAIL_BYTES 4096
#define RF_AGENT_LINE_BYTES 8192
/* Limit on a rank's forwarded output: burst in bytes, then bytes per second. */
#define RF_AGENT_OUTPUT_BURST ((double)(256 << 10))
#define RF_AGENT_OUTPUT_RATE ((double)(64 << 10))

/*
 *   BOOTING → SURVEYING → JOINING → GREETING → READY → ENDING
 *
 * BOOTING: waits for BOOT. SURVEYING: probes the node. JOINING: connects back.
 * GREETING: has sent HELLO. ENDING: kills the ranks, then exits; reachable
 * from every state. Without a launcher JOINING precedes BOOTING.
 */
enum agent_state {
    AGENT_BOOTING,
    AGENT_SURVEYING,
    AGENT_JOINING,
    AGENT_GREETING,
    AGENT_READY,
    AGENT_ENDING,
    AGENT_STATES,
};

/*
 *   NONE → RUNNING → LEAVING → TERMINATED → KILLED → NONE
 *
 * LEAVING: ranks were told to abort, or have closed and exit by themselves.
 * TERMINATED: SIGTERM sent. KILLED: SIGKILL sent. Each of the three goes to
 * NONE as soon as all ranks are gone, KILLED also if ranks cannot be killed.
 */
enum attempt_state {
    ATTEMPT_NONE,
    ATTEMPT_RUNNING,
    ATTEMPT_LEAVING,
    ATTEMPT_TERMINATED,
    ATTEMPT_KILLED,
    ATTEMPT_STATES,
};

struct agent;

/* Output of one rank process on its way to the coordinator. */
struct agent_output {
    int fd; /* read end of the pipe; -1 once closed */
    uv_poll_t poll;
    char tail[RF_AGENT_TAIL_BYTES]; /* the last bytes, dropped ones included */
    size_t tail_used;
    char line[RF_AGENT_LINE_BYTES]; /* not forwarded yet */
    size_t line_used;
    double credit;     /* bytes that may be forwarded */
    int64_t credit_ns; /* when credit was last updated */
    uint64_t dropped;  /* bytes dropped since some were last forwarded */
};

/* One rank process. Allocated separately because it contains libuv handles. */
struct agent_rank {
    struct agent *agent;
    uint32_t rank;
    const cpu_set_t *cpus; /* of its slot; NULL: not bound */
    pid_t pid;             /* 0: failed to start */
    struct rf_conn *conn;  /* NULL once closed */
    int64_t unheard_ns;    /* when its connection closed */
    struct agent_output output;
    unsigned handles; /* open connection and poll handles */
    bool exited;
    rlim_t processor_s; /* processor time at exit, in seconds */
    bool closed;        /* has answered "close" */
    bool answered_step, answered_exchange;
    uint64_t done_bytes, of_bytes; /* checkpoint progress in its last lease */
    int64_t silent_ns; /* length of the silence it was killed for; 0: none */
    int64_t killed_ns; /* when SIGKILL was sent for that */
    bool told;         /* RANK_EXIT was sent */
    bool abandoned;    /* unkillable and reported as such */
};

/* The ranks' answers to one step or exchange, forwarded as one message. */
struct rank_answers {
    bool open;             /* answers are missing */
    struct rf_msg message; /* DONE or EXCHANGE, valid while open */
    size_t n_answers;      /* to a step, so far */
};

struct agent {
    uv_loop_t loop;
    const struct rf_agent_options *options;
    struct rf_sm sm, attempt_sm;
    int64_t state_deadline_ns, attempt_deadline_ns;
    int exit_code;

    struct rf_boot boot;
    bool booted;
    struct rf_conn *stdio;   /* NULL with --connect or once closed */
    struct rf_conn *control; /* stdio or the TCP connection */
    struct rf_join *join;    /* NULL: none in progress */
    char candidate[160], local_address[INET6_ADDRSTRLEN];

    uv_pipe_t *input; /* standard input if attended; NULL once ending */
    char ignored[64]; /* data read from it */

    uv_timer_t tick;
    uv_signal_t term, hangup, interrupt, child;
    int64_t tick_ns, lease_ns;  /* last tick, last lease sent */
    int64_t lease_grace_ns;     /* no lease expires before this */
    unsigned burst;             /* leases left in the initial burst */
    int64_t peer_t, peer_at_ns; /* coordinator's last LEASE, its arrival */
    struct rf_clock_offset clock;

    char **environment;        /* of ranks */
    cpu_set_t *slot_cpus;      /* by slot; NULL: ranks are not bound */
    struct rf_helper *survey;  /* NULL: none in progress */
    struct rf_msg_hello facts; /* its result, until HELLO is sent; from then on
                                  only `interfaces` */
    struct rf_msg_network counted; /* after the last step "fill" */
    struct rf_helper *inspect;     /* NULL: none in progress */
    struct rf_reach *reach;        /* NULL: other nodes cannot test this one */
    uint32_t attempt;
    bool abort_wanted;             /* ABORTED must be sent */
    char phase[32];                /* last step sent to the ranks */
    struct rf_integers unanswered; /* ranks without an answer at ABORT */
    struct agent_rank **ranks;
    size_t n_ranks;
    size_t export_old;    /* bytes of --export's path that existed before */
    struct rf_texts gone; /* lost agents whose files we remove */
    char *disk_folder;    /* has ranks' files with these labels; or NULL */
    char disk_label[RF_DISK_LABEL_SIZE], yardstick_label[RF_DISK_LABEL_SIZE];
    struct rank_answers step, exchange;
    uint64_t step_seq; /* of the last STEP */
    /* START received before the last attempt's ranks were gone, and the STEP
     * that followed it. */
    uint8_t *waiting_start;
    size_t waiting_start_bytes;
    struct rf_msg_step *waiting_step;
};

/* agent.c */
/* Ends ranks, connections and finally the loop. Only the first call counts. */
void rf_agent_end(struct agent *agent, int exit_code, const char *why);
/* Like rf_agent_end(), after an ERROR to the coordinator with the reason. */
void rf_agent_refuse(struct agent *agent, const char *why);
/* The folder of --export, or NULL. */
const char *rf_agent_exported(const struct agent *agent);
/* Sends to the coordinator if connected. */
void rf_agent_send(struct agent *agent, const struct rf_msg *message);

/* agent_start.c: starts attempts. */
/* Handles START: starts its ranks, or keeps it until the previous ones are
 * gone. */
void rf_agent_start(struct agent *agent, const void *payload, size_t size);
/* Starts the attempt that waited for the previous one to end, or drops it. */
void rf_agent_start_waiting(struct agent *agent);
void rf_agent_forget_waiting(struct agent *agent);

/* agent_ranks.c: ends ranks and attempts. */
extern const struct rf_sm_state rf_agent_attempt_states[ATTEMPT_STATES];
/* Changes state as the table allows. Deadline in `limit_ms`; 0: none. */
void rf_agent_move_attempt(struct agent *agent, enum attempt_state state,
                           uint32_t limit_ms);
/* Sends RANK_EXIT once. `status` is waitpid's; ignored for a rank that failed
 * to start or has not exited. */
void rf_agent_report_exit(struct agent_rank *rank, int status);
/* Handles ABORT: tells the ranks, and kills those that do not exit. */
void rf_agent_abort(struct agent *agent, const struct rf_msg_abort *message);
/* Expects ranks to exit by themselves; kills them after the grace period. */
void rf_agent_leave(struct agent *agent);
/* On SIGCHLD: reaps exited ranks and reports them. */
void rf_agent_reap(struct agent *agent);
/* Acts on the attempt's deadline once it has passed. */
void rf_agent_attempt_tick(struct agent *agent, int64_t now);
/* Kills ranks whose lease has expired; with `send` sends a lease to the
 * others. */
void rf_agent_lease_ranks(struct agent *agent, int64_t now, bool send);
void rf_agent_kill_ranks(struct agent *agent, int signal);
/* Call once for each handle of the rank that has closed. */
void rf_agent_rank_released(struct agent_rank *rank);
/* Whether all ranks have exited or been abandoned, and all handles are
 * closed. */
bool rf_agent_ranks_gone(const struct agent *agent);
void rf_agent_free_ranks(struct agent *agent);

/* agent_output.c: output of ranks. Takes ownership of `fd`, on failure too. */
enum rf_status rf_agent_output_open(struct agent_rank *rank, int fd,
                                    struct rf_err *err) RF_MUST_CHECK;
/* Reads and forwards available output; with `all` also an unfinished line. */
void rf_agent_output_read(struct agent_rank *rank, bool all);
void rf_agent_output_close(struct agent_rank *rank);

/* agent_relay.c: messages between the coordinator and the ranks. */
extern const struct rf_conn_ops rf_agent_rank_ops;
/* Relays STEP, its times shifted to this node's clock, and gathers the answers.
 * May move its members out; the caller frees the rest. */
void rf_agent_step(struct agent *agent, struct rf_msg_step *step);
/* Relays any other frame from the coordinator to the ranks. */
void rf_agent_relay(struct agent *agent, const struct rf_frame *frame);
void rf_agent_gather_clear(struct rank_answers *gather);

#endif

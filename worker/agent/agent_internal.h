/* Shared by agent*.c; nobody else includes it. */
#ifndef RF_WORKER_AGENT_AGENT_INTERNAL_H
#define RF_WORKER_AGENT_AGENT_INTERNAL_H

#include <arpa/inet.h>
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
/* Output of a rank that is passed on: so much at once, then so much per second.
 */
#define RF_AGENT_OUTPUT_BURST ((double)(256 << 10))
#define RF_AGENT_OUTPUT_RATE ((double)(64 << 10))

/*
 *   BOOTING → SURVEYING → JOINING → GREETING → READY → ENDING
 *   BOOTING: waits for BOOT. SURVEYING: finds out what the node can do.
 *   JOINING: connects back. GREETING: HELLO is sent. ENDING: ranks are killed,
 *   the process ends; from every state. Without a launcher JOINING comes before
 *   BOOTING.
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
 *   NONE → RUNNING → LEAVING → NONE
 *          RUNNING, LEAVING → TERMINATED → KILLED → NONE
 *   LEAVING: ranks were told to abort, or have closed and end by themselves.
 *   TERMINATED: SIGTERM was sent. KILLED: SIGKILL was. NONE comes early from
 *   each when all ranks are gone, and last when they cannot be killed.
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
    int fd; /* the pipe's end, -1 once closed */
    uv_poll_t poll;
    char tail[RF_AGENT_TAIL_BYTES]; /* the last bytes, whatever is dropped */
    size_t tail_used;
    char line[RF_AGENT_LINE_BYTES]; /* not passed on yet */
    size_t line_used;
    double credit;     /* bytes that may be passed on */
    int64_t credit_ns; /* when it was counted last */
    uint64_t dropped;  /* bytes not passed on since some last were */
};

/* One rank process; in memory of its own because handles are in it. */
struct agent_rank {
    struct agent *agent;
    uint32_t rank;
    pid_t pid;            /* 0: it could not be started */
    struct rf_conn *conn; /* NULL once closed */
    int64_t unheard_ns;   /* when its connection closed */
    struct agent_output output;
    unsigned handles; /* open connection and poll handle */
    bool exited;
    rlim_t processor_s; /* that it had when it exited */
    bool closed;        /* has answered "close" */
    bool answered_step, answered_exchange;
    uint64_t done_bytes, of_bytes; /* of a checkpoint, by its last lease */
    int64_t silent_ns; /* when its lease had run out; 0: it has not */
    int64_t killed_ns; /* when it got SIGKILL for that */
    bool told;         /* RANK_EXIT was sent */
    bool abandoned;    /* unkillable and reported as such */
};

/* The ranks' answers to one step or exchange, which go on together. */
struct rank_answers {
    bool open;             /* some are awaited */
    struct rf_msg message; /* DONE or EXCHANGE, valid while open */
    size_t n_answers;      /* to a step */
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
    struct rf_join *join;    /* while it is under way */
    char candidate[160], local_address[INET6_ADDRSTRLEN];

    uv_pipe_t *input; /* attended: standard input, until the end */
    char ignored[64]; /* what comes on it */

    uv_timer_t tick;
    uv_signal_t term, hangup, interrupt, child;
    int64_t tick_ns, lease_ns;  /* last tick, last lease sent */
    int64_t lease_grace_ns;     /* no lease runs out before this */
    unsigned burst;             /* leases still due in quick succession */
    int64_t peer_t, peer_at_ns; /* coordinator's last LEASE, its arrival */
    struct rf_clock_offset clock;

    char **environment;        /* of ranks */
    struct rf_helper *survey;  /* while it is under way */
    struct rf_msg_hello facts; /* what it found, until HELLO is sent */
    struct rf_helper *inspect; /* while it is under way */
    struct rf_reach *reach;    /* NULL: nobody will try to reach this node */
    uint32_t attempt;
    bool abort_wanted;             /* ABORTED is to be sent */
    char phase[32];                /* last step sent to the ranks */
    struct rf_integers unanswered; /* ranks that hung when ABORT came */
    struct agent_rank **ranks;
    size_t n_ranks;
    size_t export_old;    /* of its path: what was there before */
    struct rf_texts gone; /* owners of files that nobody else removes */
    char *disk_folder;    /* where ranks keep files of these labels, or NULL */
    char disk_label[RF_DISK_LABEL_SIZE], yardstick_label[RF_DISK_LABEL_SIZE];
    struct rank_answers step, exchange;
    uint64_t step_seq; /* of the last STEP */
    /* START that came before the ranks of the last attempt were gone, and the
     * step that followed it. */
    uint8_t *waiting_start;
    size_t waiting_start_bytes;
    struct rf_msg_step *waiting_step;
};

/* agent.c */
/* Ends ranks, connections and at last the loop; the first call counts. */
void rf_agent_end(struct agent *agent, int exit_code, const char *why);
/* The same after sending the coordinator an ERROR that gives the reason. */
void rf_agent_refuse(struct agent *agent, const char *why);
/* The folder of --export, or NULL. */
const char *rf_agent_exported(const struct agent *agent);
/* To the coordinator, if there is a connection. */
void rf_agent_send(struct agent *agent, const struct rf_msg *message);

/* agent_start.c: the beginning of an attempt. */
/* Takes START: starts its ranks, or keeps it until the last ones are gone. */
void rf_agent_start(struct agent *agent, const void *payload, size_t size);
/* Starts what had to wait for the end of the attempt before, or drops it. */
void rf_agent_start_waiting(struct agent *agent);
void rf_agent_forget_waiting(struct agent *agent);

/* agent_ranks.c: the ends of ranks and attempts. */
extern const struct rf_sm_state rf_agent_attempt_states[ATTEMPT_STATES];
/* Moves as the table allows; the new state's deadline is in `limit_ms`, 0:
 * none. */
void rf_agent_move_attempt(struct agent *agent, enum attempt_state state,
                           uint32_t limit_ms);
/* RANK_EXIT, once, with waitpid's status; of a rank without a process, and of
 * one that has not exited, any. */
void rf_agent_report_exit(struct agent_rank *rank, int status);
/* Takes ABORT: ranks are told, and killed when they do not end. */
void rf_agent_abort(struct agent *agent, const struct rf_msg_abort *message);
/* From here on ranks end by themselves, or are killed when time is up. */
void rf_agent_leave(struct agent *agent);
/* At SIGCHLD: collects ended ranks and reports them. */
void rf_agent_reap(struct agent *agent);
/* Acts on the attempt's deadline when it has passed. */
void rf_agent_attempt_tick(struct agent *agent, int64_t now);
/* Ends ranks whose lease has run out; with `send` renews those of all. */
void rf_agent_lease_ranks(struct agent *agent, int64_t now, bool send);
void rf_agent_kill_ranks(struct agent *agent, int signal);
/* One of the rank's handles was closed. */
void rf_agent_rank_released(struct agent_rank *rank);
/* Whether all have ended, or were given up, and all handles are closed. */
bool rf_agent_ranks_gone(const struct agent *agent);
void rf_agent_free_ranks(struct agent *agent);

/* agent_output.c: what ranks print. `fd` is taken, in failure too. */
enum rf_status rf_agent_output_open(struct agent_rank *rank, int fd,
                                    struct rf_err *err) RF_MUST_CHECK;
/* Reads what is there and passes it on; with `all` also an unfinished line. */
void rf_agent_output_read(struct agent_rank *rank, bool all);
void rf_agent_output_close(struct agent_rank *rank);

/* agent_relay.c: messages between the coordinator and the ranks. */
extern const struct rf_conn_ops rf_agent_rank_ops;
/* Passes STEP on, its times shifted to this node's clock, and gathers the
 * answers. Takes its members over. */
void rf_agent_step(struct agent *agent, struct rf_msg_step *step);
/* Any other frame of the coordinator for the ranks. */
void rf_agent_relay(struct agent *agent, const struct rf_frame *frame);
void rf_agent_gather_clear(struct rank_answers *gather);

#endif

/*
 * Ends rank processes and attempts. See agent_internal.h; agent_start.c starts
 * them.
 *
 * Every rank leads its own session, so that one signal reaches everything it
 * started. Descendants that left the session become this process's children
 * when the rank dies, and are killed then. Ranks are known by the pids from
 * their start, never by name.
 *
 * An attempt is over when every rank has been reaped, or could not be killed.
 * Only then may the next one start.
 */
#include "worker/agent/agent_internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "worker/helper/helper.h"
#include "worker/shared/process.h"

const struct rf_sm_state rf_agent_attempt_states[ATTEMPT_STATES] = {
    [ATTEMPT_NONE] = {"none", RF_SM_NEXT(ATTEMPT_RUNNING), 0},
    [ATTEMPT_RUNNING] = {"running", RF_SM_NEXT(ATTEMPT_LEAVING), 0},
    [ATTEMPT_LEAVING] = {"leaving",
                         RF_SM_NEXT(ATTEMPT_TERMINATED) |
                             RF_SM_NEXT(ATTEMPT_NONE),
                         0},
    [ATTEMPT_TERMINATED] = {"terminated",
                            RF_SM_NEXT(ATTEMPT_KILLED) |
                                RF_SM_NEXT(ATTEMPT_NONE),
                            0},
    [ATTEMPT_KILLED] = {"killed", RF_SM_NEXT(ATTEMPT_NONE), 0},
};

/* Time for a process to end after SIGKILL. */
#define KILL_GRACE_MS 5000
/* Added to the ranks' own limit for an abort, before signals are sent. */
#define LEAVE_EXTRA_MS 1000
#define EXIT_LINES 20
/* A shell's exit status for a program that it cannot start. */
#define NOT_STARTED_STATUS 127

void rf_agent_move_attempt(struct agent *agent, enum attempt_state state,
                           uint32_t limit_ms)
{
    int64_t now = rf_now_ns();
    rf_sm_move(&agent->attempt_sm, state, now);
    agent->attempt_deadline_ns =
        limit_ms > 0 ? now + limit_ms * RF_NS_PER_MS : INT64_MAX;
}

void rf_agent_rank_released(struct agent_rank *rank)
{
    rank->handles--;
}

bool rf_agent_ranks_gone(const struct agent *agent)
{
    for (size_t i = 0; i < agent->n_ranks; i++) {
        const struct agent_rank *rank = agent->ranks[i];
        if ((!rank->exited && !rank->abandoned) || rank->handles > 0) {
            return false;
        }
    }
    return true;
}

void rf_agent_free_ranks(struct agent *agent)
{
    char owner[RF_DISK_OWNER_SIZE];
    for (size_t i = 0; i < agent->n_ranks; i++) {
        /* A closed rank has removed its files itself. */
        if (agent->disk_folder != NULL && !agent->ranks[i]->closed) {
            rf_disk_remove(agent->disk_folder, agent->disk_label,
                           agent->ranks[i]->rank);
            rf_disk_remove(agent->disk_folder, agent->yardstick_label,
                           agent->ranks[i]->rank);
        }
        free(agent->ranks[i]);
    }
    if (agent->n_ranks > 0 && rf_agent_exported(agent) != NULL &&
        rf_disk_owner(getpid(), owner)) {
        rf_disk_sweep(rf_agent_exported(agent),
                      agent->boot.message.shared->token, &(char *){owner}, 1);
    }
    free(agent->disk_folder);
    agent->disk_folder = NULL;
    free(agent->ranks);
    agent->ranks = NULL;
    agent->n_ranks = 0;
    rf_agent_gather_clear(&agent->step);
    rf_agent_gather_clear(&agent->exchange);
}

/* The cause of death if the kernel killed the rank for its processor time, to
 * be freed; else NULL. The kernel sends SIGXCPU at the soft limit, SIGKILL at
 * the hard one. */
static char *limit_of_time(const struct agent_rank *rank, int status)
{
    const int signal =
        rank->exited && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    struct rlimit limit;
    rlim_t seconds;
    if ((signal != SIGXCPU && signal != SIGKILL) ||
        getrlimit(RLIMIT_CPU, &limit) != 0) {
        return NULL;
    }
    seconds = signal == SIGXCPU ? limit.rlim_cur : limit.rlim_max;
    if (seconds == RLIM_INFINITY || rank->processor_s < seconds) {
        return NULL;
    }
    return rf_xasprintf("was killed by signal %d (%s); the limit of processor "
                        "time is %llu s (ulimit -t)",
                        signal, strsignal(signal), (unsigned long long)seconds);
}

/* Why this agent or a limit ended the rank, to be freed; NULL: neither did. */
static char *cause_of(const struct agent_rank *rank, int status)
{
    double silent_s = (double)rank->silent_ns / 1e9;
    if (rank->silent_ns == 0) {
        return limit_of_time(rank, status);
    }
    return rank->exited
               ? rf_xasprintf("was silent for %.1f s and was killed", silent_s)
               : rf_xasprintf("was silent for %.1f s and survived SIGKILL for "
                              "%d s (state D?)",
                              silent_s, KILL_GRACE_MS / 1000);
}

static void take_last_lines(const struct agent_output *output,
                            struct rf_texts *out)
{
    json_t *lines =
        rf_text_last_lines(output->tail, output->tail_used, EXIT_LINES);
    const size_t n = json_array_size(lines);
    out->list = rf_xcalloc(n, sizeof(*out->list));
    for (; out->n < n; out->n++) {
        out->list[out->n] =
            rf_xstrdup(json_string_value(json_array_get(lines, out->n)));
    }
    json_decref(lines);
}

void rf_agent_report_exit(struct agent_rank *rank, int status)
{
    struct agent *agent = rank->agent;
    struct rf_msg message;
    struct rf_msg_rank_exit *out = &message.rank_exit;
    bool ended = rank->pid != 0 && rank->exited;
    if (rank->told) {
        return;
    }
    rank->told = true;
    rf_msg_init(&message, RF_MSG_RANK_EXIT);
    out->attempt = agent->attempt;
    out->rank = rank->rank;
    if (rank->pid == 0) {
        out->status = NOT_STARTED_STATUS;
    } else {
        out->pid = (uint32_t)rank->pid;
    }
    if (ended && WIFEXITED(status)) {
        out->status = (uint32_t)WEXITSTATUS(status);
    } else if (ended && WIFSIGNALED(status)) {
        out->signal = (uint32_t)WTERMSIG(status);
    }
    out->cause = cause_of(rank, status);
    out->phase = rf_xstrdup(agent->phase);
    take_last_lines(&rank->output, &out->stderr_lines);
    rf_agent_send(agent, &message);
    rf_msg_free(&message);
}

/* --- Ending --------------------------------------------------------------- */

void rf_agent_kill_ranks(struct agent *agent, int signal)
{
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        if (rank->exited || rank->pid <= 0) {
            continue;
        }
        if (signal == SIGTERM) {
            kill(-rank->pid, SIGCONT); /* stopped ones handle no SIGTERM */
        }
        kill(-rank->pid, signal);
    }
}

void rf_agent_leave(struct agent *agent)
{
    if (agent->attempt_sm.state == ATTEMPT_RUNNING) {
        rf_agent_move_attempt(agent, ATTEMPT_LEAVING,
                              agent->boot.limits.abort_grace_ms +
                                  LEAVE_EXTRA_MS);
    }
}

/* Records the ranks that have not answered the last step. */
static void note_unanswered(struct agent *agent)
{
    struct rf_integers *out = &agent->unanswered;
    out->list = rf_xcalloc(agent->n_ranks, sizeof(*out->list));
    for (size_t i = 0; i < agent->n_ranks; i++) {
        if (agent->step.open && !agent->ranks[i]->answered_step) {
            out->list[out->n++] = agent->ranks[i]->rank;
        }
    }
}

/* Takes over both lists. */
static void send_aborted(struct agent *agent, uint32_t attempt,
                         struct rf_integers unkillable,
                         struct rf_integers unanswered)
{
    struct rf_msg message;
    rf_msg_init(&message, RF_MSG_ABORTED);
    message.aborted.attempt = attempt;
    message.aborted.unkillable = unkillable;
    message.aborted.unanswered = unanswered;
    rf_agent_send(agent, &message);
    rf_msg_free(&message);
}

void rf_agent_abort(struct agent *agent, const struct rf_msg_abort *message)
{
    const struct rf_integers nobody = {NULL, 0};
    if (agent->attempt_sm.state == ATTEMPT_NONE ||
        message->attempt != agent->attempt) {
        rf_agent_forget_waiting(agent);
        send_aborted(agent, message->attempt, nobody, nobody);
        return;
    }
    if (!agent->abort_wanted) {
        note_unanswered(agent);
    }
    agent->abort_wanted = true;
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        if (rank->conn != NULL) {
            rf_conn_send(rank->conn, RF_MSG_ABORT, rank->rank,
                         rf_schema_encode(&rf_msg_abort_schema, message));
        }
    }
    rf_agent_leave(agent);
}

/* All ranks of the attempt are gone or abandoned. */
static void end_attempt(struct agent *agent)
{
    struct rf_integers unkillable = {
        .list = rf_xcalloc(agent->n_ranks, sizeof(*unkillable.list))};
    for (size_t i = 0; i < agent->n_ranks; i++) {
        if (!agent->ranks[i]->exited) {
            unkillable.list[unkillable.n++] = (uint64_t)agent->ranks[i]->pid;
        }
    }
    rf_agent_move_attempt(agent, ATTEMPT_NONE, 0);
    rf_agent_free_ranks(agent);
    if (agent->abort_wanted) {
        send_aborted(agent, agent->attempt, unkillable, agent->unanswered);
        agent->unanswered = (struct rf_integers){NULL, 0};
        agent->abort_wanted = false;
    } else {
        free(unkillable.list);
    }
    if (agent->waiting_start != NULL && agent->sm.state == AGENT_READY) {
        rf_agent_start_waiting(agent);
    }
}

/* Gives up on ranks that survive SIGKILL, stuck in the kernel. */
static void abandon(struct agent *agent)
{
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        if (!rank->exited && !rank->abandoned) {
            rf_warn("rank %" PRIu32 ", process %d, does not end after SIGKILL",
                    rank->rank, (int)rank->pid);
            rank->abandoned = true;
            rf_agent_output_close(rank);
            if (rank->conn != NULL) {
                rf_conn_close(rank->conn);
            }
        }
    }
}

void rf_agent_attempt_tick(struct agent *agent, int64_t now)
{
    bool overdue = now >= agent->attempt_deadline_ns;
    switch (agent->attempt_sm.state) {
    case ATTEMPT_NONE:
    case ATTEMPT_RUNNING:
        return;
    case ATTEMPT_LEAVING:
        if (overdue) {
            rf_agent_kill_ranks(agent, SIGTERM);
            rf_agent_move_attempt(agent, ATTEMPT_TERMINATED,
                                  agent->boot.limits.term_grace_ms);
        }
        break;
    case ATTEMPT_TERMINATED:
        if (overdue) {
            rf_agent_kill_ranks(agent, SIGKILL);
            rf_agent_move_attempt(agent, ATTEMPT_KILLED, KILL_GRACE_MS);
        }
        break;
    default:
        if (overdue) {
            abandon(agent);
        }
        break;
    }
    if (rf_agent_ranks_gone(agent)) {
        end_attempt(agent);
    }
}

static struct agent_rank *find_rank(const struct agent *agent, pid_t pid)
{
    for (size_t i = 0; i < agent->n_ranks; i++) {
        if (agent->ranks[i]->pid == pid) {
            return agent->ranks[i];
        }
    }
    return NULL;
}

static void rank_exited(struct agent_rank *rank, int status)
{
    struct agent *agent = rank->agent;
    /* Exits caused by our own ABORT and signals are not reported. */
    bool wanted =
        agent->attempt_sm.state > ATTEMPT_LEAVING ||
        (agent->abort_wanted && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rank->exited = true;
    rf_agent_output_read(rank, true);
    rf_agent_output_close(rank);
    if (rank->conn != NULL) {
        rf_conn_close(rank->conn);
    }
    if (!rank->closed && !wanted && agent->sm.state == AGENT_READY) {
        rf_agent_report_exit(rank, status);
    }
}

static void sweep(const struct agent *agent)
{
    pid_t *keep = rf_xcalloc(agent->n_ranks, sizeof(*keep));
    size_t n = 0;
    for (size_t i = 0; i < agent->n_ranks; i++) {
        if (!agent->ranks[i]->exited) {
            keep[n++] = agent->ranks[i]->pid;
        }
    }
    rf_process_kill_strays(keep, n);
    free(keep);
}

/* In seconds, rounded because the kernel may count a little more. */
static rlim_t processor_s(const struct rusage *usage)
{
    const double s =
        (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
        (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
    return (rlim_t)(s + 0.5);
}

void rf_agent_reap(struct agent *agent)
{
    bool any = false;
    for (;;) {
        siginfo_t info = {0};
        struct agent_rank *rank;
        struct rusage usage = {0};
        int status = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
            break;
        }
        rank = find_rank(agent, info.si_pid);
        if (rank != NULL) {
            /* Before its pid can be reused. */
            kill(-info.si_pid, SIGKILL);
        }
        wait4(info.si_pid, &status, 0, &usage);
        if (agent->survey != NULL) {
            rf_helper_child_ended(agent->survey, info.si_pid, status);
        }
        if (agent->inspect != NULL) {
            rf_helper_child_ended(agent->inspect, info.si_pid, status);
        }
        if (rank != NULL) {
            rank->processor_s = processor_s(&usage);
            rank_exited(rank, status);
            any = true;
        }
    }
    if (any) {
        sweep(agent);
        rf_agent_attempt_tick(agent, rf_now_ns());
    }
}

static void kill_overdue(struct agent_rank *rank, int64_t silent_ns,
                         int64_t now)
{
    rf_warn("rank %" PRIu32 " has been silent for %" PRId64
            " s, killing process %d",
            rank->rank, silent_ns / RF_NS_PER_S, (int)rank->pid);
    kill(-rank->pid, SIGKILL);
    rank->silent_ns = silent_ns;
    rank->killed_ns = now;
}

void rf_agent_lease_ranks(struct agent *agent, int64_t now, bool send)
{
    int64_t dead_ns = agent->boot.limits.lease_dead_ms * RF_NS_PER_MS;
    struct rf_msg lease;
    rf_msg_init(&lease, RF_MSG_LEASE);
    lease.lease.t = now;
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        int64_t heard;
        if (rank->exited || rank->abandoned) {
            continue;
        }
        if (rank->silent_ns > 0) {
            if (now - rank->killed_ns > KILL_GRACE_MS * RF_NS_PER_MS &&
                agent->attempt_sm.state == ATTEMPT_RUNNING) {
                rf_agent_report_exit(rank, 0);
            }
            continue;
        }
        heard = rank->conn != NULL ? rf_conn_last_heard_ns(rank->conn)
                                   : rank->unheard_ns;
        if (now - heard > dead_ns && now > agent->lease_grace_ns) {
            kill_overdue(rank, now - heard, now);
        } else if (send && rank->conn != NULL) {
            rf_conn_send(rank->conn, RF_MSG_LEASE, rank->rank,
                         rf_msg_json(&lease));
        }
    }
}

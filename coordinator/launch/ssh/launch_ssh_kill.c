/*
 * Kills an agent that ignores both the end of its input and that of its lease
 * (stopped, or hung in a driver), by a second command on the same SSH session,
 * because sshd ends no process when a connection ends.
 *
 * The command works in any login shell: one word in single quotes for sh,
 * without backslashes and exclamation marks, then numbers. A process is the
 * agent only if its id and start time match its HELLO. It first gets a request
 * to end, and is woken if it was stopped, since an agent that ends in order
 * also removes its files. A second later its children, the ranks, are killed
 * before it: each leads a process group, and their ids stay taken until the
 * agent has waited for them.
 *
 * An agent's process is not known before its HELLO, or behind launch.wrap. Then
 * the children of the connection's sshd, the agent or its wrap, get the same
 * signals; what the wrap has started has the end of its input. A signal on the
 * agent's channel would not do: OpenSSH refuses it for root.
 *
 * Nothing here waits: the pump calls rf_ssh_kill_go_on() when data has come,
 * and bounds the total time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/launch/ssh/launch_ssh.h"

#define GONE_STATUS 3 /* no such process, or no longer */

/* $1: process id, $2: its start time. */
static const char script[] =
    "exec 2>/dev/null; "
    "there() { read -r s </proc/$1/stat && set -- $1 $2 ${s##*\")\"} && "
    "test ${22} = $2; }; "
    "there $1 $2 || exit 3; "
    "kill -TERM $1; kill -CONT $1; sleep 1; there $1 $2 || exit 0; "
    "for c in $(cat /proc/$1/task/$1/children); do kill -KILL $c -$c; done; "
    "there $1 $2 && kill -KILL $1; exit 0";

/* For an agent whose process is not known. The list of children, read anew each
 * time, is that of this sshd even if another process gets its id meanwhile. */
static const char script_unknown[] =
    "exec 2>/dev/null; cd /proc/$PPID/task/$PPID && read s <comm || exit 1; "
    "case $s in sshd*) ;; *) exit 1;; esac; "
    "send() { k=1; for c in $(cat children); do "
    "test $c = $$ || { kill -$1 $c && k=0; }; done; return $k; }; "
    "send TERM || exit 1; send CONT; sleep 1; send KILL; exit 0";

static void fail(struct rf_ssh_kill *kill, ssh_session session)
{
    kill->state = RF_SSH_KILL_OVER;
    snprintf(kill->failure, sizeof(kill->failure), "%s",
             rf_ssh_reason(session));
}

/* The command has ended. */
static void finish(struct rf_ssh_kill *kill)
{
    int status = kill->end.status;
    kill->state = RF_SSH_KILL_OVER;
    if (status != 0 && status != GONE_STATUS) {
        snprintf(kill->failure, sizeof(kill->failure),
                 "the command that kills it ended with status %d%s%s", status,
                 kill->end.signal != NULL ? ", signal " : "",
                 kill->end.signal != NULL ? kill->end.signal : "");
    }
}

void rf_ssh_kill_begin(struct rf_ssh_kill *kill, struct rf_ssh_job *job,
                       ssh_session session)
{
    uint64_t start_ticks;
    pthread_mutex_lock(&job->lock);
    kill->pid = job->agent_pid;
    start_ticks = job->agent_start_ticks;
    pthread_mutex_unlock(&job->lock);
    if (kill->pid != 0) {
        snprintf(kill->command, sizeof(kill->command),
                 "sh -c '%s' sh %" PRIu32 " %" PRIu64, script, kill->pid,
                 start_ticks);
    } else {
        snprintf(kill->command, sizeof(kill->command), "exec sh -c '%s'",
                 script_unknown);
    }
    rf_ssh_forget(session);
    kill->channel = ssh_channel_new(session);
    if (kill->channel == NULL) {
        fail(kill, session);
        return;
    }
    rf_ssh_exit_watch(&kill->end, kill->channel);
    kill->state = RF_SSH_KILL_OPENING;
    rf_ssh_kill_go_on(kill, session);
}

void rf_ssh_kill_go_on(struct rf_ssh_kill *kill, ssh_session session)
{
    int result = SSH_OK;
    if (kill->state == RF_SSH_KILL_OPENING) {
        result = ssh_channel_open_session(kill->channel);
        if (result == SSH_OK) {
            kill->state = RF_SSH_KILL_ASKING;
        }
    }
    if (kill->state == RF_SSH_KILL_ASKING) {
        result = ssh_channel_request_exec(kill->channel, kill->command);
        if (result == SSH_OK) {
            kill->state = RF_SSH_KILL_RUNNING;
            (void)ssh_channel_send_eof(kill->channel);
        }
    }
    if (result == SSH_ERROR) {
        fail(kill, session);
    } else if (kill->state == RF_SSH_KILL_RUNNING && kill->end.known) {
        finish(kill);
    }
}

const char *rf_ssh_kill_failure(const struct rf_ssh_kill *kill)
{
    if (kill->failure[0] != '\0') {
        return kill->failure;
    }
    return kill->state == RF_SSH_KILL_IDLE || kill->state == RF_SSH_KILL_OVER
               ? NULL
               : "the node does not answer";
}

void rf_ssh_kill_free(struct rf_ssh_kill *kill)
{
    if (kill->channel != NULL) {
        rf_ssh_exit_unwatch(&kill->end, kill->channel);
        ssh_channel_free(kill->channel);
        kill->channel = NULL;
        free(kill->end.signal);
    }
}

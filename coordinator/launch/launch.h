/*
 * Launchers: start an agent on a node and provide a stream to it. One
 * interface, four implementations (ssh, local, manual, slurm) in one table.
 *
 * A launcher gives the caller a byte stream to the agent's standard input and
 * output (a uv_pipe_t) on the coordinator's loop; its standard error comes line
 * by line. Everything else (BOOT, HELLO, …) is the caller's job (node.c) and
 * the same for all launchers.
 *
 * All calls and callbacks are on the loop's thread; no callback comes from
 * inside start() or stop(). After start() returns RF_OK, exactly one of on_fail
 * and on_exit ends the launch; then destroy() frees it (also from inside that
 * callback). on_stderr lines may still come after the stream has ended and
 * before on_exit.
 *
 * Errors and notes do not name the node: the caller does.
 *
 * `manual` and `slurm` have no stream: on_stream never comes, and the node
 * joins by TCP alone (docs/PROTOCOL.md). `manual` prints the command to run on
 * the node; `slurm` starts the agents of all nodes with one command.
 */
#ifndef RF_COORDINATOR_LAUNCH_LAUNCH_H
#define RF_COORDINATOR_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/err.h"
#include "coordinator/config/nodes/launch_settings.h"

/*
 * Limits the starts in progress to `limit`; the rest wait. One gate for all
 * launches of a loop; `local` and `manual` do not need it. A start ends when
 * its stream is up or it has failed. Destroy after the launches.
 */
struct rf_launch_gate;
struct rf_launch_gate *rf_launch_gate_create(uint32_t limit);
void rf_launch_gate_destroy(struct rf_launch_gate *gate);

/*
 * Starts the agents of all nodes at once (`slurm`): one for all launches of a
 * loop, which must be started together. Destroy after the launches; nothing of
 * it is on the loop then.
 */
struct rf_launch_step;
struct rf_launch_step *rf_launch_step_create(void);
void rf_launch_step_destroy(struct rf_launch_step *step);

/* How a node without a stream joins (`manual`, `slurm`). */
struct rf_launch_join {
    const char *address;  /* "HOST:PORT", comma-separated */
    const char *identity; /* that the node claims there */
    const char *key;      /* that proves it, in hexadecimal */
};

/* One node to start. Everything is borrowed for the call of start(); gate and
 * step until the launch is over. */
struct rf_launch_order {
    const struct rf_node_config *node;
    uint32_t index; /* in "nodes", for errors */
    const struct rf_launch_config *settings;
    /* The worker binary beside refit-coord on this machine, absolute: "deploy"
     * copies it; `local` and `slurm` run it when "worker" has no slash. NULL:
     * none. */
    const char *local_worker;
    struct rf_launch_gate *gate;       /* NULL: no limit */
    struct rf_launch_step *step;       /* required by `slurm` */
    const struct rf_launch_join *join; /* required by `manual` and `slurm` */
    uint32_t grace_ms;                 /* of stop(); 0: RF_LAUNCH_GRACE_MS */
};

/* Less than a forced run waits for its agents (coordinator/run/run.c). */
#define RF_LAUNCH_GRACE_MS 8000

struct rf_launch; /* one node's */

struct rf_launch_ops_cb {
    /* The stream is up; the caller owns `pipe` (malloc'ed, open on the
     * loop). */
    void (*on_stream)(struct rf_launch *launch, uv_pipe_t *pipe, void *data);
    /* One line of the agent's standard error, without newline. */
    void (*on_stderr)(struct rf_launch *launch, const char *line, void *data);
    /* The launch failed before the stream was up. Last call. */
    void (*on_fail)(struct rf_launch *launch, const struct rf_err *why,
                    void *data);
    /* The agent's process ended: exit status; or -1 and a signal name; or -1
     * and NULL when the connection was lost without a report. Last call. */
    void (*on_exit)(struct rf_launch *launch, int status, const char *signal,
                    void *data);
    /* A line for the user ("run on this node: …", deployment, retries). */
    void (*on_note)(struct rf_launch *launch, const char *line, void *data);
    /* Another source says that the agent has ended or is about to. `explains`:
     * `what` is the cause of all other reports about it. The launch goes on. */
    void (*on_trouble)(struct rf_launch *launch, const char *what,
                       bool explains, void *data);
};

struct rf_launcher_ops {
    const char *name;
    uint32_t descriptors; /* per node, while its agent runs */
    bool here;            /* agents run on this machine */
    bool connects; /* agents get their key when they are started, not by BOOT
                      on a stream, and connect by themselves */
    bool by_hand;  /* they connect, and users start them and may restart one
                      that fails before HELLO, since nothing watches it */
    /* Starts one node; on error no callback fires. */
    enum rf_status (*start)(uv_loop_t *loop,
                            const struct rf_launch_order *order,
                            const struct rf_launch_ops_cb *callbacks,
                            void *data, struct rf_launch **out,
                            struct rf_err *err);
    /* The head's address as seen from this node: the local address of the SSH
     * socket; NULL when unknown (jump host). Not set in launchers whose agents
     * run here or connect by themselves. */
    const char *(*head_address)(const struct rf_launch *launch);
    /* Identifies the agent's process, from its HELLO: process ID and start
     * time, field 22 of /proc/PID/stat. Lets stop() end an agent that ignores
     * both the end of its input and that of its lease. NULL: not needed. */
    void (*identify)(struct rf_launch *launch, uint32_t pid,
                     uint64_t start_ticks);
    /* Ends the launch; on_exit (or on_fail) still comes. Close the stream
     * first: that orders the agent to end. Without `force` the agent then has
     * the order's grace before its connection is cut (ssh) or its process group
     * gets SIGTERM and, after the same time again, SIGKILL (local). With
     * `force` the first of these happens at once. Over ssh the agent is killed
     * before the connection is cut. The agents of `slurm` end together: nothing
     * happens until all are stopped. Safe to repeat, with more force. */
    void (*stop)(struct rf_launch *launch, bool force);
    /* Frees it; only after on_exit or on_fail. */
    void (*destroy)(struct rf_launch *launch);
};

extern const struct rf_launcher_ops rf_launcher_ssh, rf_launcher_local,
    rf_launcher_manual, rf_launcher_slurm;

#endif

/*
 * A child process of the coordinator: the agent of launcher `local`, the srun
 * of launcher `slurm`. It leads its own session: Ctrl-C on the terminal does
 * not reach it, and signals reach its whole process group. All on the loop's
 * thread; no callback comes from inside a call.
 */
#ifndef RF_COORDINATOR_LAUNCH_CHILD_H
#define RF_COORDINATOR_LAUNCH_CHILD_H

#include <stdbool.h>
#include <uv.h>

struct rf_child;

struct rf_child_ops {
    /* One cleaned line of its standard error, without newline. */
    void (*on_line)(const char *line, void *data);
    /* The child has ended: its status, or the signal that ended it (0: none).
     * Standard error has been read to its end, but for at most half a second,
     * since another process may hold it open. Last call. */
    void (*on_exit)(int status, int signal, void *data);
};

/* Borrowed for the call of rf_child_start(). */
struct rf_child_order {
    const char *file;  /* a path, or a name to find in PATH */
    char **args;       /* from argv[0] on, NULL-terminated */
    char **env;        /* NULL: that of this process */
    int input, output; /* descriptors that it inherits; output -1: none */
    uint32_t grace_ms; /* 0: RF_LAUNCH_GRACE_MS */
};

/* Starts the child. NULL on failure, with libuv's error in `error`. */
struct rf_child *rf_child_start(uv_loop_t *loop,
                                const struct rf_child_order *order,
                                const struct rf_child_ops *ops, void *data,
                                int *error);

/* Sends SIGTERM to its process group after the order's grace, or at once with
 * `force`, and SIGKILL after the same time again. Safe to repeat, with more
 * force. */
void rf_child_stop(struct rf_child *child, bool force);

/* Call only after on_exit. NULL is fine. */
void rf_child_destroy(struct rf_child *child);

#endif

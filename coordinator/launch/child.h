/*
 * A child process of the coordinator: the agent of launcher `local`, the srun
 * of launcher `slurm`. It leads its own session: a Ctrl-C on the terminal does
 * not reach it, and it can be signalled with everything in its process group.
 * All on the loop's thread; no callback comes from inside a call.
 */
#ifndef RF_COORDINATOR_LAUNCH_CHILD_H
#define RF_COORDINATOR_LAUNCH_CHILD_H

#include <stdbool.h>
#include <uv.h>

struct rf_child;

struct rf_child_ops {
    /* One line of its standard error, cleaned, without newline. */
    void (*on_line)(const char *line, void *data);
    /* It has ended: its status, or the signal that ended it (0: none). Standard
     * error has been read to its end by then; somebody else may hold that open,
     * so no longer than half a second. Last call. */
    void (*on_exit)(int status, int signal, void *data);
};

/* Borrowed for the call of rf_child_start(). */
struct rf_child_order {
    const char *file;  /* a path, or a name that is looked for in PATH */
    char **args;       /* from its name on, with NULL at the end */
    char **env;        /* NULL: this process's */
    int input, output; /* descriptors, which it inherits; output may be -1: none
                        */
    uint32_t grace_ms; /* 0: RF_LAUNCH_GRACE_MS */
};

/* Starts it. NULL with libuv's error in `error` if that cannot be done. */
struct rf_child *rf_child_start(uv_loop_t *loop,
                                const struct rf_child_order *order,
                                const struct rf_child_ops *ops, void *data,
                                int *error);

/* Its process group gets SIGTERM after the order's grace and SIGKILL as long
 * after that; with `force` SIGTERM at once and SIGKILL after three seconds. May
 * be repeated, with more force. */
void rf_child_stop(struct rf_child *child, bool force);

/* Only after on_exit. NULL is fine. */
void rf_child_destroy(struct rf_child *child);

#endif

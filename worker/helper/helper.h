/*
 * What may hang or crash is done by a process of its own that the agent starts:
 * a driver that does not return, or a file server that is away, then stops
 * neither the agent's leases nor its orders. The process is refit-worker with
 * an option; it sends one message over descriptor 3 and ends.
 */
#ifndef RF_WORKER_HELPER_HELPER_H
#define RF_WORKER_HELPER_HELPER_H

#include <sys/types.h>
#include <uv.h>

#include "transport/control/message_fields.h"

#define RF_HELPER_CONTROL_FD 3

struct rf_helper;

/* How it is called in errors, and what they suggest; texts that live as long as
 * the program. */
struct rf_helper_words {
    const char *process;  /* "the process that looks for devices" */
    const char *on_end;   /* when it ends too early: "check the driver" */
    const char *work;     /* "looking for devices" */
    const char *on_limit; /* when that takes too long */
};

struct rf_helper_how {
    const char *const *arguments; /* of refit-worker; ends with NULL */
    char *const *environment;
    enum rf_msg_type answer; /* what is awaited */
    uint32_t limit_ms;       /* then it is killed */
    const struct rf_helper_words *words;
};

/* Called once, from the loop. `answer` is the callee's to take: it may move its
 * members out, the rest is freed after the call. NULL: there is none, and
 * `why`. */
typedef void (*rf_helper_done_fn)(struct rf_msg *answer, const char *why,
                                  void *data);

/* Starts the process; of `how` only the words are kept. NULL with `err`: it
 * could not be started. The object frees itself after `done`. */
struct rf_helper *rf_helper_start(uv_loop_t *loop,
                                  const struct rf_helper_how *how,
                                  rf_helper_done_fn done, void *data,
                                  struct rf_err *err);

/* Tells that a child of this process has ended, with waitpid's status. */
void rf_helper_child_ended(struct rf_helper *helper, pid_t pid, int status);

/* Kills the process; `done` is not called. Only before it has been. */
void rf_helper_cancel(struct rf_helper *helper);

/* The process itself: sends what `make` makes and returns its exit status. */
typedef void (*rf_helper_make_fn)(struct rf_msg *out, void *data);
int rf_helper_run(pid_t parent, rf_helper_make_fn make, void *data);

#endif

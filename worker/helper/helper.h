/*
 * A child process for work that may hang or crash, so that a stuck driver or an
 * absent file server stops neither the agent's leases nor its orders. The child
 * is refit-worker with an option; it sends one message over descriptor 3 and
 * exits.
 */
#ifndef RF_WORKER_HELPER_HELPER_H
#define RF_WORKER_HELPER_HELPER_H

#include <sys/types.h>
#include <uv.h>

#include "transport/control/message_fields.h"

#define RF_HELPER_CONTROL_FD 3

struct rf_helper;

/* Names and advice for error messages; texts that live as long as the
 * program. */
struct rf_helper_words {
    const char *process;  /* "the process that looks for devices" */
    const char *on_end;   /* advice if it ends early: "check the driver" */
    const char *work;     /* "looking for devices" */
    const char *on_limit; /* advice if that takes too long */
};

struct rf_helper_how {
    const char *const *arguments; /* of refit-worker; ends with NULL */
    char *const *environment;
    enum rf_msg_type answer; /* expected message */
    uint32_t limit_ms;       /* killed after this */
    const struct rf_helper_words *words;
};

/* Called once, from the loop. The callee may move members out of `answer`; the
 * rest is freed after the call. NULL on failure; `why` gives the reason. */
typedef void (*rf_helper_done_fn)(struct rf_msg *answer, const char *why,
                                  void *data);

/* Starts the process; keeps only the words of `how`. NULL with `err` on
 * failure. The object frees itself after `done`. */
struct rf_helper *rf_helper_start(uv_loop_t *loop,
                                  const struct rf_helper_how *how,
                                  rf_helper_done_fn done, void *data,
                                  struct rf_err *err);

/* Call when a child of this process has ended, with waitpid's status. */
void rf_helper_child_ended(struct rf_helper *helper, pid_t pid, int status);

/* Kills the process; `done` is not called. Only valid before `done`. */
void rf_helper_cancel(struct rf_helper *helper);

/* Main function of the child: sends the message from `make`; returns the exit
 * status. */
typedef void (*rf_helper_make_fn)(struct rf_msg *out, void *data);
int rf_helper_run(pid_t parent, rf_helper_make_fn make, void *data);

#endif

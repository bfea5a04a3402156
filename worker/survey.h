/*
 * What this node can do, found out by a process of its own in the environment
 * that ranks will have: the dynamic linker reads LD_LIBRARY_PATH once, when a
 * process starts, and a driver that hangs, crashes or prints then harms nobody
 * else. The process is `refit-worker --survey`; it sends its facts as one HELLO
 * over descriptor 3.
 */
#ifndef RF_WORKER_SURVEY_H
#define RF_WORKER_SURVEY_H

#include <sys/types.h>
#include <uv.h>

#include "transport/messages.h"

#define RF_SURVEY_CONTROL_FD 3

struct rf_survey;

/* Called once, from the loop. `facts` (rf_facts_collect() says which members
 * they are) is the callee's to take: it may move them out, the rest is freed
 * after the call. NULL: there are none, and `why`. */
typedef void (*rf_survey_done_fn)(struct rf_msg_hello *facts, const char *why,
                                  void *data);

/* Starts the process. It has `limit_ms`, then it is killed. NULL with `err`:
 * it could not be started. The object frees itself after `done`. */
struct rf_survey *rf_survey_start(uv_loop_t *loop, char *const *environment,
                                  uint32_t limit_ms, rf_survey_done_fn done,
                                  void *data, struct rf_err *err);

/* Tells that a child of this process has ended, with waitpid's status. */
void rf_survey_child_ended(struct rf_survey *survey, pid_t pid, int status);

/* Kills the process; `done` is not called. Only before it has been. */
void rf_survey_cancel(struct rf_survey *survey);

/* The process itself: its exit status. */
int rf_survey_run(pid_t parent);

#endif

/*
 * What this node can do, found out by a process of its own
 * (worker/helper/helper.h) in the environment that ranks will have: the dynamic
 * linker reads LD_LIBRARY_PATH once, when a process starts, and a driver that
 * hangs, crashes or prints then harms nobody else. The process is `refit-worker
 * --survey`, with `--untried METHOD` for each method that is not to be tried;
 * it sends its facts as one HELLO.
 */
#ifndef RF_WORKER_HELPER_SURVEY_H
#define RF_WORKER_HELPER_SURVEY_H

#include "worker/helper/helper.h"

struct rf_survey_how {
    char *const *environment;
    const struct rf_texts *untried; /* methods; at most RF_SURVEY_UNTRIED_MAX */
    uint32_t limit_ms;
};

#define RF_SURVEY_UNTRIED_MAX 4 /* as BOOT names */

/* Starts the process. The answer is a HELLO; rf_facts_collect() says which of
 * its members are facts. */
struct rf_helper *rf_survey_start(uv_loop_t *loop,
                                  const struct rf_survey_how *how,
                                  rf_helper_done_fn done, void *data,
                                  struct rf_err *err);

/* The process itself: its exit status. */
int rf_survey_run(pid_t parent, const struct rf_texts *untried);

#endif

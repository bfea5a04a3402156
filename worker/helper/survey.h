/*
 * Finds out what this node can do, in a helper process (worker/helper/helper.h)
 * with the environment of ranks: the dynamic linker reads LD_LIBRARY_PATH only
 * when a process starts, and a driver that hangs, crashes or prints harms
 * nothing else. The process is `refit-worker --survey`, with `--untried METHOD`
 * for each method to skip; it sends its facts as one HELLO.
 */
#ifndef RF_WORKER_HELPER_SURVEY_H
#define RF_WORKER_HELPER_SURVEY_H

#include "worker/helper/helper.h"

struct rf_survey_how {
    char *const *environment;
    const struct rf_texts *untried; /* methods; at most RF_SURVEY_UNTRIED_MAX */
    uint32_t limit_ms;
};

#define RF_SURVEY_UNTRIED_MAX 4 /* as in BOOT */

/* Starts the process. The answer is a HELLO; see rf_facts_collect() for the
 * members that are set. */
struct rf_helper *rf_survey_start(uv_loop_t *loop,
                                  const struct rf_survey_how *how,
                                  rf_helper_done_fn done, void *data,
                                  struct rf_err *err);

/* Main function of the child; returns the exit status. */
int rf_survey_run(pid_t parent, const struct rf_texts *untried);

#endif

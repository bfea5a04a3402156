/*
 * What this node says of a checkpoint's folder that the coordinator has not:
 * the answer to INSPECT. The folder is read by a process of its own
 * (worker/helper/helper.h), `refit-worker --inspect FOLDER [--whole]`, since a
 * file server may hang.
 */
#ifndef RF_WORKER_HELPER_INSPECT_H
#define RF_WORKER_HELPER_INSPECT_H

#include "worker/helper/helper.h"

/* Starts the process, with the time that `inspect` gives. The answer is a
 * HEADERS. */
struct rf_helper *rf_inspect_start(uv_loop_t *loop, char *const *environment,
                                   const struct rf_msg_inspect *inspect,
                                   rf_helper_done_fn done, void *data,
                                   struct rf_err *err);

/* The HEADERS that says why there are none; rf_msg_free() it. */
void rf_inspect_failed(const char *why, struct rf_msg *answer);

struct rf_inspection {
    const char *folder;
    bool whole; /* the headers, too, not only their digests */
};

/* The answer, of at most so many bytes; rf_msg_free() it. May wait for a file
 * server. */
void rf_inspect(const struct rf_inspection *inspection, uint32_t most_bytes,
                struct rf_msg *answer);

/* The process itself: its exit status. */
int rf_inspect_run(pid_t parent, struct rf_inspection *inspection);

#endif

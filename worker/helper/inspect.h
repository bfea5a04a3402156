/*
 * The answer to INSPECT: the headers of a checkpoint whose folder the
 * coordinator does not have. A helper process (worker/helper/helper.h),
 * `refit-worker --inspect FOLDER [--whole]`, reads it, since a file server may
 * hang.
 */
#ifndef RF_WORKER_HELPER_INSPECT_H
#define RF_WORKER_HELPER_INSPECT_H

#include "worker/helper/helper.h"

/* Starts the process, with the timeout of `inspect`. It answers HEADERS. */
struct rf_helper *rf_inspect_start(uv_loop_t *loop, char *const *environment,
                                   const struct rf_msg_inspect *inspect,
                                   rf_helper_done_fn done, void *data,
                                   struct rf_err *err);

/* Makes a HEADERS with the error `why`; the caller frees it by
 * rf_msg_free(). */
void rf_inspect_failed(const char *why, struct rf_msg *answer);

struct rf_inspection {
    const char *folder;
    bool whole; /* headers in addition to their digests */
};

/* Makes the answer, of at most `most_bytes`; the caller frees it by
 * rf_msg_free(). May block on a file server. */
void rf_inspect(const struct rf_inspection *inspection, uint32_t most_bytes,
                struct rf_msg *answer);

/* Main function of the child; returns the exit status. */
int rf_inspect_run(pid_t parent, struct rf_inspection *inspection);

#endif

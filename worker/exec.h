/*
 * A scenario attempt on one rank: plans from the START message, allocates,
 * opens the method and does the steps that the coordinator asks for. Runs in
 * the rank's data thread; owns no thread and no socket.
 */
#ifndef RF_WORKER_EXEC_H
#define RF_WORKER_EXEC_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "transport/method.h"

/* What the rank process lends; outlives the exec. */
struct rf_exec_env {
    uint32_t rank;
    const atomic_bool *abort;
    /* Gives `mine` to all ranks of the attempt and returns everybody's in
     * `all`: *n_all entries in memory from malloc, freed with rf_blobs_free()
     * and free(). Blocks until `deadline_ns` at most; RF_ERR_ABORTED when the
     * attempt is aborted. */
    enum rf_status (*exchange)(void *data, const void *mine, size_t size,
                               int64_t deadline_ns, struct rf_blob **all,
                               uint32_t *n_all, struct rf_err *err);
    void *exchange_data;
};

struct rf_exec;

/* Takes `start` (the START message). Everything that can fail is left to the
 * step "prepare". */
struct rf_exec *rf_exec_create(json_t *start, const struct rf_exec_env *env);

/* Does one STEP (borrowed) and returns the DONE answer, a new reference:
 * {"attempt", "seq", "ok": true, …result} or {"attempt", "seq", "ok": false,
 * "status", "error", "phase"}. */
json_t *rf_exec_step(struct rf_exec *exec, const json_t *step);

/* Whether the step "close" has been done. */
bool rf_exec_closed(const struct rf_exec *exec);

/* Aborts and closes the method if it is open, frees all. */
void rf_exec_destroy(struct rf_exec *exec);

#endif

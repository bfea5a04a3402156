/*
 * A scenario attempt on one rank: plans from the START message, allocates,
 * opens the method and does the coordinator's steps. Runs in the rank's data
 * thread; owns no thread and no socket.
 */
#ifndef RF_WORKER_RANK_ATTEMPT_H
#define RF_WORKER_RANK_ATTEMPT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/control/message_fields.h"
#include "transport/method/method.h"
#include "worker/content/fill.h"

/* An all-gather among the attempt's `n` ranks: this rank's data in, every
 * rank's data out in `all`, by rank; freed with rf_blobs_free(). */
struct rf_rank_attempt_exchange {
    const void *mine;
    size_t size;
    int64_t deadline_ns;
    struct rf_blob *all;
    uint32_t n;
};

/* Provided by the rank process; outlives the attempt. */
struct rf_rank_attempt_env {
    uint32_t rank;
    const atomic_bool *abort;
    struct rf_reading *reading; /* checkpoint progress for other threads */
    /* Blocks until the deadline at most; RF_ERR_ABORTED when the attempt is
     * aborted. */
    enum rf_status (*exchange)(void *data,
                               const struct rf_rank_attempt_exchange *exchange,
                               struct rf_err *err);
    void *exchange_data;
};

struct rf_rank_attempt;

/* Takes over `start` and leaves it empty. Cannot fail: the step "prepare" does
 * everything that can. */
struct rf_rank_attempt *
rf_rank_attempt_create(struct rf_msg_start *start,
                       const struct rf_rank_attempt_env *env);

/* Does one step. `done` (initialised here, freed by the caller) becomes its
 * DONE, with this rank's answer alone. */
void rf_rank_attempt_step(struct rf_rank_attempt *attempt,
                          const struct rf_msg_step *step,
                          struct rf_msg_done *done);

/* Whether the step "close" has been done. */
bool rf_rank_attempt_closed(const struct rf_rank_attempt *attempt);

/* Aborts and closes the method if it is open; frees everything. */
void rf_rank_attempt_destroy(struct rf_rank_attempt *attempt);

#endif

/*
 * A scenario attempt on one rank: plans from the START message, allocates,
 * opens the method and does the steps that the coordinator asks for. Runs in
 * the rank's data thread; owns no thread and no socket.
 */
#ifndef RF_WORKER_RANK_ATTEMPT_H
#define RF_WORKER_RANK_ATTEMPT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/control/message_fields.h"
#include "transport/method/method.h"
#include "worker/content/fill.h"

/* What one rank brings to an exchange of all `n` ranks of the attempt, and where
 * everybody's goes, by rank; freed with rf_blobs_free(). */
struct rf_rank_attempt_exchange {
    const void *mine;
    size_t size;
    int64_t deadline_ns;
    struct rf_blob *all;
    uint32_t n;
};

/* What the rank process lends; outlives the attempt. */
struct rf_rank_attempt_env {
    uint32_t rank;
    const atomic_bool *abort;
    struct rf_reading *reading; /* of a checkpoint, for others to look at */
    /* Blocks until the deadline at most; RF_ERR_ABORTED when the attempt is
     * aborted. */
    enum rf_status (*exchange)(void *data,
                               const struct rf_rank_attempt_exchange *exchange,
                               struct rf_err *err);
    void *exchange_data;
};

struct rf_rank_attempt;

/* Takes `start` over and leaves it empty. Everything that can fail is left to
 * the step "prepare". */
struct rf_rank_attempt *
rf_rank_attempt_create(struct rf_msg_start *start,
                       const struct rf_rank_attempt_env *env);

/* Does one step and makes `done` (initialised here, to be freed) its DONE, with
 * this rank's answer alone. */
void rf_rank_attempt_step(struct rf_rank_attempt *attempt,
                          const struct rf_msg_step *step,
                          struct rf_msg_done *done);

/* Whether the step "close" has been done. */
bool rf_rank_attempt_closed(const struct rf_rank_attempt *attempt);

/* Aborts and closes the method if it is open, frees all. */
void rf_rank_attempt_destroy(struct rf_rank_attempt *attempt);

#endif

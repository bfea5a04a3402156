/*
 * The communicators of one rank: one of all ranks and, if there are several
 * nodes, one of its node's ranks, split from it.
 */
#ifndef RF_CUDA_NCCL_NCCL_COMM_H
#define RF_CUDA_NCCL_NCCL_COMM_H

#include "cuda/nccl/nccl_api.h"
#include "transport/method/method.h"

struct rf_nccl_comms {
    const struct rf_method_env *env;
    const struct rf_nccl *nccl;
    ncclComm_t world, node; /* node NULL: all traffic uses world */
};

/* Runs an NCCL call; an error fills `err`, sets the local `status` and goes to
 * `label`. "In progress" is success: the communicators are non-blocking. */
#define RF_NCCL_TRY(comms, err, label, call)                                   \
    do {                                                                       \
        ncclResult_t result_ = (call);                                         \
        if (result_ != ncclSuccess && result_ != ncclInProgress) {             \
            status = rf_nccl_error((err), (comms)->nccl, #call, result_,       \
                                   (comms)->world);                            \
            goto label;                                                        \
        }                                                                      \
    } while (0)

/* Collective over all ranks: checks that all have the same version of NCCL,
 * makes and distributes the unique ID, makes the communicators. After a failure
 * rf_nccl_comms_abort() ends those that exist. */
enum rf_status rf_nccl_comms_open(struct rf_nccl_comms *comms,
                                  const struct rf_method_env *env,
                                  struct rf_err *err) RF_MUST_CHECK;

/* *busy while NCCL still works on a call; returns an asynchronous error. */
enum rf_status rf_nccl_comms_busy(struct rf_nccl_comms *comms, bool *busy,
                                  struct rf_err *err) RF_MUST_CHECK;

/* One pass of a wait outside the timed window: a short sleep, or the abort or
 * deadline as an error. `what` is for the error's text. */
enum rf_status rf_nccl_wait(const struct rf_nccl_comms *comms, const char *what,
                            struct rf_err *err) RF_MUST_CHECK;

/* Communicator for a peer (a world rank) and the peer's rank in it. */
ncclComm_t rf_nccl_route(const struct rf_nccl_comms *comms, uint32_t peer,
                         int *peer_rank);

/* Gives up all work in flight and frees the communicators, if there are any. */
void rf_nccl_comms_abort(struct rf_nccl_comms *comms);

#endif

/*
 * NCCL through dlopen: the module starts on nodes without libnccl and reports
 * that it is missing. The functions are the library's own, in one table filled
 * at the first load.
 */
#ifndef RF_CUDA_NCCL_NCCL_API_H
#define RF_CUDA_NCCL_NCCL_API_H

#include <nccl.h>
#include <stdbool.h>

#include "common/err.h"

#define RF_NCCL_FUNCTIONS(X)                                                   \
    X(GetVersion)                                                              \
    X(GetUniqueId)                                                             \
    X(CommInitRankConfig)                                                      \
    X(CommSplit)                                                               \
    X(CommGetAsyncError)                                                       \
    X(CommAbort)                                                               \
    X(GroupStart)                                                              \
    X(GroupEnd)                                                                \
    X(Send)                                                                    \
    X(Recv)                                                                    \
    X(GetErrorString)                                                          \
    X(GetLastError)

/* Functions that a library may lack; NULL then. */
#define RF_NCCL_OPTIONAL(X)                                                    \
    X(CommRegister)                                                            \
    X(CommDeregister)                                                          \
    X(MemAlloc)                                                                \
    X(MemFree)

struct rf_nccl {
#define X(name) __typeof__(nccl##name) *name;
    RF_NCCL_FUNCTIONS(X)
    RF_NCCL_OPTIONAL(X)
#undef X
    int version;    /* NCCL_VERSION_CODE of the library found */
    char path[512]; /* of the library found */
};

/* The table, or NULL with the reason: library missing, a function missing, or
 * older than RF_NCCL_MIN_VERSION. The first load sets RF_NCCL_ORDER_VARIABLE to
 * 1 if it is not set, which NCCL reads later. */
const struct rf_nccl *rf_nccl_load(struct rf_err *err);

/* Whether the kernels of several communicators start in the order of their
 * calls, on whatever streams (since 2.26, if the variable is 1). */
#define RF_NCCL_ORDER_VARIABLE "NCCL_LAUNCH_ORDER_IMPLICIT"
bool rf_nccl_keeps_order(const struct rf_nccl *nccl);

/* Non-blocking communicators that can be aborted and split: 2.18. */
#define RF_NCCL_MIN_VERSION 21800

/* "ncclSend: invalid usage: <last error>" as RF_ERR_DEVICE, or RF_ERR_PEER for
 * ncclRemoteError. `comm` may be NULL. */
enum rf_status rf_nccl_error(struct rf_err *err, const struct rf_nccl *nccl,
                             const char *call, ncclResult_t code,
                             ncclComm_t comm);

#endif

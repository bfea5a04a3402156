/*
 * Workers, endpoints, and waiting for other ranks during open. Internal to
 * refit-ucx.so.
 *
 * An endpoint between nodes reports its failure. Inside a node error handling
 * would rule out shared memory, which cannot report it; there the processes are
 * watched instead.
 */
#ifndef RF_UCX_ENDPOINT_H
#define RF_UCX_ENDPOINT_H

#include <ucp/api/ucp.h>

#include "ucx/library.h"

/* Where to record errors with a rank; RF_OK: none. */
struct rf_ucx_loss {
    struct rf_err *broken;
    uint32_t rank; /* RF_NONE: of no rank */
};

/* Records the first error. */
void rf_ucx_lose(const struct rf_ucx_loss *loss, ucs_status_t why);

/* The caller destroys it. Waits up to two seconds for room for its buffers,
 * which other ranks' weights may occupy briefly. */
enum rf_status rf_ucx_worker_open(const struct rf_ucx_library *library,
                                  ucp_worker_h *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* An endpoint to the worker of that address. Its failure is recorded in `loss`,
 * which must live as long as the worker; NULL: unnoticed. */
enum rf_status rf_ucx_endpoint_open(ucp_worker_h worker, const void *address,
                                    uint32_t rank, struct rf_ucx_loss *loss,
                                    ucp_ep_h *out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* One turn of waiting during open; `rank` is the rank to answer, or RF_NONE:
 * this rank's own messages must leave. Fails 30 s after `since_ns`, when the
 * caller last saw an answer or began to wait, and at the deadline of open. */
enum rf_status rf_ucx_wait(const struct rf_method_env *env, ucp_worker_h worker,
                           const struct rf_err *broken, uint32_t rank,
                           int64_t since_ns, struct rf_err *err) RF_MUST_CHECK;

#endif

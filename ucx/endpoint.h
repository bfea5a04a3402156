/*
 * Workers, endpoints, and waiting for other ranks while a method is opened.
 * Internal to refit-ucx.so.
 *
 * An endpoint between nodes tells when it fails; inside a node that would cost
 * shared memory, which cannot tell, and the processes are watched there.
 */
#ifndef RF_UCX_ENDPOINT_H
#define RF_UCX_ENDPOINT_H

#include <ucp/api/ucp.h>

#include "ucx/library.h"

/* Where what goes wrong with a rank is kept; RF_OK: nothing has. */
struct rf_ucx_loss {
    struct rf_err *broken;
    uint32_t rank; /* RF_NONE: nobody's */
};

/* Keeps the first thing that went wrong. */
void rf_ucx_lose(const struct rf_ucx_loss *loss, ucs_status_t why);

/* The caller destroys it. Waits up to two seconds for room for its buffers,
 * which weights of other ranks may take in passing. */
enum rf_status rf_ucx_worker_open(const struct rf_ucx_library *library,
                                  ucp_worker_h *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* To the worker of that address. Where the endpoint fails goes to `loss`, which
 * lives as long as the worker; NULL: that is not noticed. */
enum rf_status rf_ucx_endpoint_open(ucp_worker_h worker, const void *address,
                                    uint32_t rank, struct rf_ucx_loss *loss,
                                    ucp_ep_h *out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* One turn of waiting in open; `rank` is who has to answer, or
 * RF_NONE: this rank's own messages have to leave. */
enum rf_status rf_ucx_wait(const struct rf_method_env *env, ucp_worker_h worker,
                           const struct rf_err *broken, uint32_t rank,
                           struct rf_err *err) RF_MUST_CHECK;

#endif

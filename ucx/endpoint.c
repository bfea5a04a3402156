/* See endpoint.h. */
#include "ucx/endpoint.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/clock.h"

/* For room in /dev/shm: each wait is four times the last, two seconds in
 * total. */
#define FIRST_WAIT_NS (24 * RF_NS_PER_MS)
#define LAST_WAIT_NS (1536 * RF_NS_PER_MS)

/* For a rank to answer: a firewall may drop packets. */
#define ANSWER_NS (30 * RF_NS_PER_S)

/* The settings that decide which ranks are reachable. */
#define SETTINGS                                                               \
    "(UCX_NET_DEVICES is %s, UCX_TLS is %s; do these interfaces reach the "    \
    "other node, at ports that the system chooses, past any firewall?)"

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "not set";
}

void rf_ucx_lose(const struct rf_ucx_loss *loss, ucs_status_t why)
{
    if (loss->broken->status != RF_OK) {
        return;
    }
    if (loss->rank != RF_NONE) {
        (void)rf_err_set(loss->broken, RF_ERR_PEER,
                         "UCX lost rank %" PRIu32 ": %s", loss->rank,
                         ucs_status_string(why));
    } else {
        (void)rf_err_set(loss->broken, RF_ERR_IO, "UCX: %s",
                         ucs_status_string(why));
    }
}

/* UCX's errors if there is no room for a queue, or for its buffers. */
static bool lacks_room(ucs_status_t status)
{
    return status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE;
}

/* UCX tests whether an arena fits by filling /dev/shm. Until a failed test
 * ends, /dev/shm is full, and a rank that makes its worker meanwhile must wait.
 * Retries are rare, because UCX prints each failure. */
static ucs_status_t create_worker(const struct rf_ucx_library *library,
                                  const ucp_worker_params_t *params,
                                  ucp_worker_h *out)
{
    int64_t wait_ns = FIRST_WAIT_NS;
    ucs_status_t status = ucp_worker_create(library->context, params, out);
    for (; lacks_room(status) && wait_ns <= LAST_WAIT_NS; wait_ns *= 4) {
        rf_sleep_until_ns(rf_now_ns() + wait_ns);
        status = ucp_worker_create(library->context, params, out);
    }
    return status;
}

enum rf_status rf_ucx_worker_open(const struct rf_ucx_library *library,
                                  ucp_worker_h *out, struct rf_err *err)
{
    const ucp_worker_params_t params = {.field_mask =
                                            UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucs_status_t status = create_worker(library, &params, out);
    return status == UCS_OK
               ? RF_OK
               : rf_ucx_failed(lacks_room(status)
                                   ? "make a worker (its buffers need room in "
                                     "/dev/shm or UCX_POSIX_DIR)"
                                   : "make a worker (see UCX_NET_DEVICES)",
                               status, err);
}

static void on_error(void *loss, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    rf_ucx_lose(loss, status);
}

enum rf_status rf_ucx_endpoint_open(ucp_worker_h worker, const void *address,
                                    uint32_t rank, struct rf_ucx_loss *loss,
                                    ucp_ep_h *out, struct rf_err *err)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = address};
    ucs_status_t status;
    if (loss != NULL) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                             UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = (ucp_err_handler_t){on_error, loss};
    }
    status = ucp_ep_create(worker, &params, out);
    return status == UCS_OK
               ? RF_OK
               : rf_err_set(err, RF_ERR_IO,
                            "UCX cannot reach rank %" PRIu32 ": %s " SETTINGS,
                            rank, ucs_status_string(status),
                            setting("UCX_NET_DEVICES"), setting("UCX_TLS"));
}

enum rf_status rf_ucx_wait(const struct rf_method_env *env, ucp_worker_h worker,
                           const struct rf_err *broken, uint32_t rank,
                           int64_t since_ns, struct rf_err *err)
{
    if (ucp_worker_progress(worker) == 0) {
        rf_pause_between_polls(since_ns);
    }
    if (broken->status == RF_ERR_PEER) {
        return rf_err_set(err, RF_ERR_PEER, "%s " SETTINGS, broken->text,
                          setting("UCX_NET_DEVICES"), setting("UCX_TLS"));
    }
    if (broken->status != RF_OK) {
        return rf_err_set(err, broken->status, "%s", broken->text);
    }
    if (atomic_load(env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (rf_now_ns() <= RF_MIN(env->deadline_ns, since_ns + ANSWER_NS)) {
        return RF_OK;
    }
    return rank != RF_NONE
               ? rf_err_set(
                     err, RF_ERR_TIMEOUT,
                     "UCX: connection to rank %" PRIu32 " timed out " SETTINGS,
                     rank, setting("UCX_NET_DEVICES"), setting("UCX_TLS"))
               : rf_err_set(err, RF_ERR_TIMEOUT,
                            "UCX: connecting ranks timed out " SETTINGS,
                            setting("UCX_NET_DEVICES"), setting("UCX_TLS"));
}

/* First exchanges. See nccl_warm.h. */
#include "cuda/nccl/nccl_warm.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/lockstep/phases.h"

#define WARM_BYTES 256

uint64_t rf_nccl_warm_bytes(const struct rf_method_env *env)
{
    return (uint64_t)env->plan->world->n_ranks * WARM_BYTES;
}

/* Messages of a few bytes of buffer `base`, to be freed: one for each peer of a
 * step's messages that is not yet in `known`, where it adds the peer. Both ends
 * skip or include a message alike. */
static struct rf_message *first_messages(const struct rf_message *messages,
                                         size_t n, enum rf_step_base base,
                                         bool *known, size_t *n_out)
{
    struct rf_message *out = rf_xcalloc(n, sizeof(*out));
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t peer = messages[i].peer;
        if (!known[peer]) {
            known[peer] = true;
            out[(*n_out)++] =
                (struct rf_message){.peer = peer,
                                    .base = base,
                                    .offset = (uint64_t)peer * WARM_BYTES,
                                    .bytes = WARM_BYTES};
        }
    }
    return out;
}

/* Whether everything issued has arrived. */
static enum rf_status wire_is_idle(const struct rf_nccl_wire *wire, bool *idle,
                                   struct rf_err *err)
{
    enum rf_status status = RF_OK;
    *idle = true;
    for (int p = 0; p < RF_NCCL_PATHS && *idle && status == RF_OK; p++) {
        status = rf_stream_is_idle(wire->stream[p], idle, err);
    }
    return status;
}

/* Issues the current exchange and waits for it, outside the window. */
static enum rf_status finish_exchange(struct rf_nccl_wire *wire,
                                      const struct rf_step *step,
                                      struct rf_err *err)
{
    char what[160] = "first exchange with rank ";
    rf_step_peers(step, what + strlen(what), 100);
    for (;;) {
        bool done;
        enum rf_status status = rf_nccl_wire_issue(wire, &done, err);
        if (status == RF_OK && done) {
            status = wire_is_idle(wire, &done, err);
        }
        if (status != RF_OK) {
            rf_err_wrap(err, "%s", what);
            return status;
        }
        if (done) {
            return RF_OK;
        }
        RF_TRY(rf_nccl_wait(wire->comms, what, err));
    }
}

enum rf_status rf_nccl_warm_up(struct rf_nccl_wire *wire,
                               const struct rf_steps *steps,
                               const struct rf_arena *buffers,
                               struct rf_err *err)
{
    const uint32_t n = wire->comms->env->plan->world->n_ranks;
    bool *known = rf_xcalloc(2 * (size_t)n, sizeof(*known));
    enum rf_status status = RF_OK;
    for (size_t s = 0; s < steps->n && status == RF_OK; s++) {
        const struct rf_step *step = &steps->at[s];
        size_t n_sends, n_recvs;
        struct rf_message *sends = first_messages(
            step->sends, step->n_sends, RF_BASE_SEND, known, &n_sends);
        struct rf_message *recvs = first_messages(
            step->recvs, step->n_recvs, RF_BASE_RECV, known + n, &n_recvs);
        if (n_sends + n_recvs > 0) {
            rf_nccl_wire_set(wire,
                             &(struct rf_nccl_exchange){
                                 .sends = sends,
                                 .n_sends = n_sends,
                                 .recvs = recvs,
                                 .n_recvs = n_recvs,
                                 .at = {[RF_BASE_SEND] = buffers[0].base,
                                        [RF_BASE_RECV] = buffers[1].base}});
            status = finish_exchange(wire, step, err);
        }
        free(sends);
        free(recvs);
    }
    free(known);
    return status;
}

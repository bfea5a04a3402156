/* Exchanges over two communicators. See nccl_wire.h. */
#include "cuda/nccl/nccl_wire.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"
#include "cuda/lockstep/phases.h"

enum rf_status rf_nccl_wire_open(struct rf_nccl_wire *wire,
                                 struct rf_nccl_comms *comms,
                                 struct rf_err *err)
{
    const struct rf_nccl *nccl = rf_nccl_load(err);
    cudaStream_t *stream = wire->stream;
    *wire = (struct rf_nccl_wire){.comms = comms, .next = RF_NCCL_PATHS};
    RF_TRY(nccl == NULL
               ? RF_ERR_UNSUPPORTED
               : rf_device_stream(RF_STREAM_WIRE, &stream[RF_NCCL_NODE], err));
    stream[RF_NCCL_WORLD] = stream[RF_NCCL_NODE];
    return rf_nccl_keeps_order(nccl)
               ? rf_device_stream(RF_STREAM_WIRE, &stream[RF_NCCL_WORLD], err)
               : RF_OK;
}

void rf_nccl_wire_close(struct rf_nccl_wire *wire)
{
    if (wire->stream[RF_NCCL_WORLD] != wire->stream[RF_NCCL_NODE]) {
        rf_stream_free(wire->stream[RF_NCCL_WORLD]);
    }
    rf_stream_free(wire->stream[RF_NCCL_NODE]);
}

void rf_nccl_wire_set(struct rf_nccl_wire *wire, const struct rf_step *step,
                      const struct rf_bases *bases)
{
    wire->step = step;
    wire->bases = *bases;
    wire->next = RF_NCCL_NODE;
}

/* Whether messages to or from `peer` take this path; sets the communicator and
 * the peer's rank in it. */
static bool takes(const struct rf_nccl_wire *wire, enum rf_nccl_path path,
                  uint32_t peer, ncclComm_t *comm, int *rank)
{
    *comm = rf_nccl_route(wire->comms, peer, rank);
    return (*comm == wire->comms->world) == (path == RF_NCCL_WORLD);
}

static size_t count(const struct rf_nccl_wire *wire, enum rf_nccl_path path)
{
    const struct rf_step *now = wire->step;
    ncclComm_t comm;
    size_t n = 0;
    int rank;
    for (size_t i = 0; i < now->n_sends; i++) {
        n += takes(wire, path, now->sends[i].peer, &comm, &rank);
    }
    for (size_t i = 0; i < now->n_recvs; i++) {
        n += takes(wire, path, now->recvs[i].peer, &comm, &rank);
    }
    return n;
}

static enum rf_status issue_group(struct rf_nccl_wire *wire,
                                  enum rf_nccl_path path, struct rf_err *err)
{
    const struct rf_nccl *nccl = wire->comms->nccl;
    const struct rf_step *now = wire->step;
    enum rf_status status = RF_OK;
    bool in_group = false;
    ncclComm_t comm;
    int rank;
    RF_NCCL_TRY(wire->comms, err, out, nccl->GroupStart());
    in_group = true;
    for (size_t i = 0; i < now->n_sends; i++) {
        const struct rf_message *m = &now->sends[i];
        if (takes(wire, path, m->peer, &comm, &rank)) {
            RF_NCCL_TRY(wire->comms, err, out,
                        nccl->Send(wire->bases.at[m->base] + m->offset,
                                   m->bytes, ncclUint8, rank, comm,
                                   wire->stream[path]));
        }
    }
    for (size_t i = 0; i < now->n_recvs; i++) {
        const struct rf_message *m = &now->recvs[i];
        if (takes(wire, path, m->peer, &comm, &rank)) {
            RF_NCCL_TRY(wire->comms, err, out,
                        nccl->Recv(wire->bases.at[m->base] + m->offset,
                                   m->bytes, ncclUint8, rank, comm,
                                   wire->stream[path]));
        }
    }
    in_group = false;
    RF_NCCL_TRY(wire->comms, err, out, nccl->GroupEnd());
out:
    if (in_group) { /* else an abort would join the group */
        (void)nccl->GroupEnd();
    }
    return status;
}

enum rf_status rf_nccl_wire_issue(struct rf_nccl_wire *wire, bool *issued,
                                  struct rf_err *err)
{
    for (;;) {
        const enum rf_nccl_path path = wire->next;
        bool busy;
        enum rf_status status = rf_nccl_comms_busy(wire->comms, &busy, err);
        *issued = false;
        if (status != RF_OK || busy) {
            return status;
        }
        if (path == RF_NCCL_PATHS) {
            *issued = true;
            return RF_OK;
        }
        wire->next = (enum rf_nccl_path)(path + 1);
        RF_TRY(count(wire, path) > 0 ? issue_group(wire, path, err) : RF_OK);
    }
}

/* --- first exchanges ------------------------------------------------------ */

#define WARM_BYTES 256

uint64_t rf_nccl_wire_warm_bytes(const struct rf_method_env *env)
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
    *idle = true;
    for (int p = 0; p < RF_NCCL_PATHS && *idle; p++) {
        RF_TRY(rf_stream_is_idle(wire->stream[p], idle, err));
    }
    return RF_OK;
}

/* Issues the current exchange and waits for it, outside the window. */
static enum rf_status finish_exchange(struct rf_nccl_wire *wire,
                                      struct rf_err *err)
{
    char what[160] = "first exchange with rank ";
    rf_step_peers(wire->step, what + strlen(what), 100);
    for (;;) {
        bool done;
        enum rf_status status = rf_nccl_wire_issue(wire, &done, err);
        if (status == RF_OK && done) {
            status = wire_is_idle(wire, &done, err);
        }
        RF_TRY(rf_err_within(status, err, "%s", what));
        if (done) {
            return RF_OK;
        }
        RF_TRY(rf_nccl_wait(wire->comms, what, err));
    }
}

enum rf_status rf_nccl_wire_warm_up(struct rf_nccl_wire *wire,
                                    const struct rf_steps *steps,
                                    const struct rf_bases *bases,
                                    struct rf_err *err)
{
    const uint32_t n = wire->comms->env->plan->world->n_ranks;
    bool *known = rf_xcalloc(2 * (size_t)n, sizeof(*known));
    enum rf_status status = RF_OK;
    for (size_t s = 0; s < steps->n && status == RF_OK; s++) {
        const struct rf_step *step = &steps->at[s];
        struct rf_step first = {.round = step->round};
        first.sends = first_messages(step->sends, step->n_sends, RF_BASE_SEND,
                                     known, &first.n_sends);
        first.recvs = first_messages(step->recvs, step->n_recvs, RF_BASE_RECV,
                                     known + n, &first.n_recvs);
        if (first.n_sends + first.n_recvs > 0) {
            rf_nccl_wire_set(wire, &first, bases);
            status = finish_exchange(wire, err);
        }
        free(first.sends);
        free(first.recvs);
    }
    free(known);
    return status;
}

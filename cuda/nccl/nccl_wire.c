/* Exchanges over two communicators. See nccl_wire.h. */
#include "cuda/nccl/nccl_wire.h"

#include <string.h>

#include "common/mem.h"
#include "cuda/device/device.h"

enum rf_status rf_nccl_wire_open(struct rf_nccl_wire *wire,
                                 struct rf_nccl_comms *comms,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    memset(wire, 0, sizeof(*wire));
    wire->comms = comms;
    wire->next = RF_NCCL_PATHS;
    for (int p = 0; p < RF_NCCL_PATHS; p++) {
        status = rf_device_stream(RF_STREAM_WIRE, &wire->stream[p], err);
        if (status != RF_OK) {
            break;
        }
    }
    return status;
}

void rf_nccl_wire_close(struct rf_nccl_wire *wire)
{
    for (int p = 0; p < RF_NCCL_PATHS; p++) {
        if (wire->stream[p] != NULL) {
            cudaStreamDestroy(wire->stream[p]);
            wire->stream[p] = NULL;
        }
    }
}

void rf_nccl_wire_set(struct rf_nccl_wire *wire,
                      const struct rf_nccl_exchange *exchange)
{
    wire->exchange = *exchange;
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
    const struct rf_nccl_exchange *now = &wire->exchange;
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
    const struct rf_nccl_exchange *now = &wire->exchange;
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
                        nccl->Send(now->at[m->base] + m->offset, m->bytes,
                                   ncclUint8, rank, comm, wire->stream[path]));
        }
    }
    for (size_t i = 0; i < now->n_recvs; i++) {
        const struct rf_message *m = &now->recvs[i];
        if (takes(wire, path, m->peer, &comm, &rank)) {
            RF_NCCL_TRY(wire->comms, err, out,
                        nccl->Recv(now->at[m->base] + m->offset, m->bytes,
                                   ncclUint8, rank, comm, wire->stream[path]));
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

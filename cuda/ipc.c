/* CUDA IPC handles. See ipc.h. */
#include "cuda/ipc.h"

#include <string.h>

enum rf_status rf_ipc_export(const struct rf_method_env *env, cudaEvent_t event,
                             struct rf_ipc_export *out, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    memset(out, 0, sizeof(*out));
    out->rank = env->rank;
    out->node = env->plan->world->ranks[env->rank].node;
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        if (env->arena[m].base != NULL) {
            RF_CUDA_TRY(
                err, out_label,
                cudaIpcGetMemHandle(&out->memory[m], env->arena[m].base));
            out->bytes[m] = env->arena[m].bytes;
        }
    }
    RF_CUDA_TRY(err, out_label, cudaIpcGetEventHandle(&out->event, event));
out_label:
    return status;
}

/* What usually is behind a handle that does not open. */
static enum rf_status explain(const struct rf_ipc_peer *peer,
                              enum rf_status status, struct rf_err *err)
{
    return rf_err_wrap(err, status,
                       "opening the device memory of rank %u (the ranks of a "
                       "node must share one PID namespace, so not isolated "
                       "containers, and devices must have peer access)",
                       peer->export.rank);
}

enum rf_status rf_ipc_open_arena(struct rf_ipc_peer *peer, enum rf_mem mem,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (peer->arena[mem] != NULL) {
        return RF_OK;
    }
    if (peer->export.bytes[mem] == 0) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "rank %u has no arena of kind %d", peer->export.rank,
                          (int)mem);
    }
    RF_CUDA_TRY(err, out,
                cudaIpcOpenMemHandle(&peer->arena[mem],
                                     peer->export.memory[mem],
                                     cudaIpcMemLazyEnablePeerAccess));
out:
    return status == RF_OK ? RF_OK : explain(peer, status, err);
}

enum rf_status rf_ipc_open_event(struct rf_ipc_peer *peer, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out,
                cudaIpcOpenEventHandle(&peer->event, peer->export.event));
out:
    return status == RF_OK ? RF_OK : explain(peer, status, err);
}

void rf_ipc_close(struct rf_ipc_peer *peer)
{
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        if (peer->arena[m] != NULL) {
            cudaIpcCloseMemHandle(peer->arena[m]);
            peer->arena[m] = NULL;
        }
    }
    if (peer->event != NULL) {
        cudaEventDestroy(peer->event);
        peer->event = NULL;
    }
}

bool rf_ipc_is_view(const struct rf_plan *plan, const struct rf_op *op)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(plan, RF_INFER, op->dst);
    if (plan->spec->strategy != RF_SEND_RECV || op->cast != RF_CAST_NONE ||
        op->dst_mem != RF_MEM_INFER || op->src_mem != RF_MEM_TRAIN ||
        !rf_same_slot(plan->world, op->src, op->dst) ||
        memcmp(op->src_stride, op->dst_stride, sizeof(op->dst_stride)) != 0) {
        return false;
    }
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        if (piece->family == op->family && piece->offset == op->dst_offset &&
            memcmp(&piece->box, &op->box, sizeof(op->box)) == 0) {
            return memcmp(piece->stride, op->dst_stride,
                          sizeof(op->dst_stride)) == 0;
        }
    }
    return false;
}

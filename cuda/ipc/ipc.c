/*
 * Both forms of sharing. See ipc.h.
 *
 * rf_ipc_meet: every rank opens a socket, announces its arenas and the socket's
 * name (exchange), then sends each neighbour its descriptors and receives
 * theirs. On failure the caller closes the peers, with what was received so
 * far.
 */
#include "cuda/ipc/ipc.h"

#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "cuda/device/vmm.h"

bool rf_ipc_is_legacy(const struct rf_method_env *env)
{
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        if (env->arena[m].base != NULL && env->arena[m].fd >= 0) {
            return false;
        }
    }
    return true;
}

static enum rf_status fill_export(const struct rf_method_env *env,
                                  cudaEvent_t event, struct rf_ipc_export *out,
                                  struct rf_err *err)
{
    out->rank = env->rank;
    out->node = env->plan->world->ranks[env->rank].node;
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        const struct rf_arena *arena = &env->arena[m];
        if (arena->base == NULL) {
            continue;
        }
        out->bytes[m] = arena->bytes;
        out->by_fd[m] = arena->fd >= 0;
        if (!out->by_fd[m]) {
            RF_CUDA_CHECK(err,
                          cudaIpcGetMemHandle(&out->memory[m], arena->base));
        }
    }
    if (event != NULL) {
        out->has_event = true;
        RF_CUDA_CHECK(err, cudaIpcGetEventHandle(&out->event, event));
    }
    return RF_OK;
}

/* Picks the node's exports from those of all ranks. */
static void take_exports(const struct rf_node_memory *shm,
                         const struct rf_ipc_export *all,
                         struct rf_ipc_peer *peers, bool *by_events)
{
    *by_events = true;
    for (uint32_t slot = 0; slot < shm->n_peers; slot++) {
        peers[slot].export = all[shm->peers[slot].rank];
        *by_events = *by_events && peers[slot].export.has_event != 0;
    }
}

/* Passes descriptors of memory to and from all neighbours. */
static enum rf_status pass(const struct rf_method_env *env,
                           const struct rf_node_memory *shm, int socket,
                           struct rf_ipc_peer *peers, struct rf_err *err)
{
    const size_t most = (size_t)shm->n_peers * RF_MEM_COUNT;
    struct rf_fd_passing_send *sends = rf_xcalloc(most, sizeof(*sends));
    struct rf_fd_passing_want *wants = rf_xcalloc(most, sizeof(*wants));
    size_t n_sends = 0, n_wants = 0;
    enum rf_status status;
    for (size_t i = 0; i < most; i++) {
        const uint32_t slot = (uint32_t)(i / RF_MEM_COUNT);
        const uint32_t mem = (uint32_t)(i % RF_MEM_COUNT);
        const struct rf_ipc_export *other = &peers[slot].export;
        if (slot != shm->self && peers[shm->self].export.by_fd[mem]) {
            sends[n_sends++] =
                (struct rf_fd_passing_send){.rank = other->rank,
                                            .to = other->name,
                                            .tag = mem,
                                            .fd = env->arena[mem].fd};
        }
        if (slot != shm->self && other->by_fd[mem]) {
            wants[n_wants++] =
                (struct rf_fd_passing_want){.rank = other->rank,
                                            .pid = shm->peers[slot].pid,
                                            .tag = mem,
                                            .fd = -1};
        }
    }
    status = rf_fd_passing_run(
        &(struct rf_fd_passing){.socket = socket,
                                .sends = sends,
                                .n_sends = n_sends,
                                .wants = wants,
                                .n_wants = n_wants,
                                .deadline_ns = env->deadline_ns,
                                .abort = env->abort},
        err);
    for (size_t w = 0; w < n_wants; w++) {
        peers[rf_node_memory_slot(shm, wants[w].rank)].fd[wants[w].tag] =
            wants[w].fd;
    }
    free(sends);
    free(wants);
    return status;
}

/* Adds the usual cause of a handle that does not open. */
static void explain(const struct rf_ipc_peer *peer, struct rf_err *err)
{
    rf_err_wrap(
        err,
        "opening the device memory of rank %u (the ranks of a node must share "
        "one PID namespace, unlike isolated containers, and devices need peer "
        "access; REFIT_IPC=vmm in launch.env needs no handles)",
        peer->export.rank);
}

static enum rf_status open_event(struct rf_ipc_peer *peer, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out,
                cudaIpcOpenEventHandle(&peer->event, peer->export.event));
out:
    if (status != RF_OK) {
        explain(peer, err);
    }
    return status;
}

enum rf_status rf_ipc_meet(const struct rf_method_env *env,
                           const struct rf_node_memory *shm, cudaEvent_t event,
                           struct rf_ipc_peer *peers, bool *by_events,
                           struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_ipc_export mine, *all = rf_xcalloc(n, sizeof(*all));
    int socket = -1;
    enum rf_status status;
    memset(&mine, 0, sizeof(mine));
    for (uint32_t slot = 0; slot < shm->n_peers; slot++) {
        for (int m = 0; m < RF_MEM_COUNT; m++) {
            peers[slot].fd[m] = -1;
        }
    }
    status = rf_fd_passing_open(&socket, &mine.name, err);
    RF_THEN(status, fill_export(env, event, &mine, err));
    RF_THEN(status,
            rf_share_all(env, "IPC handles", &mine, sizeof(mine), all, err));
    take_exports(shm, all, peers, by_events);
    RF_THEN(status, pass(env, shm, socket, peers, err));
    for (uint32_t slot = 0;
         status == RF_OK && *by_events && slot < shm->n_peers; slot++) {
        if (slot != shm->self) {
            status = open_event(&peers[slot], err);
        }
    }
    rf_fd_close(&socket);
    free(all);
    return status;
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
    if (peer->export.by_fd[mem]) {
        status = rf_vmm_map(peer->fd[mem], peer->export.bytes[mem],
                            &peer->arena[mem], err);
        return rf_err_within(status, err,
                             "mapping the device memory of rank %u, shared by "
                             "file descriptor (devices need peer access)",
                             peer->export.rank);
    }
    RF_CUDA_TRY(err, out,
                cudaIpcOpenMemHandle(&peer->arena[mem],
                                     peer->export.memory[mem],
                                     cudaIpcMemLazyEnablePeerAccess));
out:
    if (status != RF_OK) {
        explain(peer, err);
    }
    return status;
}

void rf_ipc_close(struct rf_ipc_peer *peer)
{
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        if (peer->arena[m] != NULL && peer->export.by_fd[m]) {
            rf_vmm_unmap(peer->arena[m], peer->export.bytes[m]);
        } else if (peer->arena[m] != NULL) {
            cudaIpcCloseMemHandle(peer->arena[m]);
        }
        peer->arena[m] = NULL;
        rf_fd_close(&peer->fd[m]);
    }
    if (peer->event != NULL) {
        cudaEventDestroy(peer->event);
        peer->event = NULL;
    }
}

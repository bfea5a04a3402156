/*
 * Making, watching and ending NCCL communicators. See nccl_comm.h. All calls
 * come from the one thread that uses NCCL; every wait checks the deadline and
 * the abort flag.
 */
#include "cuda/nccl/nccl_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/methods.h"
#include "cuda/device/place.h"

/* A communicator's asynchronous error, if any; *busy while NCCL works on it. */
static enum rf_status comm_state(struct rf_nccl_comms *comms, ncclComm_t comm,
                                 bool *busy, struct rf_err *err)
{
    ncclResult_t result = ncclSuccess;
    ncclResult_t code;
    *busy = false;
    if (comm == NULL) {
        return RF_OK;
    }
    code = comms->nccl->CommGetAsyncError(comm, &result);
    if (code != ncclSuccess) {
        return rf_nccl_error(err, comms->nccl, "ncclCommGetAsyncError", code,
                             comm);
    }
    if (result == ncclInProgress) {
        *busy = true;
        return RF_OK;
    }
    return result == ncclSuccess
               ? RF_OK
               : rf_nccl_error(err, comms->nccl, "ncclCommGetAsyncError",
                               result, comm);
}

enum rf_status rf_nccl_comms_busy(struct rf_nccl_comms *comms, bool *busy,
                                  struct rf_err *err)
{
    bool node_busy = false;
    enum rf_status status = comm_state(comms, comms->world, busy, err);
    if (status == RF_OK) {
        /* During a split one of NCCL's threads stores it. */
        status =
            comm_state(comms, __atomic_load_n(&comms->node, __ATOMIC_ACQUIRE),
                       &node_busy, err);
    }
    *busy = *busy || node_busy;
    return status;
}

enum rf_status rf_nccl_wait(const struct rf_nccl_comms *comms, const char *what,
                            struct rf_err *err)
{
    if (atomic_load(comms->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "%s: aborted", what);
    }
    if (rf_now_ns() > comms->env->deadline_ns) {
        return rf_err_set(err, RF_ERR_TIMEOUT,
                          "%s: still waiting for other ranks at the "
                          "deadline; do all nodes reach each other on "
                          "NCCL_SOCKET_IFNAME?",
                          what);
    }
    rf_sleep_until_ns(rf_now_ns() + 200 * RF_NS_PER_US);
    return RF_OK;
}

/* Waits outside the timed window until NCCL has finished with both. */
static enum rf_status settle(struct rf_nccl_comms *comms, const char *what,
                             struct rf_err *err)
{
    enum rf_status status = RF_OK;
    while (status == RF_OK) {
        bool busy;
        status = rf_nccl_comms_busy(comms, &busy, err);
        if (status != RF_OK) {
            rf_err_wrap(err, "%s", what);
        } else if (!busy) {
            break;
        } else {
            status = rf_nccl_wait(comms, what, err);
        }
    }
    return status;
}

/* What ranks tell one another first. */
struct greeting {
    struct rf_device_place place;
    int version;
};

/* Checks that all ranks have one version of NCCL. Several ranks on one device
 * pass NCCL's duplicate check only if each looks like a separate host. That is
 * right for tests and wrong for timings. */
static enum rf_status greet(struct rf_nccl_comms *comms, struct rf_err *err)
{
    const struct rf_method_env *env = comms->env;
    const uint32_t n = env->plan->world->n_ranks;
    struct greeting mine = {.version = comms->nccl->version};
    struct greeting *all = rf_xcalloc(n, sizeof(*all));
    bool shared = false;
    enum rf_status status = rf_device_place(&mine.place, err);
    RF_THEN(status,
            rf_share_all(env, "greeting", &mine, sizeof(mine), all, err));
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        const struct greeting *other = &all[r];
        if (other->version != mine.version) {
            status = rf_err_set(err, RF_ERR_UNSUPPORTED,
                                "rank %u has NCCL %d, rank %u has %d; use the "
                                "same library on both nodes",
                                env->rank, mine.version, r, other->version);
        } else if (r != env->rank &&
                   rf_device_is_same(&other->place, &mine.place)) {
            shared = true;
        }
    }
    if (status == RF_OK && shared) {
        char name[32];
        snprintf(name, sizeof(name), "refit-%u", env->rank);
        setenv("NCCL_HOSTID", name, 1);
        rf_cuda_log(RF_LOG_WARN,
                    "rank %u shares its GPU with another rank: nccl timings "
                    "are meaningless",
                    env->rank);
    }
    free(all);
    return status;
}

static enum rf_status exchange_id(struct rf_nccl_comms *comms, ncclUniqueId *id,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (comms->env->rank == 0) {
        RF_NCCL_TRY(comms, err, out, comms->nccl->GetUniqueId(id));
    }
    status = rf_share_first(comms->env, "unique ID", id, sizeof(*id), err);
out:
    return status;
}

static uint32_t ranks_on_node(const struct rf_world *world, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        n += world->ranks[r].node == node;
    }
    return n;
}

enum rf_status rf_nccl_comms_open(struct rf_nccl_comms *comms,
                                  const struct rf_method_env *env,
                                  struct rf_err *err)
{
    const struct rf_world *world = env->plan->world;
    const uint32_t node = world->ranks[env->rank].node;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    enum rf_status status;
    bool several_nodes = ranks_on_node(world, node) < world->n_ranks;
    memset(comms, 0, sizeof(*comms));
    memset(&id, 0, sizeof(id));
    comms->env = env;
    comms->nccl = rf_nccl_load(err);
    if (comms->nccl == NULL) {
        return RF_ERR_UNSUPPORTED;
    }
    config.blocking = 0;
    status = greet(comms, err);
    RF_THEN(status, exchange_id(comms, &id, err));
    if (status != RF_OK) {
        return status;
    }
    RF_NCCL_TRY(comms, err, out,
                comms->nccl->CommInitRankConfig(&comms->world,
                                                (int)world->n_ranks, id,
                                                (int)env->rank, &config));
    status = settle(comms, "ncclCommInitRankConfig", err);
    /* All ranks must take part in a split, also those alone on their node. */
    if (status == RF_OK && several_nodes) {
        RF_NCCL_TRY(comms, err, out,
                    comms->nccl->CommSplit(comms->world, (int)node,
                                           (int)env->rank, &comms->node,
                                           &config));
        status = settle(comms, "ncclCommSplit", err);
    }
out:
    explicit_bzero(&id, sizeof(id));
    return status;
}

/* Ranks of a node are numbered by world rank, the key of the split. */
ncclComm_t rf_nccl_route(const struct rf_nccl_comms *comms, uint32_t peer,
                         int *peer_rank)
{
    const struct rf_world *world = comms->env->plan->world;
    const uint32_t node = world->ranks[comms->env->rank].node;
    if (comms->node == NULL || world->ranks[peer].node != node) {
        *peer_rank = (int)peer;
        return comms->world;
    }
    *peer_rank = 0;
    for (uint32_t r = 0; r < peer; r++) {
        *peer_rank += world->ranks[r].node == node;
    }
    return comms->node;
}

static void abort_one(const struct rf_nccl *nccl, ncclComm_t *comm)
{
    if (*comm != NULL) {
        (void)nccl->CommAbort(*comm);
    }
    *comm = NULL;
}

/* An abort frees memory, which waits for the kernels of all communicators. From
 * NCCL 2.22 on a group tells all of them to stop before it frees anything; the
 * calls of older versions do both at once. Aborting the parent waits for a
 * split in progress, after which `node` has its final value. */
void rf_nccl_comms_abort(struct rf_nccl_comms *comms)
{
    const struct rf_nccl *nccl = comms->nccl;
    if (comms->world == NULL) {
        return;
    }
    (void)nccl->GroupStart();
    abort_one(nccl, &comms->world);
    abort_one(nccl, &comms->node);
    (void)nccl->GroupEnd();
}

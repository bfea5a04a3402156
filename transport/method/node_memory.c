/*
 * The shared side of a node. See node_memory.h.
 *
 * Opening: every rank makes a doorbell pipe, the node's lowest rank also makes
 * the control segment; all exchange process ids and descriptor numbers through
 * env->exchange and open what they need through /proc. At that point a peer is
 * gone only if it has failed; opening then fails and reports it.
 *
 * A waiting rank sleeps in poll; `dozing` tells wakers whether to ring, so that
 * a busy node makes no system calls. Publishing work and reading `dozing`, and
 * setting `dozing` and looking for work, are sequentially consistent, so at
 * least one side sees the other.
 */
#include "transport/method/node_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/memory_info.h"

#define CARD_MAGIC 0x52464E31 /* "RFN1" */

struct rf_node_memory_bed {
    _Alignas(RF_CACHE_LINE) _Atomic uint32_t dozing;
};

struct rf_node_memory_head {
    _Alignas(RF_CACHE_LINE) _Atomic uint32_t aborted;
    struct rf_node_memory_bed beds[]; /* one per slot */
};

/* --- peer info ------------------------------------------------------------ */

struct peer_info {
    uint32_t magic, rank, node, pid, port;
    int segment_fd, bell_fd;
    int fd[RF_MEM_COUNT];
    uint64_t bytes[RF_MEM_COUNT];
};

static bool makes_sense(const struct peer_info *info)
{
    return info->magic == CARD_MAGIC && info->pid <= INT32_MAX &&
           info->port <= UINT16_MAX;
}

/* --- opening peers' descriptors ------------------------------------------- */

static bool proc_is_of_our_namespace(void)
{
    char self[16] = "";
    return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
           strtol(self, NULL, 10) == getpid();
}

/* Reports why a peer's process or descriptor could not be opened. A failed peer
 * has neither any more and reports its own error. */
static enum rf_status not_opened(const struct rf_node_memory_peer *peer,
                                 const char *what, int why, struct rf_err *err)
{
    if (kill(peer->pid, 0) != 0 && errno == ESRCH) {
        return rf_err_set(err, RF_ERR_ABORTED,
                          "rank %" PRIu32 " has ended (or process %d is in "
                          "another PID namespace than this rank's)",
                          peer->rank, (int)peer->pid);
    }
    if ((why == ENOENT || why == ESRCH || why == ENXIO) &&
        proc_is_of_our_namespace()) {
        return rf_err_set(err, RF_ERR_ABORTED,
                          "rank %" PRIu32 " has ended or aborted", peer->rank);
    }
    return rf_err_errno(
        err, RF_ERR_IO, why, "open shared memory of rank %" PRIu32 " (%s%s)",
        peer->rank, what,
        why == EMFILE || why == ENFILE
            ? ""
            : "; ranks of a node must share a user and a PID namespace");
}

static enum rf_status open_of_peer(const struct rf_node_memory_peer *peer,
                                   int fd, int flags, int *out,
                                   struct rf_err *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)peer->pid, fd);
    *out = open(path, flags | O_CLOEXEC);
    return *out < 0 ? not_opened(peer, path, errno, err) : RF_OK;
}

/* Maps all of a descriptor. */
static enum rf_status map_fd(int fd, uint64_t bytes, void **out,
                             struct rf_err *err)
{
    struct stat stat;
    void *at;
    if (fstat(fd, &stat) != 0 || (uint64_t)stat.st_size < bytes) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "shared memory is smaller than the %" PRIu64
                          " bytes announced",
                          bytes);
    }
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return rf_err_errno(err, RF_ERR_NOMEM, errno,
                            "map %" PRIu64 " bytes (see `ulimit -v`)", bytes);
    }
    *out = at;
    return RF_OK;
}

/* Populates a peer's arena unless done before. Our own arena is populated by
 * its owner. */
static void touch(const struct rf_node_memory *shm,
                  struct rf_node_memory_peer *peer, enum rf_mem mem, bool write)
{
    if (peer == &shm->peers[shm->self] || peer->written[mem] ||
        (peer->read[mem] && !write)) {
        return;
    }
    peer->read[mem] = true;
    peer->written[mem] = write;
    (void)rf_memory_populate(peer->arena[mem], peer->arena_bytes[mem], write);
}

enum rf_status rf_node_memory_map(struct rf_node_memory *shm, uint32_t slot,
                                  enum rf_mem mem, bool write,
                                  struct rf_err *err)
{
    struct rf_node_memory_peer *peer = &shm->peers[slot];
    enum rf_status status;
    int fd;
    if (peer->arena_bytes[mem] == 0) {
        return RF_OK;
    }
    if (peer->arena[mem] == NULL) {
        RF_TRY(open_of_peer(peer, peer->arena_fd[mem], O_RDWR, &fd, err));
        status = map_fd(fd, peer->arena_bytes[mem], &peer->arena[mem], err);
        close(fd);
        RF_TRY(
            rf_err_within(status, err, "memory of rank %" PRIu32, peer->rank));
        peer->mapped[mem] = true;
    }
    touch(shm, peer, mem, write);
    return RF_OK;
}

void rf_node_memory_adopt(struct rf_node_memory *shm, uint32_t slot,
                          enum rf_mem mem, void *at)
{
    shm->peers[slot].arena[mem] = at;
}

/* --- opening -------------------------------------------------------------- */

static enum rf_status make_own(struct rf_node_memory *shm, struct rf_err *err)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "create a pipe");
    }
    shm->bell = pipes[0];
    shm->bell_write = pipes[1];
    if (shm->self == 0) {
        shm->segment_fd = memfd_create("refit-control", MFD_CLOEXEC);
        if (shm->segment_fd < 0 ||
            ftruncate(shm->segment_fd, (off_t)shm->segment_bytes) != 0) {
            return rf_err_errno(err, RF_ERR_NOMEM, errno,
                                "create a control segment of %" PRIu64 " bytes",
                                shm->segment_bytes);
        }
    }
    return RF_OK;
}

static void fill_card(const struct rf_node_memory *shm,
                      const struct rf_method_env *env, uint16_t port,
                      struct peer_info *info)
{
    memset(info, 0, sizeof(*info));
    info->magic = CARD_MAGIC;
    info->rank = env->rank;
    info->node = env->plan->world->ranks[env->rank].node;
    info->pid = (uint32_t)getpid();
    info->port = port;
    info->segment_fd = shm->segment_fd;
    info->bell_fd = shm->bell_write;
    for (size_t i = 0; i < RF_MEM_COUNT; i++) {
        info->fd[i] = env->arena[i].fd;
        info->bytes[i] = env->arena[i].bytes;
    }
}

/* Records a peer's info and opens its doorbell. */
static enum rf_status meet(struct rf_node_memory *shm, uint32_t slot,
                           const struct rf_method_env *env,
                           const struct peer_info *info, struct rf_err *err)
{
    struct rf_node_memory_peer *peer = &shm->peers[slot];
    peer->pid = (pid_t)info->pid;
    for (size_t i = 0; i < RF_MEM_COUNT; i++) {
        peer->arena_fd[i] = info->fd[i];
        peer->arena_bytes[i] = info->bytes[i];
    }
    if (slot == shm->self) {
        for (size_t i = 0; i < RF_MEM_COUNT; i++) {
            peer->arena[i] = env->arena[i].base;
        }
        return RF_OK;
    }
    peer->pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
    /* Old kernels lack the call and old container profiles refuse it: then only
     * the agent notices a dead rank. */
    if (peer->pidfd < 0 && errno != ENOSYS && errno != EPERM) {
        return not_opened(peer, "pidfd_open", errno, err);
    }
    /* Open for reading too, so that ringing a dead rank raises no SIGPIPE. */
    return open_of_peer(peer, info->bell_fd, O_RDWR | O_NONBLOCK, &peer->bell,
                        err);
}

static enum rf_status map_control(struct rf_node_memory *shm,
                                  const struct peer_info *lowest,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    void *at = NULL;
    int fd = shm->segment_fd;
    if (shm->self != 0) {
        RF_TRY(
            open_of_peer(&shm->peers[0], lowest->segment_fd, O_RDWR, &fd, err));
    }
    status = map_fd(fd, shm->segment_bytes, &at, err);
    if (shm->self != 0) {
        close(fd);
    }
    RF_TRY(rf_err_within(status, err, "control segment of the node"));
    (void)rf_memory_populate(at, shm->segment_bytes, true);
    shm->head = at;
    shm->control = (uint8_t *)at + (shm->segment_bytes - shm->control_bytes);
    return RF_OK;
}

static enum rf_status read_peer_infos(struct rf_node_memory *shm,
                                      const struct rf_method_env *env,
                                      const struct peer_info *infos,
                                      struct rf_err *err)
{
    const struct rf_world *world = env->plan->world;
    const struct peer_info *lowest = infos;
    for (uint32_t rank = 0; rank < world->n_ranks; rank++) {
        uint32_t slot = rf_node_memory_slot(shm, rank);
        const struct peer_info *info = &infos[rank];
        if (!makes_sense(info) || info->rank != rank ||
            info->node != world->ranks[rank].node) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "rank %" PRIu32 " did not introduce itself",
                              rank);
        }
        shm->ports[rank] = (uint16_t)info->port;
        if (slot == RF_NONE) {
            continue;
        }
        RF_TRY(meet(shm, slot, env, info, err));
        if (slot == 0) {
            lowest = info;
        }
    }
    return map_control(shm, lowest, err);
}

static void list_peers(struct rf_node_memory *shm,
                       const struct rf_method_env *env)
{
    const struct rf_world *world = env->plan->world;
    size_t cap = 0, n = 0;
    for (uint32_t rank = 0; rank < world->n_ranks; rank++) {
        shm->slots[rank] = RF_NONE;
        if (world->ranks[rank].node != world->ranks[env->rank].node) {
            continue;
        }
        if (rank == env->rank) {
            shm->self = (uint32_t)n;
        }
        shm->slots[rank] = (uint32_t)n;
        RF_PUSH(shm->peers, n, cap,
                ((struct rf_node_memory_peer){
                    .rank = rank, .pidfd = -1, .bell = -1}));
    }
    shm->n_peers = (uint32_t)n;
}

enum rf_status rf_node_memory_open(const struct rf_method_env *env,
                                   uint64_t control_bytes, uint16_t port,
                                   struct rf_node_memory **out,
                                   struct rf_err *err)
{
    uint32_t n_ranks = env->plan->world->n_ranks;
    struct rf_node_memory *shm = rf_xcalloc(1, sizeof(*shm));
    struct peer_info mine, *all = rf_xcalloc(n_ranks, sizeof(*all));
    enum rf_status status;
    shm->bell = shm->bell_write = shm->segment_fd = -1;
    shm->ports = rf_xcalloc(n_ranks, sizeof(*shm->ports));
    shm->slots = rf_xcalloc(n_ranks, sizeof(*shm->slots));
    list_peers(shm, env);
    shm->control_bytes = rf_align_up(control_bytes, RF_CACHE_LINE);
    shm->segment_bytes = sizeof(struct rf_node_memory_head) +
                         shm->n_peers * sizeof(struct rf_node_memory_bed) +
                         shm->control_bytes;
    status = make_own(shm, err);
    fill_card(shm, env, port, &mine);
    RF_THEN(status,
            rf_share_all(env, "peer info", &mine, sizeof(mine), all, err));
    RF_THEN(status, read_peer_infos(shm, env, all, err));
    free(all);
    if (status != RF_OK) {
        rf_node_memory_close(shm);
        return status;
    }
    *out = shm;
    return RF_OK;
}

uint32_t rf_node_memory_slot(const struct rf_node_memory *shm, uint32_t rank)
{
    return shm->slots[rank];
}

/* --- sleeping and waking -------------------------------------------------- */

void rf_node_memory_doze(struct rf_node_memory *shm)
{
    atomic_store(&shm->head->beds[shm->self].dozing, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

void rf_node_memory_awake(struct rf_node_memory *shm)
{
    uint8_t drain[64];
    atomic_store(&shm->head->beds[shm->self].dozing, 0);
    while (read(shm->bell, drain, sizeof(drain)) == (ssize_t)sizeof(drain)) {
    }
}

void rf_node_memory_wake(struct rf_node_memory *shm, uint32_t slot)
{
    _Atomic uint32_t *dozing = &shm->head->beds[slot].dozing;
    const uint8_t ring = 1;
    atomic_thread_fence(memory_order_seq_cst);
    if (slot == shm->self || atomic_load(dozing) == 0 ||
        atomic_exchange(dozing, 0) == 0) {
        return;
    }
    /* A full pipe needs no more rings. */
    if (write(shm->peers[slot].bell, &ring, 1) != 1) {
        return;
    }
}

void rf_node_memory_wake_all(struct rf_node_memory *shm)
{
    for (uint32_t slot = 0; slot < shm->n_peers; slot++) {
        rf_node_memory_wake(shm, slot);
    }
}

void rf_node_memory_abort(struct rf_node_memory *shm)
{
    atomic_store(&shm->head->aborted, 1);
    rf_node_memory_wake_all(shm);
}

bool rf_node_memory_aborted(const struct rf_node_memory *shm)
{
    return atomic_load_explicit(&shm->head->aborted, memory_order_relaxed) != 0;
}

void rf_node_memory_close(struct rf_node_memory *shm)
{
    if (shm == NULL) {
        return;
    }
    for (uint32_t slot = 0; slot < shm->n_peers; slot++) {
        struct rf_node_memory_peer *peer = &shm->peers[slot];
        rf_fd_close(&peer->pidfd);
        rf_fd_close(&peer->bell);
        for (size_t i = 0; i < RF_MEM_COUNT; i++) {
            if (peer->mapped[i]) {
                munmap(peer->arena[i], peer->arena_bytes[i]);
            }
        }
    }
    if (shm->head != NULL) {
        munmap(shm->head, shm->segment_bytes);
    }
    rf_fd_close(&shm->bell);
    rf_fd_close(&shm->bell_write);
    rf_fd_close(&shm->segment_fd);
    free(shm->ports);
    free(shm->slots);
    free(shm->peers);
    free(shm);
}

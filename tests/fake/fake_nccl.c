/*
 * Fake NCCL: send and receive between processes of one machine with NCCL's
 * rules. Communicators meet in a memfd that the unique ID names; each ordered
 * pair has a ring in it. Messages to one peer match in order and must agree in
 * size; a group's operations progress together; nothing moves before the stream
 * reaches the group. Communicators are non-blocking and report ncclInProgress
 * for a while after each call.
 *
 *   FAKE_NCCL_FAIL=call:count:code   the count-th such call returns code
 *   FAKE_NCCL_ASYNC=rank:group:code  an asynchronous error in that group
 *   FAKE_NCCL_HANG=rank:group        that group never ends (until an abort)
 *   NCCL_FAKE_VERSION=22809          the version of ncclGetVersion (ranks get
 *                                    variables NCCL_* from their agents)
 *   FAKE_NCCL_STALL_S=n              a group without progress for n seconds
 *                                    (default 20) is reported and fails
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake/fake_nccl.h"

#define ID_MAGIC 0x4E43434Cu

struct id {
    uint32_t magic;
    int pid, fd;
};

int fake_nccl_version(void)
{
    const char *text = getenv("NCCL_FAKE_VERSION");
    return text != NULL ? atoi(text) : NCCL_VERSION_CODE;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = fake_nccl_version();
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    return code == ncclRemoteError    ? "remote process exited"
           : code == ncclInvalidUsage ? "invalid usage"
                                      : "fake NCCL error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

static int new_meeting(void)
{
    const int fd = memfd_create("fake-nccl", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)sizeof(struct meeting)) != 0) {
        perror("fake NCCL: memfd");
        abort();
    }
    return fd; /* lives as long as this process, as NCCL's root thread does */
}

static struct meeting *open_meeting(int pid, int fd)
{
    char path[64];
    struct meeting *meeting;
    int own;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    own = open(path, O_RDWR | O_CLOEXEC);
    meeting = own < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE,
                             MAP_SHARED, own, 0);
    if (own >= 0) {
        close(own);
    }
    return meeting == MAP_FAILED ? NULL : meeting;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    struct id id = {.magic = ID_MAGIC, .pid = getpid(), .fd = new_meeting()};
    ENTER(ncclGetUniqueId);
    memset(out, 0, sizeof(*out));
    memcpy(out, &id, sizeof(id));
    return ncclSuccess;
}

/* --- making communicators --- */

/* NCCL identifies a rank's host by NCCL_HOSTID, else by the machine. */
static void take_place(ncclComm_t comm)
{
    const char *host = getenv("NCCL_HOSTID"), *node = getenv("CUDA_FAKE_NODE");
    snprintf(comm->meeting->place[comm->rank].host, 64, "%s",
             host != NULL ? host : "");
    comm->meeting->place[comm->rank].node = node != NULL ? atoi(node) : 0;
    (void)cudaGetDevice(&comm->meeting->place[comm->rank].device);
}

static bool shares_device(const ncclComm_t comm)
{
    const struct meeting *m = comm->meeting;
    for (int r = 0; r < comm->ranks; r++) {
        if (r != comm->rank &&
            strcmp(m->place[r].host, m->place[comm->rank].host) == 0 &&
            m->place[r].node == m->place[comm->rank].node &&
            m->place[r].device == m->place[comm->rank].device) {
            fprintf(stderr,
                    "fake NCCL: Duplicate GPU detected: rank %d and %d\n",
                    comm->rank, r);
            return true;
        }
    }
    return false;
}

static void *join_meeting(void *opaque)
{
    ncclComm_t comm = opaque;
    atomic_fetch_add(&comm->meeting->joined, 1);
    while (atomic_load(&comm->meeting->joined) < comm->ranks &&
           !atomic_load(&comm->aborted)) {
        fake_nap();
    }
    atomic_store(&comm->result,
                 shares_device(comm) ? ncclInvalidUsage : ncclSuccess);
    atomic_fetch_sub(&comm->starting, 1);
    return NULL;
}

static void run_beside(ncclComm_t comm, void *(*run)(void *), void *data)
{
    pthread_t thread;
    atomic_store(&comm->result, ncclInProgress);
    atomic_fetch_add(&comm->starting, 1);
    pthread_create(&thread, NULL, run, data);
    pthread_detach(thread);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks,
                                    ncclUniqueId opaque, int rank,
                                    ncclConfig_t *config)
{
    struct id id;
    ncclComm_t comm;
    ENTER(ncclCommInitRankConfig);
    memcpy(&id, &opaque, sizeof(id));
    if (id.magic != ID_MAGIC || ranks > MAX_RANKS || rank < 0 ||
        rank >= ranks) {
        return ncclInvalidArgument;
    }
    /* A blocking communicator could not be aborted; one rank alone never
     * waits. */
    if (config->blocking != 0 && ranks > 1) {
        return ncclInvalidArgument;
    }
    comm = calloc(1, sizeof(*comm));
    comm->rank = rank;
    comm->ranks = ranks;
    comm->hasty = (rank + 1) / 2 % 2 == 1;
    comm->meeting = open_meeting(id.pid, id.fd);
    if (comm->meeting == NULL) {
        free(comm);
        return ncclSystemError;
    }
    take_place(comm);
    run_beside(comm, join_meeting, comm);
    *out = comm;
    return ncclInProgress;
}

struct split_call {
    ncclComm_t parent, *out;
    int color;
};

/* Every rank has written its colour; the lowest rank of each makes the
 * meeting. */
static ncclComm_t split_now(const struct split_call *call)
{
    ncclComm_t parent = call->parent, comm;
    struct meeting *m = parent->meeting;
    int leader = -1, ranks = 0, rank = 0;
    atomic_fetch_add(&m->split_arrived, 1);
    while (atomic_load(&m->split_arrived) < parent->ranks) {
        if (atomic_load(&parent->aborted)) {
            return NULL;
        }
        fake_nap();
    }
    for (int r = 0; r < parent->ranks; r++) {
        if (m->split[r].color == call->color) {
            leader = leader < 0 ? r : leader;
            rank += m->split[r].key < m->split[parent->rank].key;
            ranks++;
        }
    }
    if (leader == parent->rank) {
        atomic_store(&m->split[leader].fd, new_meeting());
        atomic_store(&m->split[leader].pid, getpid());
    }
    while (atomic_load(&m->split[leader].pid) == 0) {
        if (atomic_load(&parent->aborted)) {
            return NULL;
        }
        fake_nap();
    }
    comm = calloc(1, sizeof(*comm));
    comm->rank = rank;
    comm->ranks = ranks;
    comm->hasty = parent->hasty;
    comm->meeting = open_meeting(atomic_load(&m->split[leader].pid),
                                 atomic_load(&m->split[leader].fd));
    return comm;
}

static void *split_beside(void *opaque)
{
    struct split_call *call = opaque;
    ncclComm_t parent = call->parent;
    __atomic_store_n(call->out, split_now(call), __ATOMIC_RELEASE);
    free(call);
    atomic_store(&parent->result, ncclSuccess);
    atomic_fetch_sub(&parent->starting, 1);
    return NULL;
}

/* The fake supports one split per communicator. */
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key,
                           ncclComm_t *out, ncclConfig_t *config)
{
    struct split_call *call;
    ENTER(ncclCommSplit);
    (void)config;
    parent->meeting->split[parent->rank].color = color;
    parent->meeting->split[parent->rank].key = key;
    call = calloc(1, sizeof(*call));
    *call = (struct split_call){.parent = parent, .out = out, .color = color};
    run_beside(parent, split_beside, call);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    ENTER(ncclCommGetAsyncError);
    *out = (ncclResult_t)atomic_load(&comm->result);
    if (*out == ncclSuccess && now_ns() < atomic_load(&comm->busy_until)) {
        *out = ncclInProgress;
    }
    if (*out == ncclInProgress) {
        fake_nap(); /* a caller that polls must not keep the processor */
    }
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **at, size_t bytes)
{
    ENTER(ncclMemAlloc);
    if (cudaMalloc(at, bytes) != cudaSuccess) {
        return ncclUnhandledCudaError;
    }
    fake_cuda_trace("memory 1 %zu", bytes);
    return ncclSuccess;
}

/* Unmaps it at once; the process ends if a stream is busy. */
ncclResult_t ncclMemFree(void *at)
{
    ENTER(ncclMemFree);
    if (!fake_cuda_is_device(at, 1)) {
        return ncclInvalidArgument;
    }
    if (!fake_cuda_idle()) {
        fprintf(stderr, "fake NCCL: freed while streams are busy\n");
        abort();
    }
    fake_cuda_trace("memory 0 0");
    return cudaFree(at) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/* Every byte must be live device memory. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *at, size_t bytes,
                              void **handle)
{
    ENTER(ncclCommRegister);
    if (!fake_cuda_is_device(at, bytes) || comm->registered == MAX_REGISTERED) {
        return ncclInvalidArgument;
    }
    comm->memory[comm->registered] = at;
    fake_cuda_trace("register %d %zu", ++comm->registered, bytes);
    *handle = at;
    return ncclSuccess;
}

/* The process ends if an operation may still use the memory. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    ENTER(ncclCommDeregister);
    if (comm->registered == 0 || !fake_cuda_is_device(handle, 1)) {
        return ncclInvalidUsage;
    }
    if (atomic_load(&comm->running) > 0) {
        fprintf(stderr, "fake NCCL: rank %d deregisters what is in use\n",
                comm->rank);
        abort();
    }
    for (int i = 0; i < comm->registered; i++) {
        if (comm->memory[i] == handle) {
            comm->memory[i] = comm->memory[comm->registered - 1];
            break;
        }
    }
    fake_cuda_trace("deregister %d 0", --comm->registered);
    return ncclSuccess;
}

/* Waits for the communicator's kernels, and then, as freeing pinned and device
 * memory does, for all others on the device (commDestroySync() and commFree()
 * in NCCL's init.cc, ncclCudaHostFree() and ncclCudaFree() in alloc.h). */
void fake_nccl_reclaim(ncclComm_t comm)
{
    while (atomic_load(&comm->running) > 0) {
        fake_nap();
    }
    fake_cuda_drain();
    munmap(comm->meeting, sizeof(*comm->meeting));
    free(comm);
}

/* Raises the flag at once and waits for threads that make or split the
 * communicator (ncclCommEnsureReady()). Registered memory must outlive the
 * communicator. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    for (int i = 0; i < comm->registered; i++) {
        if (!fake_cuda_is_device(comm->memory[i], 1)) {
            fprintf(stderr, "fake NCCL: rank %d: registered memory is freed\n",
                    comm->rank);
            abort();
        }
    }
    atomic_store(&comm->aborted, true);
    while (atomic_load(&comm->starting) > 0) {
        fake_nap();
    }
    if (!fake_nccl_defer(comm)) {
        fake_nccl_reclaim(comm);
    }
    return ncclSuccess;
}

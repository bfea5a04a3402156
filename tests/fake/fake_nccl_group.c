/* Groups of the fake NCCL: sends and receives that progress together on their
 * stream's thread. See fake_nccl.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_nccl.h"

#define MAX_OPS 4096
#define MAX_ABORTS 8
#define BUSY_NS 300000

struct op {
    ncclComm_t comm;
    int peer;
    bool sending;
    unsigned char *at;
    size_t bytes, moved;
    bool header_done;
};

struct group {
    struct op ops[MAX_OPS];
    int n;
    cudaStream_t stream;
    bool hang; /* never ends, by FAKE_NCCL_HANG */
    bool ordered;
    uint64_t turn; /* number of groups before it */
};

/* The device of this process. Blocks of one group may fill it, so groups of
 * several communicators need an order, the same on all ranks (NCCL's user
 * guide, "Using multiple NCCL communicators concurrently"): here the device
 * runs one group at a time. Those on different streams start in any order: on
 * hasty ranks every second one lets the next one pass, unless NCCL keeps the
 * order of calls (NCCL_LAUNCH_ORDER_IMPLICIT, from 2.26 on; getImplicitOrder()
 * in enqueue.cc). */
static struct {
    pthread_mutex_t lock;
    uint64_t launched, started; /* groups */
    bool busy;
} device = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool keeps_order(void)
{
    const char *text = getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    return fake_nccl_version() >= NCCL_VERSION(2, 26, 0) && text != NULL &&
           strcmp(text, "1") == 0;
}

static bool take_device(const struct group *group)
{
    bool mine;
    pthread_mutex_lock(&device.lock);
    mine = !device.busy && (!group->ordered || device.started == group->turn);
    device.busy = device.busy || mine;
    device.started += mine;
    pthread_mutex_unlock(&device.lock);
    return mine;
}

static void leave_device(void)
{
    pthread_mutex_lock(&device.lock);
    device.busy = false;
    pthread_mutex_unlock(&device.lock);
}

static _Thread_local struct {
    int depth;
    struct group *group;
    ncclComm_t aborted[MAX_ABORTS]; /* in this group */
    int n_aborted;
} calling;

/* From 2.22 on freeing is a job of the group, before it is part of the call
 * (ncclCommAbort() in NCCL's init.cc). */
bool fake_nccl_defer(ncclComm_t comm)
{
    if (calling.depth == 0 || fake_nccl_version() < NCCL_VERSION(2, 22, 0)) {
        return false;
    }
    calling.aborted[calling.n_aborted++] = comm;
    return true;
}

static size_t ring_put(struct ring *ring, const void *from, size_t bytes)
{
    const uint64_t head = atomic_load(&ring->head);
    const size_t space = RING_BYTES - (size_t)(head - atomic_load(&ring->tail));
    const size_t n = bytes < space ? bytes : space;
    for (size_t i = 0; i < n; i++) {
        ring->data[(head + i) % RING_BYTES] = ((const unsigned char *)from)[i];
    }
    atomic_store(&ring->head, head + n);
    return n;
}

static size_t ring_get(struct ring *ring, void *to, size_t bytes)
{
    const uint64_t tail = atomic_load(&ring->tail);
    const size_t have = (size_t)(atomic_load(&ring->head) - tail);
    const size_t n = bytes < have ? bytes : have;
    for (size_t i = 0; i < n; i++) {
        ((unsigned char *)to)[i] = ring->data[(tail + i) % RING_BYTES];
    }
    atomic_store(&ring->tail, tail + n);
    return n;
}

/* A message is its size and then its bytes. Returns whether anything moved. */
static bool move(struct op *op)
{
    struct meeting *m = op->comm->meeting;
    struct ring *ring = op->sending ? &m->rings[op->comm->rank][op->peer]
                                    : &m->rings[op->peer][op->comm->rank];
    const size_t before = op->moved;
    uint64_t size = op->bytes;
    if (!op->header_done) {
        const uint64_t head = atomic_load(&ring->head);
        const uint64_t tail = atomic_load(&ring->tail);
        if (op->sending ? RING_BYTES - (head - tail) < sizeof(size)
                        : head - tail < sizeof(size)) {
            return false;
        }
        if (op->sending) {
            ring_put(ring, &size, sizeof(size));
        } else {
            ring_get(ring, &size, sizeof(size));
            if (size != op->bytes) {
                fprintf(stderr,
                        "fake NCCL: rank %d receives %zu bytes from %d, which "
                        "sent %llu\n",
                        op->comm->rank, op->bytes, op->peer,
                        (unsigned long long)size);
                atomic_store(&op->comm->result, ncclInvalidUsage);
            }
        }
        op->header_done = true;
        return true;
    }
    op->moved +=
        op->sending ? ring_put(ring, op->at + op->moved, op->bytes - op->moved)
                    : ring_get(ring, op->at + op->moved, op->bytes - op->moved);
    return op->moved != before;
}

static bool finished(const struct op *op)
{
    return op->header_done && op->moved == op->bytes;
}

/* The communicator whose kernel runs: those of a group start one after the
 * other, in the order in which the program first named them (NCCL before
 * 2.26.2). */
static ncclComm_t running_comm(const struct group *group)
{
    ncclComm_t order[MAX_OPS];
    int n = 0;
    for (int i = 0; i < group->n; i++) {
        bool known = false;
        for (int k = 0; k < n; k++) {
            known = known || order[k] == group->ops[i].comm;
        }
        if (!known) {
            order[n++] = group->ops[i].comm;
        }
    }
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < group->n; i++) {
            if (group->ops[i].comm == order[k] && !finished(&group->ops[i])) {
                return order[k];
            }
        }
    }
    return NULL;
}

/* Messages between the same two in the same direction keep their order. */
static bool is_next(const struct group *group, ncclComm_t running, int index)
{
    const struct op *op = &group->ops[index];
    if (op->comm != running) {
        return false;
    }
    for (int i = 0; i < index; i++) {
        const struct op *other = &group->ops[i];
        if (!finished(other) && other->peer == op->peer &&
            other->sending == op->sending && other->comm == op->comm) {
            return false;
        }
    }
    return true;
}

static bool must_hang(const ncclComm_t comm)
{
    const char *text = getenv("FAKE_NCCL_HANG");
    int rank, group;
    return text != NULL && sscanf(text, "%d:%d", &rank, &group) == 2 &&
           rank == comm->rank && group == comm->groups;
}

static void report_stall(const struct group *group)
{
    for (int i = 0; i < group->n; i++) {
        const struct op *op = &group->ops[i];
        if (!finished(op)) {
            fprintf(stderr, "fake NCCL: rank %d %s %d: %zu of %zu bytes\n",
                    op->comm->rank, op->sending ? "to" : "from", op->peer,
                    op->moved, op->bytes);
            atomic_store(&op->comm->result, ncclSystemError);
        }
    }
}

static bool is_aborted(const struct group *group)
{
    bool aborted = false;
    for (int i = 0; i < group->n; i++) {
        aborted = aborted || atomic_load(&group->ops[i].comm->aborted);
    }
    return aborted;
}

/* False: aborted before its start. */
static bool start_group(const struct group *group)
{
    bool started;
    if (!group->ordered && group->ops[0].comm->hasty && group->turn % 2 == 0) {
        const struct timespec span = {.tv_nsec = 20000000};
        nanosleep(&span, NULL);
    }
    while (!(started = take_device(group)) && !is_aborted(group)) {
        fake_nap();
    }
    return started;
}

static void move_group(struct group *group)
{
    const char *text = getenv("FAKE_NCCL_STALL_S");
    const int64_t patience = (text != NULL ? atoll(text) : 20) * 1000000000;
    int64_t last = now_ns();
    const bool hang = group->hang;
    for (bool all = false; !all;) {
        const ncclComm_t running = running_comm(group);
        const bool stop = is_aborted(group);
        bool moved = false;
        all = !hang;
        for (int i = 0; i < group->n && !stop; i++) {
            struct op *op = &group->ops[i];
            if (!hang && !finished(op) && is_next(group, running, i)) {
                moved = move(op) || moved;
            }
            all = all && finished(op);
        }
        if (stop) {
            break;
        }
        if (moved) {
            last = now_ns();
        } else if (!all) {
            if (!hang && now_ns() - last > patience) {
                report_stall(group);
                break;
            }
            fake_nap();
        }
    }
}

/* On the stream's thread. */
static void run_group(void *opaque)
{
    struct group *group = opaque;
    if (start_group(group)) {
        move_group(group);
        leave_device();
    }
    for (int i = 0; i < group->n; i++) {
        atomic_fetch_sub(&group->ops[i].comm->running, 1);
    }
    free(group);
}

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupStart(void)
{
    ENTER(ncclGroupStart);
    if (calling.depth++ == 0) {
        calling.group = calloc(1, sizeof(*calling.group));
    }
    return ncclSuccess;
}

static void inject_async(ncclComm_t comm)
{
    const char *text = getenv("FAKE_NCCL_ASYNC");
    int rank, group, code;
    if (text != NULL && sscanf(text, "%d:%d:%d", &rank, &group, &code) == 3 &&
        rank == comm->rank && group == comm->groups) {
        atomic_store(&comm->result, code);
    }
}

ncclResult_t ncclGroupEnd(void)
{
    struct group *group = calling.group;
    ENTER(ncclGroupEnd);
    if (calling.depth == 0) {
        return ncclInvalidUsage;
    }
    if (--calling.depth > 0) {
        return ncclSuccess;
    }
    calling.group = NULL;
    while (calling.n_aborted > 0) {
        fake_nccl_reclaim(calling.aborted[--calling.n_aborted]);
    }
    if (group->n == 0) {
        free(group);
        return ncclSuccess;
    }
    for (int i = 0; i < group->n; i++) {
        ncclComm_t comm = group->ops[i].comm;
        bool first = true;
        for (int j = 0; j < i; j++) {
            first = first && group->ops[j].comm != comm;
        }
        if (first) {
            comm->groups++;
            inject_async(comm);
            group->hang = group->hang || must_hang(comm);
            atomic_store(&comm->busy_until, now_ns() + BUSY_NS);
        }
        atomic_fetch_add(&comm->running, 1);
    }
    group->ordered = keeps_order();
    pthread_mutex_lock(&device.lock);
    group->turn = device.launched++;
    pthread_mutex_unlock(&device.lock);
    fake_cuda_enqueue(group->stream, run_group, group);
    return ncclInProgress;
}

static ncclResult_t add(const void *at, size_t count, ncclDataType_t type,
                        int peer, ncclComm_t comm, cudaStream_t stream,
                        bool sending)
{
    struct group *group = calling.group;
    if (group == NULL || type != ncclUint8 || peer < 0 || peer >= comm->ranks ||
        (peer == comm->rank && comm->ranks > 1)) {
        return ncclInvalidUsage;
    }
    if (group->n == MAX_OPS || (group->n > 0 && group->stream != stream)) {
        return ncclInvalidUsage;
    }
    if (!fake_cuda_is_device(at, count) || ((uintptr_t)at & 15) != 0) {
        fprintf(stderr, "fake NCCL: rank %d: bad or unaligned buffer %p\n",
                comm->rank, at);
        return ncclInvalidArgument;
    }
    fake_cuda_trace("%s %u %d %zu", sending ? "send" : "recv",
                    fake_cuda_stream_number(stream), peer, count);
    group->stream = stream;
    group->ops[group->n++] = (struct op){.comm = comm,
                                         .peer = peer,
                                         .sending = sending,
                                         .at = fake_cuda_shadow(at),
                                         .bytes = count};
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *at, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclSend);
    return add(at, count, type, peer, comm, stream, true);
}

ncclResult_t ncclRecv(void *at, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclRecv);
    return add(at, count, type, peer, comm, stream, false);
}

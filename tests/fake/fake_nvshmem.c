/*
 * Fake NVSHMEM: the entry points of the host library that the module loads,
 * with the rules of NVSHMEM 3. Processing elements meet in a memfd that the
 * unique ID names; the symmetric heap of each is fake device memory, opened by
 * the others through IPC handles.
 *
 *   - initialisation is collective, needs a device and version 1 structures;
 *   - nvshmem_malloc, nvshmem_free and finalize are collective, sizes agree,
 * and a heap that is full gives NULL;
 *   - a put goes from device memory to the address of the caller's own copy of
 *     a symmetric object; whether it happens at once or as late as the next
 *     quiet or barrier is left open, so both happen here, in turn;
 *   - calls in a stream act when the stream reaches them;
 *   - there are no error codes for those: the process ends.
 *
 *   NVSHMEM_SYMMETRIC_SIZE=bytes        of the heap (default 1 GiB)
 *   FAKE_NVSHMEM_FAIL=call:count:code   the count-th such call returns code (or
 *                                       NULL), or ends the process
 *   FAKE_NVSHMEM_HANG=pe:barrier        that barrier in a stream is never
 * reached
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda/nvshmem_api.h"
#include "tests/fake/fake_cuda.h"

#define ID_MAGIC 0x5348u
#define MAX_PES 32
#define MAX_OBJECTS 64
#define OBJECT_ALIGN 512
#define MAX_PUTS 65536

#define X(name, result, args) result name args;
RF_NVSHMEM_FUNCTIONS(X)
#undef X

struct id {
    uint32_t magic;
    int pid, fd;
};

struct meeting { /* the memfd */
    struct {
        cudaIpcMemHandle_t heap;
        _Atomic uint64_t wanted;          /* of the last nvshmem_malloc */
        _Atomic uint64_t calls, barriers; /* collectives, those in streams */
    } pe[MAX_PES];
};

struct put {
    void *to;
    const void *from;
    size_t bytes;
};

static struct {
    struct meeting *meeting;
    int rank, ranks;
    unsigned char *heap[MAX_PES]; /* in our address space; ours at `rank` */
    size_t heap_bytes, used;
    struct {
        unsigned char *at;
        size_t bytes;
    } objects[MAX_OBJECTS];
    size_t n_objects;
    pthread_mutex_t lock; /* of the puts */
    struct put puts[MAX_PUTS];
    size_t n_puts;
    uint64_t puts_seen;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void nap(void)
{
    const struct timespec span = {.tv_nsec = 20000};
    nanosleep(&span, NULL);
}

/* As the library does: no way back. */
static void end_process(const char *call, const char *why)
{
    fprintf(stderr, "fake NVSHMEM: PE %d: %s: %s\n", self.rank, call, why);
    exit(255);
}

static int injected(const char *call)
{
    return fake_cuda_injected("FAKE_NVSHMEM_FAIL", call);
}

/* For calls that need initialisation and cannot return an error. */
#define ENTER(call)                                                            \
    do {                                                                       \
        if (self.meeting == NULL) {                                            \
            end_process(#call, "NVSHMEM is not initialised");                  \
        }                                                                      \
        if (injected(#call) != 0) {                                            \
            end_process(#call, "injected error");                              \
        }                                                                      \
    } while (0)

/* --- meeting --- */

int nvshmemx_get_uniqueid(struct rf_nvshmem_id *out)
{
    struct id id = {.magic = ID_MAGIC, .pid = getpid()};
    const int code = injected("nvshmemx_get_uniqueid");
    if (code != 0 || out->version != RF_NVSHMEM_VERSION(sizeof(*out))) {
        return code != 0 ? code : 1;
    }
    id.fd = memfd_create("fake-nvshmem", MFD_CLOEXEC);
    if (id.fd < 0 || ftruncate(id.fd, (off_t)sizeof(struct meeting)) != 0) {
        return 1;
    }
    memcpy(out->opaque, &id, sizeof(id));
    return 0;
}

static struct meeting *open_meeting(const struct id *id)
{
    char path[64];
    void *at;
    int fd;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, id->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    at = fd < 0 ? MAP_FAILED
                : mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, 0);
    if (fd >= 0) {
        close(fd);
    }
    return at == MAP_FAILED ? NULL : at;
}

/* Waits until everybody has made as many collective calls. */
static void meet(void)
{
    const uint64_t mine =
        atomic_fetch_add(&self.meeting->pe[self.rank].calls, 1) + 1;
    for (int pe = 0; pe < self.ranks; pe++) {
        while (atomic_load(&self.meeting->pe[pe].calls) < mine) {
            nap();
        }
    }
}

static bool open_heaps(void)
{
    const char *text = getenv("NVSHMEM_SYMMETRIC_SIZE");
    struct meeting *m = self.meeting;
    bool good;
    self.heap_bytes =
        text != NULL ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
    self.used = 0;
    good = cudaMalloc((void **)&self.heap[self.rank], self.heap_bytes) ==
               cudaSuccess &&
           cudaIpcGetMemHandle(&m->pe[self.rank].heap, self.heap[self.rank]) ==
               cudaSuccess;
    meet();
    for (int pe = 0; good && pe < self.ranks; pe++) {
        good =
            pe == self.rank ||
            cudaIpcOpenMemHandle((void **)&self.heap[pe], m->pe[pe].heap,
                                 cudaIpcMemLazyEnablePeerAccess) == cudaSuccess;
    }
    return good;
}

int nvshmemx_hostlib_init_attr(unsigned flags, struct rf_nvshmem_attr *attr)
{
    const struct rf_nvshmem_uid_args *uid = &attr->args.uid;
    const int code = injected("nvshmemx_hostlib_init_attr");
    struct id id;
    if (code != 0) {
        return code;
    }
    if (self.meeting != NULL || !fake_cuda_has_context() ||
        flags != RF_NVSHMEM_INIT_WITH_UNIQUEID ||
        attr->version != RF_NVSHMEM_VERSION(sizeof(*attr)) ||
        attr->args.version != RF_NVSHMEM_VERSION(sizeof(attr->args)) ||
        uid->version != RF_NVSHMEM_VERSION(sizeof(*uid)) ||
        uid->id->version != RF_NVSHMEM_VERSION(sizeof(*uid->id)) ||
        uid->ranks < 1 || uid->ranks > MAX_PES || uid->rank < 0 ||
        uid->rank >= uid->ranks) {
        return 1;
    }
    memcpy(&id, uid->id->opaque, sizeof(id));
    self.meeting = id.magic == ID_MAGIC ? open_meeting(&id) : NULL;
    if (self.meeting == NULL) {
        return 1;
    }
    self.rank = uid->rank;
    self.ranks = uid->ranks;
    return open_heaps() ? 0 : 1;
}

void nvshmemx_hostlib_finalize(void)
{
    ENTER(nvshmemx_hostlib_finalize);
    meet();
    for (int pe = 0; pe < self.ranks; pe++) {
        if (pe != self.rank) {
            (void)cudaIpcCloseMemHandle(self.heap[pe]);
        }
    }
    meet();
    (void)cudaFree(self.heap[self.rank]);
    munmap(self.meeting, sizeof(*self.meeting));
    self.meeting = NULL;
}

/* --- symmetric memory --- */

void *nvshmem_malloc(size_t bytes)
{
    const size_t span =
        (bytes + OBJECT_ALIGN - 1) / OBJECT_ALIGN * OBJECT_ALIGN;
    unsigned char *at;
    if (injected("nvshmem_malloc") != 0) {
        return NULL;
    }
    ENTER(nvshmem_malloc);
    atomic_store(&self.meeting->pe[self.rank].wanted, bytes);
    meet();
    for (int pe = 0; pe < self.ranks; pe++) {
        if (atomic_load(&self.meeting->pe[pe].wanted) != bytes) {
            end_process("nvshmem_malloc", "sizes differ between PEs");
        }
    }
    meet();
    if (bytes == 0 || self.used + span > self.heap_bytes ||
        self.n_objects == MAX_OBJECTS) {
        return NULL;
    }
    at = self.heap[self.rank] + self.used;
    self.used += span;
    self.objects[self.n_objects].at = at;
    self.objects[self.n_objects++].bytes = bytes;
    return at;
}

void nvshmem_free(void *at)
{
    ENTER(nvshmem_free);
    meet();
    if (at == NULL) {
        return;
    }
    for (size_t i = 0; i < self.n_objects; i++) {
        if (self.objects[i].at == at) {
            self.objects[i] = self.objects[--self.n_objects];
            return;
        }
    }
    end_process("nvshmem_free", "not an object of the symmetric heap");
}

static bool is_symmetric(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < self.n_objects; i++) {
        if (at >= self.objects[i].at &&
            at + bytes <= self.objects[i].at + self.objects[i].bytes) {
            return true;
        }
    }
    return false;
}

/* --- in a stream --- */

static void run_put(void *opaque)
{
    struct put *put = opaque;
    pthread_mutex_lock(&self.lock);
    if (self.puts_seen++ % 2 == 0) {
        memcpy(put->to, put->from, put->bytes);
    } else if (self.n_puts == MAX_PUTS) {
        end_process("nvshmemx_putmem_nbi_on_stream", "too many puts at once");
    } else {
        self.puts[self.n_puts++] = *put;
    }
    pthread_mutex_unlock(&self.lock);
    free(put);
}

void nvshmemx_putmem_nbi_on_stream(void *to, const void *from, size_t bytes,
                                   int pe, cudaStream_t stream)
{
    struct put *put;
    ENTER(nvshmemx_putmem_nbi_on_stream);
    if (pe < 0 || pe >= self.ranks || !is_symmetric(to, bytes) ||
        !fake_cuda_is_device(from, bytes)) {
        end_process("nvshmemx_putmem_nbi_on_stream",
                    "not a PE, or not symmetric and device memory");
    }
    put = malloc(sizeof(*put));
    *put = (struct put){
        .to = fake_cuda_shadow(self.heap[pe] +
                               ((unsigned char *)to - self.heap[self.rank])),
        .from = fake_cuda_shadow(from),
        .bytes = bytes};
    fake_cuda_enqueue(stream, run_put, put);
}

static void run_quiet(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&self.lock);
    for (size_t i = 0; i < self.n_puts; i++) {
        memcpy(self.puts[i].to, self.puts[i].from, self.puts[i].bytes);
    }
    self.n_puts = 0;
    pthread_mutex_unlock(&self.lock);
}

void nvshmemx_quiet_on_stream(cudaStream_t stream)
{
    ENTER(nvshmemx_quiet_on_stream);
    fake_cuda_enqueue(stream, run_quiet, NULL);
}

static bool must_hang(uint64_t barrier)
{
    const char *text = getenv("FAKE_NVSHMEM_HANG");
    unsigned long long number;
    int pe;
    return text != NULL && sscanf(text, "%d:%llu", &pe, &number) == 2 &&
           pe == self.rank && number == barrier;
}

static void run_barrier(void *unused)
{
    struct meeting *m = self.meeting;
    const uint64_t mine = atomic_load(&m->pe[self.rank].barriers) + 1;
    run_quiet(unused);
    while (must_hang(mine)) {
        nap();
    }
    atomic_store(&m->pe[self.rank].barriers, mine);
    for (int pe = 0; pe < self.ranks; pe++) {
        while (atomic_load(&m->pe[pe].barriers) < mine) {
            nap();
        }
    }
}

void nvshmemx_barrier_all_on_stream(cudaStream_t stream)
{
    ENTER(nvshmemx_barrier_all_on_stream);
    fake_cuda_enqueue(stream, run_barrier, NULL);
}

/*
 * Fake NVSHMEM: the entry points of the host library that the module loads,
 * with the rules of NVSHMEM 3. Processing elements meet in a memfd that the
 * unique ID names; the symmetric heap of each is fake device memory, opened by
 * the others through IPC handles.
 *
 *   - initialisation is collective, needs a device and version 1 structures;
 *   - nvshmem_malloc, nvshmem_free and finalize are collective, sizes agree,
 *     and a heap that is full gives NULL, but nvshmem_calloc ends the process
 *     (allocate_symmetric_memory() in mem_heap.cpp);
 *   - device memory outside the heap can be registered once, and no two such
 *     buffers overlap;
 *   - a put goes from a symmetric object or a registered buffer to the address
 *     of the caller's own copy of a symmetric object; whether it happens at
 *     once or as late as the next quiet or barrier is left open, so both
 *     happen here, in turn;
 *   - a put with a signal and a signal alone take their data when the stream
 *     reaches them and arrive some time later, in any order, each with its
 *     signal after its data;
 *   - where two PEs have one device, waiting for a signal ends the process, as
 *     it does without MPS;
 *   - calls in a stream act when the stream reaches them; but the barrier of
 *     all, where two PEs have one device, first meets those PEs inside the
 *     call, in a loop on the host (mps_cpu_barrier() and
 *     nvshmemi_mps_sync_gpu_on_stream() in barrier_on_stream.cpp);
 *   - those have no error codes: an error ends the process.
 *
 *   NVSHMEM_SYMMETRIC_SIZE=bytes        of the heap (default 1 GiB), which does
 *                                       not grow (NVSHMEM_DISABLE_CUDA_VMM)
 *   FAKE_NVSHMEM_FAIL=call:count:code   the count-th such call returns code (or
 *                                       NULL), or ends the process
 *   FAKE_NVSHMEM_HANG=pe:count          the count-th barrier or wait for a
 *                                       signal in its streams never ends
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

#include "cuda/nvshmem/nvshmem_api.h"
#include "tests/fake/fake_cuda.h"
#include "tests/fake/nap.h"

#define ID_MAGIC 0x5348u
#define MAX_PES 32
#define MAX_OBJECTS 64
#define MAX_REGISTERED 16
#define OBJECT_ALIGN 512
#define MAX_PUTS 65536
#define LONGEST_WAY_NS 500000

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
        _Atomic uint64_t met;             /* barriers with PEs of its device */
        _Atomic int node, device;
    } pe[MAX_PES];
};

struct span {
    const unsigned char *at;
    size_t bytes;
};

struct put {
    void *to;
    const void *from;
    size_t bytes;
};

/* Data on its way to another PE: bytes, a signal, or both. */
struct parcel {
    void *to;
    void *copy; /* of the bytes */
    size_t bytes;
    uint64_t *signal, value;
    int64_t due_ns;
    struct parcel *next;
};

static struct {
    struct meeting *meeting;
    int rank, ranks;
    unsigned char *heap[MAX_PES]; /* in our address space; ours at `rank` */
    size_t heap_bytes, used;
    struct span objects[MAX_OBJECTS], registered[MAX_REGISTERED];
    size_t n_objects, n_registered;
    pthread_mutex_t lock; /* of the puts */
    struct put puts[MAX_PUTS];
    size_t n_puts;
    uint64_t puts_seen;
    _Atomic uint64_t stops; /* barriers and waits in streams */
    struct parcel *parcels; /* under way */
    pthread_t network;      /* delivers them */
    pthread_cond_t changed;
    bool closing;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

/* Errors are fatal, as in the library. */
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
    if (code != 0 || out->version != RF_NVSHMEM_VERSION(sizeof(*out)) ||
        self.meeting != NULL) { /* no PE would use such an ID */
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

/* Waits until every PE has made as many collective calls. */
static void meet(void)
{
    const uint64_t mine =
        atomic_fetch_add(&self.meeting->pe[self.rank].calls, 1) + 1;
    for (int pe = 0; pe < self.ranks; pe++) {
        while (atomic_load(&self.meeting->pe[pe].calls) < mine) {
            fake_nap();
        }
    }
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Called with the lock held. */
static void deliver(const struct parcel *parcel)
{
    if (parcel->bytes > 0) {
        memcpy(parcel->to, parcel->copy, parcel->bytes);
    }
    __atomic_store_n(parcel->signal, parcel->value, __ATOMIC_RELEASE);
}

static void *run_network(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&self.lock);
    while (!self.closing || self.parcels != NULL) {
        struct parcel **at = &self.parcels;
        const int64_t now = now_ns();
        if (self.parcels == NULL) {
            pthread_cond_wait(&self.changed, &self.lock);
            continue;
        }
        while (*at != NULL) {
            struct parcel *parcel = *at;
            if (parcel->due_ns > now) {
                at = &parcel->next;
                continue;
            }
            deliver(parcel);
            *at = parcel->next;
            free(parcel->copy);
            free(parcel);
        }
        pthread_cond_broadcast(&self.changed);
        pthread_mutex_unlock(&self.lock);
        fake_nap();
        pthread_mutex_lock(&self.lock);
    }
    pthread_mutex_unlock(&self.lock);
    return NULL;
}

/* Takes parcel->copy. */
static void send_parcel(const struct parcel *what)
{
    struct parcel *parcel = malloc(sizeof(*parcel));
    *parcel = *what;
    pthread_mutex_lock(&self.lock);
    self.puts_seen = self.puts_seen * 6364136223846793005u + 1;
    parcel->due_ns =
        now_ns() + (int64_t)((self.puts_seen >> 33) % LONGEST_WAY_NS);
    parcel->next = self.parcels;
    self.parcels = parcel;
    pthread_cond_broadcast(&self.changed);
    pthread_mutex_unlock(&self.lock);
}

static void take_place(void)
{
    const char *node = getenv("CUDA_FAKE_NODE");
    int device = 0;
    (void)cudaGetDevice(&device);
    atomic_store(&self.meeting->pe[self.rank].node,
                 node != NULL ? atoi(node) : 0);
    atomic_store(&self.meeting->pe[self.rank].device, device);
}

static bool have_one_device(int a, int b)
{
    const struct meeting *m = self.meeting;
    return atomic_load(&m->pe[a].node) == atomic_load(&m->pe[b].node) &&
           atomic_load(&m->pe[a].device) == atomic_load(&m->pe[b].device);
}

static bool shares_a_device(void)
{
    for (int a = 0; a < self.ranks; a++) {
        for (int b = 0; b < a; b++) {
            if (have_one_device(a, b)) {
                return true;
            }
        }
    }
    return false;
}

static bool open_heaps(void)
{
    const char *text = getenv("NVSHMEM_SYMMETRIC_SIZE");
    struct meeting *m = self.meeting;
    bool good;
    self.heap_bytes =
        text != NULL ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
    self.used = 0;
    fake_cuda_trace("heap 0 %zu", self.heap_bytes);
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
    self.closing = false;
    take_place();
    if (pthread_create(&self.network, NULL, run_network, NULL) != 0) {
        return 1;
    }
    return open_heaps() ? 0 : 1;
}

void nvshmemx_hostlib_finalize(void)
{
    ENTER(nvshmemx_hostlib_finalize);
    pthread_mutex_lock(&self.lock);
    self.closing = true;
    pthread_cond_broadcast(&self.changed);
    pthread_mutex_unlock(&self.lock);
    pthread_join(self.network, NULL);
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
    atomic_store(&self.stops, 0);
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

void *nvshmem_calloc(size_t count, size_t size)
{
    void *at = nvshmem_malloc(count * size);
    if (at == NULL) {
        end_process("nvshmem_calloc", "the symmetric heap is full");
    }
    (void)cudaMemset(at, 0, count * size);
    meet(); /* zero everywhere before any PE signals */
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

static bool is_within(const struct span *spans, size_t n, const void *memory,
                      size_t bytes)
{
    const unsigned char *at = memory;
    for (size_t i = 0; i < n; i++) {
        if (at >= spans[i].at && at + bytes <= spans[i].at + spans[i].bytes) {
            return true;
        }
    }
    return false;
}

static bool is_symmetric(const void *memory, size_t bytes)
{
    return is_within(self.objects, self.n_objects, memory, bytes);
}

static bool overlaps(const struct span *span, const void *memory, size_t bytes)
{
    const unsigned char *at = memory;
    return at < span->at + span->bytes && span->at < at + bytes;
}

int nvshmemx_buffer_register(void *at, size_t bytes)
{
    const struct span heap = {.at = self.heap[self.rank],
                              .bytes = self.heap_bytes};
    const int code = injected("nvshmemx_buffer_register");
    bool taken = self.meeting == NULL || overlaps(&heap, at, bytes);
    for (size_t i = 0; i < self.n_registered; i++) {
        taken = taken || overlaps(&self.registered[i], at, bytes);
    }
    if (code != 0 || taken || bytes == 0 || !fake_cuda_is_device(at, bytes) ||
        self.n_registered == MAX_REGISTERED) {
        return code != 0 ? code : 1;
    }
    self.registered[self.n_registered++] =
        (struct span){.at = at, .bytes = bytes};
    return 0;
}

int nvshmemx_buffer_unregister(void *at)
{
    for (size_t i = 0; i < self.n_registered; i++) {
        if (self.registered[i].at == at) {
            self.registered[i] = self.registered[--self.n_registered];
            return 0;
        }
    }
    return 1;
}

/* --- in a stream --- */

/* Another PE's copy of a symmetric object, as this process sees its bytes. */
static void *copy_of(const void *own, int pe)
{
    return fake_cuda_shadow(
        self.heap[pe] + ((const unsigned char *)own - self.heap[self.rank]));
}

static void check_put(const char *call, const void *to, const void *from,
                      size_t bytes, int pe)
{
    const bool symmetric = is_symmetric(from, bytes);
    if (pe < 0 || pe >= self.ranks || !is_symmetric(to, bytes) ||
        !fake_cuda_is_device(from, bytes)) {
        end_process(call, "not a PE, or not symmetric and device memory");
    }
    if (!symmetric &&
        !is_within(self.registered, self.n_registered, from, bytes)) {
        end_process(call, "the source is neither symmetric nor registered");
    }
    fake_cuda_trace("%s %d %zu", symmetric ? "put" : "put_registered", pe,
                    bytes);
}

static void check_signal(const char *call, const uint64_t *signal, int op,
                         int pe)
{
    if (pe < 0 || pe >= self.ranks || op != RF_NVSHMEM_SIGNAL_SET ||
        !is_symmetric((const void *)signal, sizeof(*signal))) {
        end_process(call, "not a PE, a known operation, or symmetric");
    }
}

static void run_put(void *opaque)
{
    struct put *put = opaque;
    pthread_mutex_lock(&self.lock);
    self.puts_seen++;
    if (self.puts_seen % 2 == 0) {
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
    check_put("nvshmemx_putmem_nbi_on_stream", to, from, bytes, pe);
    put = malloc(sizeof(*put));
    *put = (struct put){
        .to = copy_of(to, pe), .from = fake_cuda_shadow(from), .bytes = bytes};
    fake_cuda_enqueue(stream, run_put, put);
}

/* The source may be written again when the stream goes on. */
static void run_put_signal(void *opaque)
{
    struct parcel *parcel = opaque;
    void *copy = malloc(parcel->bytes + 1);
    memcpy(copy, parcel->copy, parcel->bytes);
    parcel->copy = copy;
    send_parcel(parcel);
    free(parcel);
}

void nvshmemx_putmem_signal_on_stream(void *to, const void *from, size_t bytes,
                                      uint64_t *signal, uint64_t value, int op,
                                      int pe, cudaStream_t stream)
{
    struct parcel *parcel;
    ENTER(nvshmemx_putmem_signal_on_stream);
    check_put("nvshmemx_putmem_signal_on_stream", to, from, bytes, pe);
    check_signal("nvshmemx_putmem_signal_on_stream", signal, op, pe);
    parcel = malloc(sizeof(*parcel));
    *parcel = (struct parcel){.to = copy_of(to, pe),
                              .copy = fake_cuda_shadow(from),
                              .bytes = bytes,
                              .signal = copy_of(signal, pe),
                              .value = value};
    fake_cuda_enqueue(stream, run_put_signal, parcel);
}

static void run_signal(void *opaque)
{
    send_parcel(opaque);
    free(opaque);
}

void nvshmemx_signal_op_on_stream(uint64_t *signal, uint64_t value, int op,
                                  int pe, cudaStream_t stream)
{
    struct parcel *parcel;
    ENTER(nvshmemx_signal_op_on_stream);
    check_signal("nvshmemx_signal_op_on_stream", signal, op, pe);
    parcel = malloc(sizeof(*parcel));
    *parcel = (struct parcel){.signal = copy_of(signal, pe), .value = value};
    fake_cuda_enqueue(stream, run_signal, parcel);
}

static void hang_if_asked(void)
{
    const char *text = getenv("FAKE_NVSHMEM_HANG");
    const uint64_t stop = atomic_fetch_add(&self.stops, 1) + 1;
    unsigned long long number;
    int pe;
    while (text != NULL && sscanf(text, "%d:%llu", &pe, &number) == 2 &&
           pe == self.rank && number == stop) {
        fake_nap();
    }
}

struct signal_wait {
    const uint64_t *signal;
    uint64_t least;
};

static void run_signal_wait(void *opaque)
{
    struct signal_wait *wait = opaque;
    hang_if_asked();
    while (__atomic_load_n(wait->signal, __ATOMIC_ACQUIRE) < wait->least) {
        fake_nap();
    }
    free(wait);
}

void nvshmemx_signal_wait_until_on_stream(uint64_t *signal, int compare,
                                          uint64_t value, cudaStream_t stream)
{
    struct signal_wait *wait;
    ENTER(nvshmemx_signal_wait_until_on_stream);
    if (shares_a_device()) {
        end_process("nvshmemx_signal_wait_until_on_stream",
                    "not supported with limited MPG");
    }
    check_signal("nvshmemx_signal_wait_until_on_stream", signal,
                 compare == RF_NVSHMEM_CMP_GE ? RF_NVSHMEM_SIGNAL_SET : -1,
                 self.rank);
    wait = malloc(sizeof(*wait));
    *wait = (struct signal_wait){.signal = copy_of(signal, self.rank),
                                 .least = value};
    fake_cuda_enqueue(stream, run_signal_wait, wait);
}

static void run_quiet(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&self.lock);
    for (size_t i = 0; i < self.n_puts; i++) {
        memcpy(self.puts[i].to, self.puts[i].from, self.puts[i].bytes);
    }
    self.n_puts = 0;
    while (self.parcels != NULL) {
        pthread_cond_wait(&self.changed, &self.lock);
    }
    pthread_mutex_unlock(&self.lock);
}

void nvshmemx_quiet_on_stream(cudaStream_t stream)
{
    ENTER(nvshmemx_quiet_on_stream);
    fake_cuda_enqueue(stream, run_quiet, NULL);
}

static void run_barrier(void *unused)
{
    struct meeting *m = self.meeting;
    const uint64_t mine = atomic_load(&m->pe[self.rank].barriers) + 1;
    run_quiet(unused);
    hang_if_asked();
    atomic_store(&m->pe[self.rank].barriers, mine);
    for (int pe = 0; pe < self.ranks; pe++) {
        while (atomic_load(&m->pe[pe].barriers) < mine) {
            fake_nap();
        }
    }
}

static void meet_on_the_device(void)
{
    struct meeting *m = self.meeting;
    const uint64_t mine = atomic_fetch_add(&m->pe[self.rank].met, 1) + 1;
    for (int pe = 0; pe < self.ranks; pe++) {
        while (have_one_device(pe, self.rank) &&
               atomic_load(&m->pe[pe].met) < mine) {
            fake_nap();
        }
    }
}

void nvshmemx_barrier_all_on_stream(cudaStream_t stream)
{
    ENTER(nvshmemx_barrier_all_on_stream);
    if (shares_a_device()) {
        meet_on_the_device();
    }
    fake_cuda_enqueue(stream, run_barrier, NULL);
}

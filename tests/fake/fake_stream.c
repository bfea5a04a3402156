/*
 * Fake streams and events: each stream is a thread with a queue, so work really
 * is asynchronous and races show. Before a task a seeded random delay of up to
 * FAKE_CUDA_DELAY_US microseconds (default 100) passes; FAKE_CUDA_SLOW=n:us
 * adds that many for each task of the n-th stream of the process, from 0, so
 * that a missing wait for it shows. The NULL stream runs at once on the
 * caller's thread; streams made here do not wait for it, as with
 * cudaStreamNonBlocking.
 *
 * An event lives in a page of a memfd, so that an interprocess one can be
 * opened by another process. A record takes the next number; a wait takes the
 * latest number at the time of its call, no more, as the real one does.
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

#include "tests/fake/fake_runtime.h"
#include "tests/fake/nap.h"

#define EVENT_MAGIC 0x4556454Eu
#define MAX_STREAMS 256
/* A high priority is a small number. */
#define PRIORITY_LEAST 0
#define PRIORITY_GREATEST (-5)

struct task {
    void (*run)(void *data);
    void *data;
    struct task *next;
};

struct CUstream_st {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    struct task *first, *last;
    bool busy, stop;
    uint64_t seed;
    long slow_ns; /* added before each task */
    unsigned number;
};

struct event_page {
    _Atomic uint64_t recorded, completed;
    _Atomic int64_t time_ns;
};

struct CUevent_st {
    struct event_page *page;
    int fd;
    unsigned number;
    bool interprocess, timing, imported;
};

struct event_handle {
    uint32_t magic;
    pid_t pid;
    int fd;
};

static struct {
    pthread_mutex_t lock;
    struct CUstream_st *streams[MAX_STREAMS];
    unsigned streams_made;
    _Atomic unsigned events_made;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_ns(long ns)
{
    const struct timespec span = {.tv_sec = ns / 1000000000,
                                  .tv_nsec = ns % 1000000000};
    nanosleep(&span, NULL);
}

/* A caller that polls would keep a processor from the streams' threads. */
static cudaError_t not_ready(void)
{
    fake_nap();
    return cudaErrorNotReady;
}

static void random_delay(struct CUstream_st *stream)
{
    const char *text = getenv("FAKE_CUDA_DELAY_US");
    const uint64_t most = text != NULL ? strtoull(text, NULL, 10) : 100;
    if (stream->slow_ns > 0) {
        pause_ns(stream->slow_ns);
    }
    if (most == 0) {
        return;
    }
    stream->seed = stream->seed * 6364136223846793005u + 1442695040888963407u;
    pause_ns((long)((stream->seed >> 33) % (most * 1000)));
}

static void *run_stream(void *opaque)
{
    struct CUstream_st *stream = opaque;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct task *task = stream->first;
        if (task == NULL) {
            stream->busy = false;
            pthread_cond_broadcast(&stream->idle);
            if (stream->stop) {
                break;
            }
            pthread_cond_wait(&stream->wake, &stream->lock);
            continue;
        }
        stream->busy = true;
        stream->first = task->next;
        if (stream->first == NULL) {
            stream->last = NULL;
        }
        pthread_mutex_unlock(&stream->lock);
        random_delay(stream);
        task->run(task->data);
        free(task);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

void fake_cuda_enqueue(cudaStream_t stream, void (*run)(void *data), void *data)
{
    struct task *task;
    if (stream == NULL) {
        run(data);
        return;
    }
    task = calloc(1, sizeof(*task));
    task->run = run;
    task->data = data;
    pthread_mutex_lock(&stream->lock);
    if (stream->last != NULL) {
        stream->last->next = task;
    } else {
        stream->first = task;
    }
    stream->last = task;
    stream->busy = true;
    pthread_cond_signal(&stream->wake);
    pthread_mutex_unlock(&stream->lock);
}

static void drain(struct CUstream_st *stream)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->first != NULL || stream->busy) {
        pthread_cond_wait(&stream->idle, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}

void fake_cuda_drain(void)
{
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        struct CUstream_st *stream;
        pthread_mutex_lock(&all.lock);
        stream = all.streams[i];
        pthread_mutex_unlock(&all.lock);
        if (stream != NULL) {
            drain(stream);
        }
    }
}

bool fake_cuda_idle(void)
{
    bool idle = true;
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        struct CUstream_st *stream = all.streams[i];
        if (stream != NULL) {
            pthread_mutex_lock(&stream->lock);
            idle = idle && stream->first == NULL && !stream->busy;
            pthread_mutex_unlock(&stream->lock);
        }
    }
    pthread_mutex_unlock(&all.lock);
    return idle;
}

static long slowness_of(size_t index)
{
    const char *text = getenv("FAKE_CUDA_SLOW");
    size_t slow;
    long us;
    return text != NULL && sscanf(text, "%zu:%ld", &slow, &us) == 2 &&
                   slow == index
               ? us * 1000
               : 0;
}

unsigned fake_cuda_stream_number(cudaStream_t stream)
{
    return stream == NULL ? 0 : stream->number;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    FAKE_ENTER(cudaDeviceGetStreamPriorityRange);
    *least = PRIORITY_LEAST;
    *greatest = PRIORITY_GREATEST;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    FAKE_ENTER(cudaStreamCreateWithFlags);
    return cudaStreamCreateWithPriority(out, flags, PRIORITY_LEAST);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags,
                                         int priority)
{
    struct CUstream_st *stream;
    FAKE_ENTER(cudaStreamCreateWithPriority);
    if (flags != cudaStreamNonBlocking || priority > PRIORITY_LEAST ||
        priority < PRIORITY_GREATEST) {
        return fake_set_error(cudaErrorInvalidValue);
    }
    stream = calloc(1, sizeof(*stream));
    stream->seed = (uint64_t)getpid();
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->wake, NULL);
    pthread_cond_init(&stream->idle, NULL);
    pthread_create(&stream->thread, NULL, run_stream, stream);
    pthread_mutex_lock(&all.lock);
    stream->number = ++all.streams_made;
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        if (all.streams[i] == NULL) {
            all.streams[i] = stream;
            stream->seed += i;
            stream->slow_ns = slowness_of(i);
            break;
        }
    }
    pthread_mutex_unlock(&all.lock);
    fake_cuda_trace("stream %u %d", stream->number, priority);
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        if (all.streams[i] == stream) {
            all.streams[i] = NULL;
        }
    }
    pthread_mutex_unlock(&all.lock);
    pthread_mutex_lock(&stream->lock);
    stream->stop = true;
    pthread_cond_signal(&stream->wake);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->wake);
    pthread_cond_destroy(&stream->idle);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    bool busy = false;
    FAKE_ENTER(cudaStreamQuery);
    if (stream != NULL) {
        pthread_mutex_lock(&stream->lock);
        busy = stream->first != NULL || stream->busy;
        pthread_mutex_unlock(&stream->lock);
    }
    return fake_set_error(busy ? not_ready() : cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    FAKE_ENTER(cudaStreamSynchronize);
    if (stream != NULL) {
        drain(stream);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    FAKE_ENTER(cudaDeviceSynchronize);
    fake_cuda_drain();
    return cudaSuccess;
}

/* --- events --- */

static cudaError_t event_create(cudaEvent_t *out, unsigned flags)
{
    struct CUevent_st *event = calloc(1, sizeof(*event));
    event->number = atomic_fetch_add(&all.events_made, 1) + 1;
    event->interprocess = (flags & cudaEventInterprocess) != 0;
    event->timing = (flags & cudaEventDisableTiming) == 0;
    if (event->interprocess && event->timing) {
        free(event);
        return cudaErrorInvalidValue;
    }
    event->fd = memfd_create("fake-event", MFD_CLOEXEC);
    if (event->fd < 0 || ftruncate(event->fd, 4096) != 0) {
        free(event);
        return cudaErrorMemoryAllocation;
    }
    event->page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0);
    if (!event->interprocess) {
        close(event->fd); /* only an exported page needs its descriptor */
        event->fd = -1;
    }
    *out = event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    FAKE_ENTER(cudaEventCreate);
    return fake_set_error(event_create(out, 0));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    FAKE_ENTER(cudaEventCreateWithFlags);
    return fake_set_error(event_create(out, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    fake_cuda_drain(); /* a queued record or wait still uses the page */
    munmap(event->page, 4096);
    if (event->fd >= 0) {
        close(event->fd);
    }
    free(event);
    return cudaSuccess;
}

struct event_task {
    struct event_page *page;
    uint64_t number;
};

static void complete_record(void *opaque)
{
    struct event_task *task = opaque;
    atomic_store(&task->page->time_ns, now_ns());
    atomic_store(&task->page->completed, task->number);
    free(task);
}

static void await_record(void *opaque)
{
    struct event_task *task = opaque;
    while (atomic_load(&task->page->completed) < task->number) {
        fake_nap();
    }
    free(task);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct event_task *task;
    FAKE_ENTER(cudaEventRecord);
    task = malloc(sizeof(*task));
    task->page = event->page;
    task->number = atomic_fetch_add(&event->page->recorded, 1) + 1;
    fake_cuda_trace("record %u %u", event->number,
                    fake_cuda_stream_number(stream));
    fake_cuda_enqueue(stream, complete_record, task);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags)
{
    struct event_task *task;
    (void)flags;
    FAKE_ENTER(cudaStreamWaitEvent);
    task = malloc(sizeof(*task));
    task->page = event->page;
    task->number = atomic_load(&event->page->recorded);
    fake_cuda_trace("wait %u %u", fake_cuda_stream_number(stream),
                    event->number);
    fake_cuda_enqueue(stream, await_record, task);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    FAKE_ENTER(cudaEventQuery);
    return fake_set_error(atomic_load(&event->page->completed) <
                                  atomic_load(&event->page->recorded)
                              ? not_ready()
                              : cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const uint64_t number = atomic_load(&event->page->recorded);
    FAKE_ENTER(cudaEventSynchronize);
    while (atomic_load(&event->page->completed) < number) {
        fake_nap();
    }
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    FAKE_ENTER(cudaEventElapsedTime);
    if (!begin->timing || !end->timing ||
        atomic_load(&begin->page->completed) == 0 ||
        atomic_load(&end->page->completed) == 0) {
        return fake_set_error(cudaErrorInvalidResourceHandle);
    }
    *ms = (float)((double)(atomic_load(&end->page->time_ns) -
                           atomic_load(&begin->page->time_ns)) /
                  1e6);
    return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event)
{
    struct event_handle handle = {
        .magic = EVENT_MAGIC, .pid = getpid(), .fd = event->fd};
    FAKE_ENTER(cudaIpcGetEventHandle);
    if (!event->interprocess) {
        return fake_set_error(cudaErrorInvalidResourceHandle);
    }
    memset(out, 0, sizeof(*out));
    memcpy(out, &handle, sizeof(handle));
    return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out,
                                   cudaIpcEventHandle_t opaque)
{
    struct event_handle handle;
    struct CUevent_st *event;
    char path[64];
    FAKE_ENTER(cudaIpcOpenEventHandle);
    memcpy(&handle, &opaque, sizeof(handle));
    if (handle.magic != EVENT_MAGIC) {
        return fake_set_error(cudaErrorInvalidResourceHandle);
    }
    if (handle.pid == getpid()) {
        return fake_set_error(cudaErrorDeviceUninitialized);
    }
    event = calloc(1, sizeof(*event));
    event->imported = event->interprocess = true;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle.pid, handle.fd);
    event->fd = open(path, O_RDWR | O_CLOEXEC);
    event->page = event->fd < 0 ? MAP_FAILED
                                : mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                       MAP_SHARED, event->fd, 0);
    if (event->page == MAP_FAILED) {
        free(event);
        return fake_set_error(cudaErrorInvalidResourceHandle);
    }
    *out = event;
    return cudaSuccess;
}

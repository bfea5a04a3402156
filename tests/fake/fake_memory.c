/*
 * Fake device memory: allocations are memfds, mapped into the shadow range; IPC
 * handles name a memfd of another process and follow the real rules (no opening
 * in the exporting process, a count of opens, dead after a free).
 *
 * FAKE_CUDA_MEMORY is the device's size in bytes (default 4 GiB), counted per
 * process.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake/fake_cuda.h"
#include "tests/fake/fake_runtime.h"

/* The thread sanitizer leaves only a few hundred GiB of addresses. */
#define RANGE_BYTES ((size_t)1 << 37)
#define GRAIN ((size_t)2 << 20)
#define MAX_BLOCKS 65536
#define HANDLE_MAGIC 0x66616B65u

struct block {
    unsigned char *device;
    size_t bytes;
    int fd;
    bool imported;
    bool vmm;        /* made by cuMem*, not by cudaMalloc */
    bool accessible; /* to copies and kernels */
    unsigned opens;
    pid_t owner;
    int owner_fd;
};

struct handle {
    uint32_t magic;
    pid_t pid;
    int fd;
    uint64_t bytes;
};
_Static_assert(sizeof(struct handle) <= sizeof(cudaIpcMemHandle_t),
               "a handle must fit");

static struct {
    pthread_mutex_t lock;
    unsigned char *device, *shadow;
    size_t next, used;
    struct block blocks[MAX_BLOCKS];
    size_t n;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t device_bytes(void)
{
    const char *text = getenv("FAKE_CUDA_MEMORY");
    return text != NULL ? (size_t)strtoull(text, NULL, 10) : (size_t)4 << 30;
}

/* Called with the lock held. */
static void reserve(void)
{
    if (heap.device != NULL) {
        return;
    }
    heap.device = mmap(NULL, 2 * RANGE_BYTES, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (heap.device == MAP_FAILED) {
        perror("fake CUDA: reserving addresses");
        abort();
    }
    heap.shadow = heap.device + RANGE_BYTES;
}

void *fake_cuda_shadow(const void *device)
{
    const unsigned char *at = device;
    if (heap.device == NULL || at < heap.device ||
        at >= heap.device + RANGE_BYTES) {
        return (void *)(uintptr_t)device; /* host memory */
    }
    return heap.shadow + (at - heap.device);
}

static struct block *find(const void *device)
{
    const unsigned char *at = device;
    for (size_t i = 0; i < heap.n; i++) {
        struct block *block = &heap.blocks[i];
        if (block->device != NULL && at >= block->device &&
            at < block->device + block->bytes) {
            return block;
        }
    }
    return NULL;
}

bool fake_cuda_is_device(const void *device, size_t bytes)
{
    bool inside;
    struct block *block;
    pthread_mutex_lock(&heap.lock);
    block = find(device);
    inside =
        block != NULL && block->accessible &&
        (const unsigned char *)device + bytes <= block->device + block->bytes;
    pthread_mutex_unlock(&heap.lock);
    return inside;
}

size_t fake_cuda_used(void)
{
    size_t used;
    pthread_mutex_lock(&heap.lock);
    used = heap.used;
    pthread_mutex_unlock(&heap.lock);
    return used;
}

/* Addresses that were not used before, so stale ones fault. Called with the
 * lock held, as is map_at(). */
static unsigned char *take_addresses(size_t bytes)
{
    const size_t span = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    reserve();
    if (heap.next + span > RANGE_BYTES) {
        return NULL;
    }
    heap.next += span;
    return heap.device + heap.next - span;
}

static struct block *map_at(unsigned char *device, int fd, size_t bytes)
{
    struct block *block = NULL;
    for (size_t i = 0; i < heap.n && block == NULL; i++) {
        block = heap.blocks[i].device == NULL ? &heap.blocks[i] : NULL;
    }
    if (block == NULL && heap.n < MAX_BLOCKS) {
        block = &heap.blocks[heap.n++];
    }
    if (block == NULL || device == NULL ||
        mmap(fake_cuda_shadow(device), bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        return NULL;
    }
    *block = (struct block){
        .device = device, .bytes = bytes, .fd = fd, .accessible = true};
    return block;
}

static struct block *map(int fd, size_t bytes)
{
    return map_at(take_addresses(bytes), fd, bytes);
}

static void unmap(struct block *block)
{
    mmap(fake_cuda_shadow(block->device), block->bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    close(block->fd);
    block->device = NULL;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    struct block *block = NULL;
    int fd;
    FAKE_ENTER(cudaMalloc);
    pthread_mutex_lock(&heap.lock);
    if (heap.used + bytes <= device_bytes()) {
        fd = memfd_create("fake-device", MFD_CLOEXEC);
        if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) {
            block = map(fd, bytes);
        }
    }
    if (block != NULL) {
        heap.used += bytes;
        *out = block->device;
    }
    pthread_mutex_unlock(&heap.lock);
    return fake_set_error(block != NULL ? cudaSuccess
                                        : cudaErrorMemoryAllocation);
}

/* Pinned host memory, plain to the fake. */
cudaError_t cudaMallocHost(void **host, size_t bytes)
{
    FAKE_ENTER(cudaMallocHost);
    *host = malloc(bytes);
    return *host != NULL ? cudaSuccess
                         : fake_set_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *host)
{
    FAKE_ENTER(cudaFreeHost);
    free(host);
    return cudaSuccess;
}

cudaError_t cudaFree(void *device)
{
    struct block *block;
    FAKE_ENTER(cudaFree);
    if (device == NULL) {
        return cudaSuccess;
    }
    fake_cuda_drain(); /* a free waits for the device */
    pthread_mutex_lock(&heap.lock);
    block = find(device);
    if (block == NULL || block->device != device || block->imported ||
        block->vmm) {
        pthread_mutex_unlock(&heap.lock);
        return fake_set_error(cudaErrorInvalidValue);
    }
    heap.used -= block->bytes;
    unmap(block);
    pthread_mutex_unlock(&heap.lock);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    FAKE_ENTER(cudaMemGetInfo);
    pthread_mutex_lock(&heap.lock);
    *total = device_bytes();
    *free_bytes = *total - heap.used;
    pthread_mutex_unlock(&heap.lock);
    return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *device)
{
    struct block *block;
    struct handle handle = {.magic = HANDLE_MAGIC, .pid = getpid()};
    FAKE_ENTER(cudaIpcGetMemHandle);
    pthread_mutex_lock(&heap.lock);
    block = find(device);
    if (block == NULL || block->imported || block->vmm) {
        pthread_mutex_unlock(&heap.lock);
        return fake_set_error(cudaErrorInvalidValue);
    }
    handle.fd = block->fd;
    handle.bytes = block->bytes;
    pthread_mutex_unlock(&heap.lock);
    memset(out, 0, sizeof(*out));
    memcpy(out, &handle, sizeof(handle));
    return cudaSuccess;
}

static cudaError_t import(const struct handle *handle, void **out)
{
    char path[64];
    struct block *block = NULL;
    cudaError_t code = cudaSuccess;
    int fd;
    pthread_mutex_lock(&heap.lock);
    for (size_t i = 0; i < heap.n && block == NULL; i++) {
        struct block *b = &heap.blocks[i];
        if (b->device != NULL && b->imported && b->owner == handle->pid &&
            b->owner_fd == handle->fd) {
            block = b; /* opened again: the same address */
        }
    }
    if (block == NULL) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle->pid,
                 handle->fd);
        fd = open(path, O_RDWR | O_CLOEXEC);
        block = fd >= 0 ? map(fd, handle->bytes) : NULL;
        if (block != NULL) {
            block->imported = true;
            block->owner = handle->pid;
            block->owner_fd = handle->fd;
        } else {
            code = cudaErrorMapBufferObjectFailed;
        }
    }
    if (block != NULL) {
        block->opens++;
        *out = block->device;
    }
    pthread_mutex_unlock(&heap.lock);
    return code;
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t opaque,
                                 unsigned flags)
{
    struct handle handle;
    FAKE_ENTER(cudaIpcOpenMemHandle);
    memcpy(&handle, &opaque, sizeof(handle));
    if (handle.magic != HANDLE_MAGIC ||
        flags != cudaIpcMemLazyEnablePeerAccess) {
        return fake_set_error(cudaErrorInvalidValue);
    }
    if (handle.pid == getpid()) {
        return fake_set_error(cudaErrorDeviceUninitialized);
    }
    return fake_set_error(import(&handle, out));
}

cudaError_t cudaIpcCloseMemHandle(void *device)
{
    struct block *block;
    FAKE_ENTER(cudaIpcCloseMemHandle);
    fake_cuda_drain();
    pthread_mutex_lock(&heap.lock);
    block = find(device);
    if (block == NULL || !block->imported) {
        pthread_mutex_unlock(&heap.lock);
        return fake_set_error(cudaErrorInvalidValue);
    }
    if (--block->opens == 0) {
        unmap(block);
    }
    pthread_mutex_unlock(&heap.lock);
    return cudaSuccess;
}

/* --- for cuMem* --- */

bool fake_memory_take(size_t bytes)
{
    bool fits;
    pthread_mutex_lock(&heap.lock);
    fits = heap.used + bytes <= device_bytes();
    heap.used += fits ? bytes : 0;
    pthread_mutex_unlock(&heap.lock);
    return fits;
}

void fake_memory_give_back(size_t bytes)
{
    pthread_mutex_lock(&heap.lock);
    heap.used -= bytes;
    pthread_mutex_unlock(&heap.lock);
}

void *fake_memory_reserve(size_t bytes)
{
    void *device;
    pthread_mutex_lock(&heap.lock);
    device = take_addresses(bytes);
    pthread_mutex_unlock(&heap.lock);
    return device;
}

bool fake_memory_map(void *device, size_t bytes, int fd)
{
    struct block *block;
    pthread_mutex_lock(&heap.lock);
    block = map_at(device, fd, bytes);
    if (block != NULL) {
        block->vmm = true;
        block->accessible = false;
        mprotect(fake_cuda_shadow(device), bytes, PROT_NONE);
    }
    pthread_mutex_unlock(&heap.lock);
    return block != NULL;
}

void fake_memory_allow(void *device, size_t bytes)
{
    struct block *block;
    pthread_mutex_lock(&heap.lock);
    block = find(device);
    if (block != NULL) {
        block->accessible = true;
        mprotect(fake_cuda_shadow(device), bytes, PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&heap.lock);
}

void fake_memory_unmap(void *device)
{
    struct block *block;
    pthread_mutex_lock(&heap.lock);
    block = find(device);
    if (block != NULL) {
        unmap(block);
    }
    pthread_mutex_unlock(&heap.lock);
}

/*
 * Fake driver: the entry points of virtual memory management, found through
 * cudaGetDriverEntryPointByVersion(). An allocation is a memfd and an export is
 * a descriptor of it, so processes really share memory.
 *
 *   - sizes are whole grains, and a handle maps whole, once, to reserved
 *     addresses of its size;
 *   - nothing may touch a mapping before its access is set;
 *   - a handle is exported only as the type requested when it was made, and
 *     only descriptors of such memory are imported;
 *   - nothing is unmapped while a stream is busy (the process ends), addresses
 *     are freed after they are unmapped, and memory goes when its handle is
 *     released and it is unmapped;
 *   - a look-up of a function of a version later than the driver's fails.
 *
 * A call that breaks a rule returns an error. FAKE_CUDA_VMM=0: the device
 * cannot share memory by descriptor. FAKE_CUDA_DMABUF=1: it supports dma-bufs.
 */
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake/fake_runtime.h"

#define GRAIN ((size_t)2 << 20)
#define MAX_HANDLES 64
#define MAX_RANGES 64
#define NAME "fake-vmm"

#define ENTER(call)                                                            \
    do {                                                                       \
        int code_ = fake_cuda_injected("FAKE_CUDA_FAIL", #call);               \
        if (code_ != 0) {                                                      \
            return (CUresult)code_;                                            \
        }                                                                      \
    } while (0)

/* Memory that has a handle or is mapped. */
struct memory {
    int fd;
    size_t bytes;
    bool own; /* made here, counts as device memory */
    bool exportable;
    unsigned uses;
    bool released; /* the handle is not valid any more */
};

struct range {
    unsigned char *at; /* NULL: free */
    size_t bytes;
    struct memory *memory;
};

static struct {
    pthread_mutex_t lock;
    struct memory memories[MAX_HANDLES];
    struct range ranges[MAX_RANGES];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUresult device_get(CUdevice *out, int ordinal)
{
    ENTER(cuDeviceGet);
    *out = ordinal;
    return CUDA_SUCCESS;
}

static CUresult device_attribute(int *out, CUdevice_attribute which,
                                 CUdevice device)
{
    const char *text = getenv("FAKE_CUDA_VMM");
    (void)device;
    ENTER(cuDeviceGetAttribute);
    if (which == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) {
        text = getenv("FAKE_CUDA_DMABUF");
        *out = text != NULL && strcmp(text, "1") == 0;
        return CUDA_SUCCESS;
    }
    *out =
        which ==
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED &&
        (text == NULL || strcmp(text, "0") != 0);
    return CUDA_SUCCESS;
}

static CUresult error_name(CUresult code, const char **out)
{
    *out = code == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
           : code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                              : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

static CUresult granularity(size_t *out, const CUmemAllocationProp *prop,
                            CUmemAllocationGranularity_flags which)
{
    (void)which;
    ENTER(cuMemGetAllocationGranularity);
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = GRAIN;
    return CUDA_SUCCESS;
}

/* Called with the lock held. */
static struct memory *new_memory(int fd, size_t bytes)
{
    for (size_t i = 0; i < MAX_HANDLES; i++) {
        struct memory *memory = &all.memories[i];
        if (memory->uses == 0) {
            *memory = (struct memory){.fd = fd, .bytes = bytes, .uses = 1};
            return memory;
        }
    }
    fprintf(stderr, "fake CUDA: too many allocations\n");
    abort();
}

static void drop(struct memory *memory)
{
    if (--memory->uses == 0) {
        close(memory->fd);
        if (memory->own) {
            fake_memory_give_back(memory->bytes);
        }
    }
}

static struct memory *of_handle(CUmemGenericAllocationHandle handle)
{
    for (size_t i = 0; i < MAX_HANDLES; i++) {
        struct memory *memory = &all.memories[i];
        if ((uintptr_t)memory == (uintptr_t)handle && memory->uses > 0 &&
            !memory->released) {
            return memory;
        }
    }
    return NULL;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes,
                       const CUmemAllocationProp *prop,
                       unsigned long long flags)
{
    struct memory *memory;
    int fd;
    ENTER(cuMemCreate);
    if (bytes == 0 || bytes % GRAIN != 0 || flags != 0 ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!fake_memory_take(bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fd = memfd_create(NAME, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        perror("fake CUDA: memfd");
        abort();
    }
    pthread_mutex_lock(&all.lock);
    memory = new_memory(fd, bytes);
    memory->own = true;
    memory->exportable =
        prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    pthread_mutex_unlock(&all.lock);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    struct memory *memory;
    ENTER(cuMemRelease);
    pthread_mutex_lock(&all.lock);
    memory = of_handle(handle);
    if (memory != NULL) {
        memory->released = true;
        drop(memory);
    }
    pthread_mutex_unlock(&all.lock);
    return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct range *find_range(CUdeviceptr at, size_t bytes)
{
    for (size_t i = 0; i < MAX_RANGES; i++) {
        struct range *range = &all.ranges[i];
        if (range->at != NULL && (uintptr_t)range->at == (uintptr_t)at &&
            range->bytes == bytes) {
            return range;
        }
    }
    return NULL;
}

static CUresult reserve(CUdeviceptr *out, size_t bytes, size_t alignment,
                        CUdeviceptr wish, unsigned long long flags)
{
    CUresult code = CUDA_ERROR_OUT_OF_MEMORY;
    (void)alignment;
    ENTER(cuMemAddressReserve);
    if (bytes == 0 || bytes % GRAIN != 0 || wish != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < MAX_RANGES && code != CUDA_SUCCESS; i++) {
        struct range *range = &all.ranges[i];
        if (range->at == NULL) {
            range->at = fake_memory_reserve(bytes);
            range->bytes = bytes;
            *out = (CUdeviceptr)(uintptr_t)range->at;
            code = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&all.lock);
    return code;
}

static CUresult address_free(CUdeviceptr at, size_t bytes)
{
    struct range *range;
    ENTER(cuMemAddressFree);
    pthread_mutex_lock(&all.lock);
    range = find_range(at, bytes);
    if (range != NULL && range->memory == NULL) {
        range->at = NULL;
    } else {
        range = NULL;
        fprintf(stderr, "fake CUDA: addresses freed that are still mapped\n");
    }
    pthread_mutex_unlock(&all.lock);
    return range != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
    CUresult code = CUDA_ERROR_INVALID_VALUE;
    struct memory *memory;
    struct range *range;
    ENTER(cuMemMap);
    pthread_mutex_lock(&all.lock);
    memory = of_handle(handle);
    range = find_range(at, bytes);
    if (memory != NULL && range != NULL && range->memory == NULL &&
        memory->bytes == bytes && offset == 0 && flags == 0 &&
        fake_memory_map(range->at, bytes,
                        fcntl(memory->fd, F_DUPFD_CLOEXEC, 0))) {
        range->memory = memory;
        memory->uses++;
        code = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&all.lock);
    return code;
}

static CUresult unmap(CUdeviceptr at, size_t bytes)
{
    struct range *range;
    ENTER(cuMemUnmap);
    if (!fake_cuda_idle()) {
        fprintf(stderr, "fake CUDA: unmapped while streams are busy\n");
        abort();
    }
    pthread_mutex_lock(&all.lock);
    range = find_range(at, bytes);
    if (range != NULL && range->memory != NULL) {
        fake_memory_unmap(range->at);
        drop(range->memory);
        range->memory = NULL;
    } else {
        range = NULL;
    }
    pthread_mutex_unlock(&all.lock);
    return range != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_access(CUdeviceptr at, size_t bytes,
                           const CUmemAccessDesc *desc, size_t count)
{
    struct range *range;
    ENTER(cuMemSetAccess);
    if (count != 1 || desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
        desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&all.lock);
    range = find_range(at, bytes);
    range = range != NULL && range->memory != NULL ? range : NULL;
    if (range != NULL) {
        fake_memory_allow(range->at, bytes);
    }
    pthread_mutex_unlock(&all.lock);
    return range != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult export(void *out, CUmemGenericAllocationHandle handle,
                       CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult code = CUDA_ERROR_INVALID_VALUE;
    struct memory *memory;
    ENTER(cuMemExportToShareableHandle);
    pthread_mutex_lock(&all.lock);
    memory = of_handle(handle);
    if (memory != NULL && memory->exportable && flags == 0 &&
        type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        *(int *)out = fcntl(memory->fd, F_DUPFD, 0);
        code = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&all.lock);
    return code;
}

static bool is_ours(int fd)
{
    char path[64], name[64] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof(name) - 1) > 0 &&
           strncmp(name, "/memfd:" NAME " ", sizeof("/memfd:" NAME)) == 0;
}

static CUresult import(CUmemGenericAllocationHandle *out, void *os_handle,
                       CUmemAllocationHandleType type)
{
    const int fd = (int)(intptr_t)os_handle;
    struct memory *memory;
    struct stat stat;
    ENTER(cuMemImportFromShareableHandle);
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !is_ours(fd) ||
        fstat(fd, &stat) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&all.lock);
    memory = new_memory(fcntl(fd, F_DUPFD_CLOEXEC, 0), (size_t)stat.st_size);
    pthread_mutex_unlock(&all.lock);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                 unsigned version, unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *result)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        {"cuDeviceGet", (void (*)(void))device_get},
        {"cuDeviceGetAttribute", (void (*)(void))device_attribute},
        {"cuGetErrorName", (void (*)(void))error_name},
        {"cuMemGetAllocationGranularity", (void (*)(void))granularity},
        {"cuMemCreate", (void (*)(void))create},
        {"cuMemRelease", (void (*)(void))release},
        {"cuMemAddressReserve", (void (*)(void))reserve},
        {"cuMemAddressFree", (void (*)(void))address_free},
        {"cuMemMap", (void (*)(void))map},
        {"cuMemUnmap", (void (*)(void))unmap},
        {"cuMemSetAccess", (void (*)(void))set_access},
        {"cuMemExportToShareableHandle", (void (*)(void)) export},
        {"cuMemImportFromShareableHandle", (void (*)(void))import},
    };
    int own = 0;
    (void)flags;
    FAKE_ENTER(cudaGetDriverEntryPointByVersion);
    (void)cudaDriverGetVersion(&own);
    if (version > (unsigned)own) {
        return fake_set_error(cudaErrorInvalidValue);
    }
    *result = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, symbol) == 0) {
            memcpy(out, &functions[i].function, sizeof(*out));
            *result = cudaDriverEntryPointSuccess;
        }
    }
    return cudaSuccess;
}

/*
 * Fake CUDA runtime: errors, devices, copies and kernels. Kernels are found by
 * name and run the code of cuda/device/kernels.h on the processor, thread by
 * thread.
 *
 *   FAKE_CUDA_DEVICES=n         number of devices (default 1; 0: no driver)
 *   FAKE_CUDA_RUNTIME=version   of the runtime (default 13000)
 *   FAKE_CUDA_DRIVER=version    of the driver (default 13000)
 *   FAKE_CUDA_LAUNCH_MS=n       what a launch costs the host (default 0)
 *   CUDA_FAKE_NODE=n            tells this node's devices from another's (ranks
 *                               get variables CUDA_* from their agents)
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/device/kernels.h"
#include "tests/fake/fake_runtime.h"

static _Thread_local cudaError_t last_error;

cudaError_t fake_set_error(cudaError_t code)
{
    if (code != cudaSuccess) {
        last_error = code;
    }
    return code;
}

int fake_cuda_injected(const char *variable, const char *call)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int seen;
    const char *text = getenv(variable);
    const size_t length = strlen(call);
    int count = 0, code = 0;
    if (text == NULL || strncmp(text, call, length) != 0 ||
        sscanf(text + length, ":%d:%d", &count, &code) != 2) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    seen++;
    code = seen == count ? code : 0;
    pthread_mutex_unlock(&lock);
    return code;
}

static int device_count(void)
{
    const char *text = getenv("FAKE_CUDA_DEVICES");
    return text != NULL ? atoi(text) : 1;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorMemoryAllocation ? "out of memory" : "fake error";
}

const char *cudaGetErrorName(cudaError_t code)
{
    static _Thread_local char name[32];
    if (code == cudaErrorMemoryAllocation) {
        return "cudaErrorMemoryAllocation";
    }
    snprintf(name, sizeof(name), "cudaError%d", (int)code);
    return name;
}

static int version_of(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : 13000;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = device_count() == 0 ? 0 : version_of("FAKE_CUDA_DRIVER");
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = version_of("FAKE_CUDA_RUNTIME");
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    FAKE_ENTER(cudaGetDeviceCount);
    if (device_count() == 0 || version_of("FAKE_CUDA_DRIVER") / 1000 <
                                   version_of("FAKE_CUDA_RUNTIME") / 1000) {
        return fake_set_error(cudaErrorInsufficientDriver);
    }
    *count = device_count();
    return cudaSuccess;
}

static atomic_bool has_context;
static _Atomic int current_device;

bool fake_cuda_has_context(void)
{
    return atomic_load(&has_context);
}

cudaError_t cudaSetDevice(int device)
{
    FAKE_ENTER(cudaSetDevice);
    if (device < 0 || device >= device_count()) {
        return fake_set_error(cudaErrorInvalidDevice);
    }
    atomic_store(&has_context, true);
    atomic_store(&current_device, device);
    return cudaSuccess;
}

/* A process uses one device: all of its threads have the same. */
cudaError_t cudaGetDevice(int *device)
{
    FAKE_ENTER(cudaGetDevice);
    *device = atomic_load(&current_device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device)
{
    (void)device;
    FAKE_ENTER(cudaDeviceGetAttribute);
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = 2;
        return cudaSuccess;
    case cudaDevAttrL2CacheSize:
        *value = 1 << 18;
        return cudaSuccess;
    default:
        return fake_set_error(cudaErrorInvalidValue);
    }
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    const char *node = getenv("CUDA_FAKE_NODE");
    FAKE_ENTER(cudaGetDeviceProperties);
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "Fake GPU");
    out->uuid.bytes[14] = (char)(node != NULL ? atoi(node) : 0);
    out->uuid.bytes[15] = (char)device;
    out->major = 9;
    out->multiProcessorCount = 2;
    out->totalGlobalMem = (size_t)4 << 30;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device)
{
    const char *node = getenv("CUDA_FAKE_NODE");
    FAKE_ENTER(cudaDeviceGetPCIBusId);
    snprintf(out, (size_t)size, "%04x:%02x:00.0",
             node != NULL ? (unsigned)atoi(node) : 0, device + 1);
    return cudaSuccess;
}

/* --- copies --- */

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void run_copy(void *opaque)
{
    struct copy *copy = opaque;
    memcpy(copy->to, copy->from, copy->bytes);
    free(copy);
}

/* Both ends of a copy must lie inside live memory of the right kind. */
static bool direction_fits(const void *to, const void *from, size_t bytes,
                           enum cudaMemcpyKind kind)
{
    const bool to_device =
        kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return fake_cuda_is_device(to, bytes) == to_device &&
           fake_cuda_is_device(from, bytes) == from_device;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct copy *copy;
    FAKE_ENTER(cudaMemcpyAsync);
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!direction_fits(to, from, bytes, kind)) {
        return fake_set_error(cudaErrorInvalidValue);
    }
    copy = malloc(sizeof(*copy));
    *copy = (struct copy){.to = fake_cuda_shadow(to),
                          .from = fake_cuda_shadow(from),
                          .bytes = bytes};
    fake_cuda_enqueue(stream, run_copy, copy);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    FAKE_ENTER(cudaMemcpy);
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}

/* cudaDevAttrMaxPitch; cudaMemcpy2DAsync() in cuda_runtime_api.h refuses more. */
#define MOST_PITCH INT_MAX

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t rows,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    FAKE_ENTER(cudaMemcpy2DAsync);
    if (width > to_pitch || width > from_pitch || to_pitch > MOST_PITCH ||
        from_pitch > MOST_PITCH) {
        return fake_set_error(cudaErrorInvalidPitchValue);
    }
    for (size_t r = 0; r < rows && code == cudaSuccess; r++) {
        code = cudaMemcpyAsync((unsigned char *)to + r * to_pitch,
                               (const unsigned char *)from + r * from_pitch,
                               width, kind, stream);
    }
    return code;
}

/* A batch has no order inside: here it runs backwards. Drivers before 12.8 have
 * none. */
#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from,
                                 const size_t *bytes, size_t n,
                                 struct cudaMemcpyAttributes *attributes,
                                 size_t *first, size_t n_attributes,
                                 cudaStream_t stream)
#else
cudaError_t cudaMemcpyBatchAsync(void **to, void **from, size_t *bytes,
                                 size_t n,
                                 struct cudaMemcpyAttributes *attributes,
                                 size_t *first, size_t n_attributes,
                                 size_t *failed, cudaStream_t stream)
#endif
{
    cudaError_t code = cudaSuccess;
    FAKE_ENTER(cudaMemcpyBatchAsync);
    if (version_of("FAKE_CUDA_DRIVER") < 12080) {
        return fake_set_error(cudaErrorCallRequiresNewerDriver);
    }
    if (n == 0 || n_attributes != 1 || first[0] != 0 || stream == NULL ||
        attributes->srcAccessOrder != cudaMemcpySrcAccessOrderStream) {
        return fake_set_error(cudaErrorInvalidValue);
    }
#if CUDART_VERSION < 13000
    *failed = SIZE_MAX;
#endif
    for (size_t i = n; i-- > 0 && code == cudaSuccess;) {
        code = cudaMemcpyAsync(to[i], from[i], bytes[i],
                               cudaMemcpyDeviceToDevice, stream);
    }
    return code;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    FAKE_ENTER(cudaMemset);
    if (!fake_cuda_is_device(to, bytes)) {
        return fake_set_error(cudaErrorInvalidValue);
    }
    memset(fake_cuda_shadow(to), value, bytes);
    return cudaSuccess;
}

/* --- kernels --- */

/* Arguments of a launch, with device addresses replaced by the real ones. */
union kernel_args {
    struct rf_copy_args copy;
    struct rf_content_args content;
    struct rf_fp8_args fp8;
};

static void real_rf_copy_args(struct rf_copy_args *args)
{
    for (int b = 0; b < RF_MAX_BASES; b++) {
        args->bases.at[b] = fake_cuda_shadow(args->bases.at[b]);
    }
    args->tiles = fake_cuda_shadow(args->tiles);
}

static void real_rf_content_args(struct rf_content_args *args)
{
    args->arena = fake_cuda_shadow(args->arena);
    args->slices = fake_cuda_shadow(args->slices);
    args->tiles = fake_cuda_shadow(args->tiles);
    args->counts = fake_cuda_shadow(args->counts);
}

/* The matrices' addresses are in the table and replaced there; nobody reads it
 * later. */
static void real_rf_fp8_args(struct rf_fp8_args *args)
{
    struct rf_fp8_slice *slices = fake_cuda_shadow(args->slices);
    args->tiles = fake_cuda_shadow(args->tiles);
    args->slices = slices;
    for (uint32_t t = 0; t < args->n_tiles; t++) {
        struct rf_fp8_slice *s = &slices[args->tiles[t].slice];
        s->src = fake_cuda_shadow(s->src);
        s->dst = fake_cuda_shadow(s->dst);
        s->scale_inv = fake_cuda_shadow(s->scale_inv);
    }
}

struct kernel {
    const char *name;
    size_t args_bytes;
    void (*make_real)(union kernel_args *args);
    void (*run)(const union kernel_args *args);
};

#define DEFINE_KERNEL(name, args_type, do_tile)                                \
    static void run_##name(const union kernel_args *all)                       \
    {                                                                          \
        const struct args_type *args = (const void *)all;                      \
        for (uint32_t t = 0; t < args->n_tiles; t++) {                         \
            const struct rf_tile *tile = &args->tiles[t];                      \
            do_tile;                                                           \
        }                                                                      \
    }                                                                          \
    static void real_##name(union kernel_args *all)                            \
    {                                                                          \
        real_##args_type((void *)all);                                         \
    }
#define EACH_THREAD(do_thread)                                                 \
    for (uint32_t thread = 0; thread < RF_TILE_THREADS; thread++) {            \
        do_thread;                                                             \
    }
#define DEFINE_THREAD_KERNEL(name, args_type, tile_function)                   \
    DEFINE_KERNEL(name, args_type,                                             \
                  EACH_THREAD(tile_function(args, tile, thread)))
#define DEFINE_BLOCK_KERNEL(name, args_type, tile_function)                    \
    DEFINE_KERNEL(name, args_type, tile_function(args, tile))
RF_THREAD_KERNELS(DEFINE_THREAD_KERNEL)
RF_BLOCK_KERNELS(DEFINE_BLOCK_KERNEL)

static const struct kernel kernels[] = {
#define ENTRY(name, args_type, tile_function)                                  \
    {#name, sizeof(struct args_type), real_##name, run_##name},
    RF_KERNELS(ENTRY)};

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code,
                                enum cudaJitOption *jit, void **jit_values,
                                unsigned n_jit, enum cudaLibraryOption *options,
                                void **option_values, unsigned n_options)
{
    (void)jit, (void)jit_values, (void)n_jit;
    (void)options, (void)option_values, (void)n_options;
    FAKE_ENTER(cudaLibraryLoadData);
    *out = (cudaLibrary_t)(uintptr_t)code;
    return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library,
                                 const char *name)
{
    (void)library;
    FAKE_ENTER(cudaLibraryGetKernel);
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        if (strcmp(kernels[k].name, name) == 0) {
            *out = (cudaKernel_t)(uintptr_t)&kernels[k];
            return cudaSuccess;
        }
    }
    return fake_set_error(cudaErrorSymbolNotFound);
}

struct launch {
    const struct kernel *kernel;
    union kernel_args args;
};

static void run_launch(void *opaque)
{
    struct launch *launch = opaque;
    launch->kernel->run(&launch->args);
    free(launch);
}

static void launch_slowly(void)
{
    const char *text = getenv("FAKE_CUDA_LAUNCH_MS");
    const struct timespec span = {.tv_nsec =
                                      text != NULL ? atol(text) * 1000000 : 0};
    nanosleep(&span, NULL);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                             void **args, size_t shared, cudaStream_t stream)
{
    struct launch *launch;
    FAKE_ENTER(cudaLaunchKernel);
    launch_slowly();
    if (grid.x == 0 || block.x != RF_TILE_THREADS || shared != 0) {
        return fake_set_error(cudaErrorInvalidConfiguration);
    }
    launch = malloc(sizeof(*launch));
    launch->kernel = function;
    memcpy(&launch->args, args[0], launch->kernel->args_bytes);
    launch->kernel->make_real(&launch->args);
    fake_cuda_trace("launch %u %u", fake_cuda_stream_number(stream), grid.x);
    fake_cuda_enqueue(stream, run_launch, launch);
    return cudaSuccess;
}

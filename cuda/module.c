/*
 * The table that refit-worker finds in refit-cuda.so, and its description of
 * the node: driver, devices, libraries, and the reason when one is missing.
 */
#include "transport/method/module.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/events.h"
#include "cuda/device/methods.h"
#include "cuda/device/no_device.h"
#include "cuda/nccl/nccl_api.h"
#include "cuda/nvml/memory_usage.h"
#include "cuda/nvml/nvml.h"

#define PROBE_ALIGN (UINT64_C(1) << 20)

static enum rf_status module_init(const struct rf_module_host *lent,
                                  struct rf_err *err)
{
    (void)err;
    rf_cuda_lend(lent);
    return RF_OK;
}

static uint32_t module_device_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return (uint32_t)count;
}

static void describe_device(int index, struct rf_module_device *out)
{
    struct cudaDeviceProp properties;
    size_t at = (size_t)snprintf(out->uuid, sizeof(out->uuid), "GPU-");
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(out->name, sizeof(out->name), "unknown");
        return;
    }
    for (int i = 0; i < 16; i++) {
        at +=
            (size_t)snprintf(out->uuid + at, sizeof(out->uuid) - at, "%02x%s",
                             (unsigned)(unsigned char)properties.uuid.bytes[i],
                             i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
    }
    snprintf(out->name, sizeof(out->name), "%.60s", properties.name);
    snprintf(out->compute_capability, sizeof(out->compute_capability), "%u.%u",
             (unsigned)properties.major % 100,
             (unsigned)properties.minor % 100);
    out->memory_bytes = properties.totalGlobalMem;
    out->multiprocessors = (uint32_t)properties.multiProcessorCount;
    (void)cudaDeviceGetPCIBusId(out->pci_bus_id, sizeof(out->pci_bus_id),
                                index);
}

/* Abnormal reasons for low clocks. Others are normal: an idle device, a power
 * cap, clocks set by a user. */
static const struct {
    unsigned long long bit;
    const char *name;
} slowdowns[] = {
    {RF_NVML_HARDWARE_SLOWDOWN, "hardware slowdown"},
    {RF_NVML_SOFTWARE_THERMAL, "thermal slowdown"},
    {RF_NVML_HARDWARE_THERMAL, "thermal slowdown (hardware)"},
    {RF_NVML_POWER_BRAKE, "power brake"},
};

static void list_slowdowns(unsigned long long reasons, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < RF_ARRAY_SIZE(slowdowns) && used < size; i++) {
        if ((reasons & slowdowns[i].bit) != 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%s",
                                     used > 0 ? ", " : "", slowdowns[i].name);
        }
    }
}

static bool shares_by_dmabuf(int cuda_device)
{
    __typeof__(&cuDeviceGet) get = NULL;
    __typeof__(&cuDeviceGetAttribute) attribute = NULL;
    enum cudaDriverEntryPointQueryResult found;
    CUdevice device;
    int supported = 0;
    const bool shares =
        cudaGetDriverEntryPointByVersion(
            "cuDeviceGet", (void **)(void *)&get, RF_CUDA_DRIVER_INTERFACE,
            cudaEnableDefault, &found) == cudaSuccess &&
        found == cudaDriverEntryPointSuccess &&
        cudaGetDriverEntryPointByVersion(
            "cuDeviceGetAttribute", (void **)(void *)&attribute,
            RF_CUDA_DRIVER_INTERFACE, cudaEnableDefault,
            &found) == cudaSuccess &&
        found == cudaDriverEntryPointSuccess &&
        get(&device, cuda_device) == CUDA_SUCCESS &&
        attribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device) ==
            CUDA_SUCCESS &&
        supported != 0;
    (void)cudaGetLastError();
    return shares;
}

/* Other users of the device and causes of slowdown. Facts that NVML and the
 * driver do not report stay unknown. */
static void describe_health(int cuda_device, struct rf_module_device *out)
{
    const struct rf_nvml *nvml = rf_nvml_load(NULL);
    rf_nvml_device_t device = rf_nvml_device(cuda_device);
    unsigned long long errors = 0, reasons = 0;
    struct rf_err why = {.text = ""};
    out->processes = UINT32_MAX;
    out->foreign_bytes = out->ecc_errors = UINT64_MAX;
    out->slowed[0] = '\0';
    out->dmabuf = shares_by_dmabuf(cuda_device);
    if (rf_nvml_check_device(cuda_device, &why) != RF_OK) {
        snprintf(out->why, sizeof(out->why), "%.250s", why.text);
    }
    if (nvml == NULL || device == NULL) {
        return;
    }
    if (!rf_nvml_others(device, &out->processes, &out->foreign_bytes)) {
        out->processes = UINT32_MAX;
        out->foreign_bytes = UINT64_MAX;
    }
    if (nvml->DeviceGetTotalEccErrors(device, RF_NVML_UNCORRECTED,
                                      RF_NVML_VOLATILE, &errors) == 0) {
        out->ecc_errors = errors;
    }
    if (nvml->DeviceGetCurrentClocksThrottleReasons(device, &reasons) == 0) {
        list_slowdowns(reasons, out->slowed, sizeof(out->slowed));
    }
}

static void describe_nccl(struct rf_module_facts *out)
{
    struct rf_err why = {.text = ""};
    const struct rf_nccl *nccl = rf_nccl_load(&why);
    if (nccl == NULL) {
        snprintf(out->nccl_why, sizeof(out->nccl_why), "%.250s", why.text);
    } else {
        const unsigned version = (unsigned)nccl->version;
        snprintf(out->nccl_version, sizeof(out->nccl_version), "%u.%u.%u",
                 version / 10000, version % 10000 / 100, version % 100);
        snprintf(out->nccl_path, sizeof(out->nccl_path), "%s", nccl->path);
    }
}

static void module_facts(struct rf_module_facts *out)
{
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    memset(out, 0, sizeof(*out));
    if (code != cudaSuccess || count <= 0) {
        struct rf_err why;
        rf_device_why_none(code, &why);
        snprintf(out->why, sizeof(out->why), "%.250s", why.text);
        count = 0;
    }
    (void)cudaDriverGetVersion(&out->driver);
    (void)cudaRuntimeGetVersion(&out->runtime);
    describe_nccl(out);
    rf_device_driver_version(out->driver_version, sizeof(out->driver_version));
    out->n_devices = RF_MIN((uint32_t)count, (uint32_t)RF_MODULE_MAX_DEVICES);
    for (uint32_t i = 0; i < out->n_devices; i++) {
        describe_device((int)i, &out->devices[i]);
        describe_health((int)i, &out->devices[i]);
    }
}

/* Bytes of each buffer of the copy probe: eight times the cache, but at most a
 * quarter of the free memory. */
static enum rf_status probe_bytes(uint64_t *out, struct rf_err *err)
{
    size_t available = 0, total = 0;
    int cache = 0;
    RF_CUDA_CHECK(err, cudaMemGetInfo(&available, &total));
    RF_CUDA_CHECK(err, cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize,
                                              rf_device_index()));
    *out = RF_MIN((uint64_t)cache * 8, (uint64_t)available / 4);
    *out = RF_MAX(*out / PROBE_ALIGN, UINT64_C(1)) * PROBE_ALIGN;
    return RF_OK;
}

/* Device-to-device cudaMemcpyAsync, the ceiling for refits. Takes the best of a
 * few copies, since the first ones wake the clocks. */
static enum rf_status module_copy_probe(double *gbytes_per_s,
                                        struct rf_err *err)
{
    cudaEvent_t begin = NULL, end = NULL;
    unsigned char *buffer = NULL;
    float ms = 0, best = 0;
    uint64_t bytes = 0;
    enum rf_status status = RF_OK;
    RF_TRY(probe_bytes(&bytes, err));
    rf_memory_usage_pause(true);
    RF_CUDA_TRY(err, out, cudaMalloc((void **)&buffer, 2 * bytes));
    RF_CUDA_TRY(err, out, cudaEventCreate(&begin));
    RF_CUDA_TRY(err, out, cudaEventCreate(&end));
    for (int i = 0; i < 5; i++) {
        RF_CUDA_TRY(err, out, cudaEventRecord(begin, NULL));
        RF_CUDA_TRY(err, out,
                    cudaMemcpyAsync(buffer + bytes, buffer, bytes,
                                    cudaMemcpyDeviceToDevice, NULL));
        RF_CUDA_TRY(err, out, cudaEventRecord(end, NULL));
        RF_CUDA_TRY(err, out, cudaEventSynchronize(end));
        RF_CUDA_TRY(err, out, cudaEventElapsedTime(&ms, begin, end));
        best = best == 0 || ms < best ? ms : best;
    }
    *gbytes_per_s = (double)bytes / ((double)best * 1e6);
out:
    rf_event_free(begin);
    rf_event_free(end);
    cudaFree(buffer);
    rf_memory_usage_pause(false);
    return status;
}

static const struct rf_method_ops *const methods[] = {
#define X(ID, ops, ...) &rf_cuda_method_##ops,
    RF_CUDA_METHODS(X) NULL
#undef X
};

extern const struct rf_module rf_cuda_module;
const struct rf_module rf_cuda_module = {
    .abi = RF_MODULE_ABI,
    .init = module_init,
    .facts = module_facts,
    .device_count = module_device_count,
    .use_device = rf_device_use,
    .memory = &rf_memory_cuda,
    .methods = methods,
    .usage = rf_memory_usage_end,
    .copy_probe = module_copy_probe,
};

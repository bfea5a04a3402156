/*
 * Virtual memory management of the driver. See vmm.h.
 *
 * An allocation is a handle, mapped to reserved addresses and then made
 * accessible. The handle is released at once: the mapping and the exported
 * descriptors keep the memory. A failure undoes the steps before it.
 */
#include "cuda/device/vmm.h"

#include <cuda.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "cuda/device/checked.h"
#include "cuda/device/device.h"

#define DRIVER_FUNCTIONS(X)                                                    \
    X(cuDeviceGet)                                                             \
    X(cuDeviceGetAttribute)                                                    \
    X(cuGetErrorName)                                                          \
    X(cuMemGetAllocationGranularity)                                           \
    X(cuMemCreate)                                                             \
    X(cuMemRelease)                                                            \
    X(cuMemAddressReserve)                                                     \
    X(cuMemAddressFree)                                                        \
    X(cuMemMap)                                                                \
    X(cuMemUnmap)                                                              \
    X(cuMemSetAccess)                                                          \
    X(cuMemExportToShareableHandle)                                            \
    X(cuMemImportFromShareableHandle)

static struct {
    bool loaded;
    CUdevice device; /* the rank's */
#define X(name) __typeof__(&name) name;
    DRIVER_FUNCTIONS(X)
#undef X
} driver;

/* Like RF_CUDA_TRY(), for the driver's own functions. */
#define DRIVER_TRY(err, label, name, ...)                                      \
    do {                                                                       \
        CUresult result_ = driver.name(__VA_ARGS__);                           \
        if (result_ != CUDA_SUCCESS) {                                         \
            status = driver_error((err), #name, result_);                      \
            goto label;                                                        \
        }                                                                      \
    } while (0)

static enum rf_status driver_error(struct rf_err *err, const char *call,
                                   CUresult code)
{
    const char *name = NULL;
    if (driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || name == NULL) {
        name = "unknown error";
    }
    return rf_err_set(
        err, code == CUDA_ERROR_OUT_OF_MEMORY ? RF_ERR_NOMEM : RF_ERR_DEVICE,
        "%s: %s (%d)", call, name, (int)code);
}

static enum rf_status load(struct rf_err *err)
{
    enum rf_status status = RF_OK;
    enum cudaDriverEntryPointQueryResult found;
    if (driver.loaded) {
        return RF_OK;
    }
#define X(name)                                                                \
    RF_CUDA_TRY(err, out,                                                      \
                cudaGetDriverEntryPointByVersion(                              \
                    #name, (void **)(void *)&driver.name,                      \
                    RF_CUDA_DRIVER_INTERFACE, cudaEnableDefault, &found));     \
    if (found != cudaDriverEntryPointSuccess) {                                \
        return rf_err_set(err, RF_ERR_UNSUPPORTED,                             \
                          "the driver has no " #name);                         \
    }
    DRIVER_FUNCTIONS(X)
#undef X
    DRIVER_TRY(err, out, cuDeviceGet, &driver.device, rf_device_index());
    driver.loaded = true;
out:
    return status;
}

enum rf_status rf_vmm_wish(enum rf_vmm_wish *out, struct rf_err *err)
{
    const char *text = getenv("REFIT_IPC");
    if (text == NULL || strcmp(text, "auto") == 0) {
        *out = RF_VMM_IF_NEEDED;
    } else if (strcmp(text, "legacy") == 0) {
        *out = RF_VMM_NEVER;
    } else if (strcmp(text, "vmm") == 0) {
        *out = RF_VMM_ALWAYS;
    } else {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "REFIT_IPC is \"%.40s\", must be auto, legacy or vmm",
                          text);
    }
    return RF_OK;
}

static enum rf_status attribute(CUdevice_attribute which, bool *out,
                                struct rf_err *err)
{
    enum rf_status status = RF_OK;
    int value = 0;
    DRIVER_TRY(err, out, cuDeviceGetAttribute, &value, which, driver.device);
    *out = value != 0;
out:
    return status;
}

enum rf_status rf_vmm_ready(struct rf_err *err)
{
    bool good = false;
    enum rf_status status = load(err);
    RF_THEN(status,
            attribute(
                CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                &good, err));
    if (status == RF_OK && !good) {
        status = rf_err_set(err, RF_ERR_UNSUPPORTED,
                            "device %d cannot share memory by file descriptor",
                            rf_device_index());
    }
    return status;
}

static CUmemAllocationProp properties(void)
{
    CUmemAllocationProp prop;
    bool rdma = false;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = driver.device;
    if (attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                  &rdma, NULL) == RF_OK) {
        prop.allocFlags.gpuDirectRDMACapable = rdma;
    }
    return prop;
}

/* Maps a handle at addresses that this device can access. */
static enum rf_status map_handle(CUmemGenericAllocationHandle handle,
                                 uint64_t bytes, void **base,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    CUmemAccessDesc access;
    CUdeviceptr at = 0;
    memset(&access, 0, sizeof(access));
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = driver.device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER_TRY(err, out, cuMemAddressReserve, &at, bytes, 0, 0, 0);
    DRIVER_TRY(err, err_reserved, cuMemMap, at, bytes, 0, handle, 0);
    DRIVER_TRY(err, err_mapped, cuMemSetAccess, at, bytes, &access, 1);
    *base = (void *)(uintptr_t)at;
    return RF_OK;
err_mapped:
    (void)driver.cuMemUnmap(at, bytes);
err_reserved:
    (void)driver.cuMemAddressFree(at, bytes);
out:
    return status;
}

enum rf_status rf_vmm_alloc(uint64_t *bytes, void **base, int *fd,
                            struct rf_err *err)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop;
    enum rf_status status = rf_vmm_ready(err);
    size_t grain = 0;
    uint64_t wanted;
    void *at = NULL;
    int exported = -1;
    if (status != RF_OK) {
        return status;
    }
    prop = properties();
    DRIVER_TRY(err, out, cuMemGetAllocationGranularity, &grain, &prop,
               CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    wanted = rf_align_up(*bytes, grain);
    DRIVER_TRY(err, out, cuMemCreate, &handle, wanted, &prop, 0);
    status = map_handle(handle, wanted, &at, err);
    if (status != RF_OK) {
        goto err_created;
    }
    DRIVER_TRY(err, err_mapped, cuMemExportToShareableHandle, &exported, handle,
               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    (void)fcntl(exported, F_SETFD, FD_CLOEXEC);
    (void)driver.cuMemRelease(handle);
    *bytes = wanted;
    *base = at;
    *fd = exported;
    return RF_OK;
err_mapped:
    rf_vmm_unmap(at, wanted);
err_created:
    (void)driver.cuMemRelease(handle);
out:
    return status;
}

enum rf_status rf_vmm_map(int fd, uint64_t bytes, void **base,
                          struct rf_err *err)
{
    CUmemGenericAllocationHandle handle;
    enum rf_status status;
    RF_TRY(load(err));
    DRIVER_TRY(err, out, cuMemImportFromShareableHandle, &handle,
               (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    status = map_handle(handle, bytes, base, err);
    (void)driver.cuMemRelease(handle);
out:
    return status;
}

void rf_vmm_unmap(void *base, uint64_t bytes)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)base;
    (void)driver.cuMemUnmap(at, bytes);
    (void)driver.cuMemAddressFree(at, bytes);
}

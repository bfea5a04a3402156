/* See health.h. */
#include "cuda/health.h"

#include <cuda.h>
#include <stdio.h>

#include "common/mem.h"
#include "cuda/device/checked.h"
#include "cuda/nvml/nvml.h"

/* What takes clocks from a device that should have them. Others are normal: it
 * idles, its power is capped, somebody set its clocks. */
static const struct {
    unsigned long long bit;
    const char *name;
} slowdowns[] = {
    {RF_NVML_HARDWARE_SLOWDOWN, "hardware slowdown"},
    {RF_NVML_SOFTWARE_THERMAL, "too hot for its clocks"},
    {RF_NVML_HARDWARE_THERMAL, "too hot (hardware)"},
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

void rf_health_of_device(int cuda_device, struct rf_module_device *out)
{
    const struct rf_nvml *nvml = rf_nvml_load(NULL);
    rf_nvml_device_t device = rf_nvml_device(cuda_device);
    unsigned long long errors = 0, reasons = 0;
    out->processes = UINT32_MAX;
    out->foreign_bytes = out->ecc_errors = UINT64_MAX;
    out->slowed[0] = '\0';
    out->dmabuf = shares_by_dmabuf(cuda_device);
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

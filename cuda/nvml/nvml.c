/* Loading and querying NVML. See nvml.h. */
#include "cuda/nvml/nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include "common/mem.h"
#include "cuda/nvml/dynamic_library.h"

#define LIBRARY "libnvidia-ml.so.1"
#define MOST_PROCESSES 256

static struct rf_nvml table;

static const struct rf_dynamic_library_symbol symbols[] = {
#define X(name, args) {"nvml" #name, (void **)(void *)&table.name},
    RF_NVML_FUNCTIONS(X)
#undef X
};

static enum rf_status load(struct rf_err *err)
{
    void *library;
    enum rf_status status = rf_dynamic_library_open(
        LIBRARY, RTLD_LOCAL, symbols, RF_ARRAY_SIZE(symbols), &library, err);
    if (status == RF_OK && table.Init_v2() != 0) {
        status = rf_err_set(err, RF_ERR_UNSUPPORTED, "nvmlInit_v2 failed");
    }
    return status;
}

const struct rf_nvml *rf_nvml_load(struct rf_err *err)
{
    static struct rf_dynamic_library library = RF_LIBRARY_INIT;
    return rf_dynamic_library_load(&library, load, err) == RF_OK ? &table
                                                                 : NULL;
}

rf_nvml_device_t rf_nvml_device(int cuda_device)
{
    const struct rf_nvml *nvml = rf_nvml_load(NULL);
    rf_nvml_device_t device = NULL;
    char bus[32] = "";
    if (nvml == NULL ||
        cudaDeviceGetPCIBusId(bus, sizeof(bus), cuda_device) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return nvml->DeviceGetHandleByPciBusId_v2(bus, &device) == 0 ? device
                                                                 : NULL;
}

bool rf_nvml_used(rf_nvml_device_t device, uint64_t *used)
{
    struct rf_nvml_memory memory = {.version = RF_NVML_MEMORY_VERSION};
    if (device == NULL || table.DeviceGetMemoryInfo_v2(device, &memory) != 0) {
        return false;
    }
    *used = memory.used;
    return true;
}

bool rf_nvml_processes(rf_nvml_device_t device, uint64_t *own, uint64_t *others)
{
    struct rf_nvml_process list[MOST_PROCESSES];
    unsigned n = MOST_PROCESSES;
    bool found = false;
    if (device == NULL ||
        table.DeviceGetComputeRunningProcesses_v3(device, &n, list) != 0) {
        return false;
    }
    *own = *others = 0;
    for (unsigned i = 0; i < RF_MIN(n, (unsigned)MOST_PROCESSES); i++) {
        if (list[i].used == RF_NVML_NOT_AVAILABLE) {
            return false;
        }
        if (list[i].pid == (unsigned)getpid()) {
            *own = list[i].used;
            found = true;
        } else {
            *others += list[i].used;
        }
    }
    return found;
}

bool rf_nvml_others(rf_nvml_device_t device, uint32_t *count, uint64_t *bytes)
{
    struct rf_nvml_process list[MOST_PROCESSES];
    unsigned n = MOST_PROCESSES;
    if (device == NULL ||
        table.DeviceGetComputeRunningProcesses_v3(device, &n, list) != 0) {
        return false;
    }
    *count = 0;
    *bytes = 0;
    for (unsigned i = 0; i < RF_MIN(n, (unsigned)MOST_PROCESSES); i++) {
        if (list[i].pid != (unsigned)getpid()) {
            ++*count;
            *bytes += list[i].used != RF_NVML_NOT_AVAILABLE ? list[i].used : 0;
        }
    }
    return true;
}

bool rf_nvml_nvlink(rf_nvml_device_t device, uint64_t *sent, uint64_t *received)
{
    struct rf_nvml_field fields[2] = {
        {.field = RF_NVML_NVLINK_SENT, .scope = ~0u},
        {.field = RF_NVML_NVLINK_RECEIVED, .scope = ~0u}};
    if (device == NULL || table.DeviceGetFieldValues(device, 2, fields) != 0 ||
        fields[0].result != 0 || fields[1].result != 0) {
        return false;
    }
    *sent = fields[0].value.number * 1024;
    *received = fields[1].value.number * 1024;
    return true;
}

enum rf_status rf_nvml_check_device(int cuda_device, struct rf_err *err)
{
    rf_nvml_device_t device = rf_nvml_device(cuda_device);
    unsigned now = 0, after_reset = 0;
    int mode = 0;
    if (device == NULL) {
        return RF_OK;
    }
    if (table.DeviceGetMigMode(device, &now, &after_reset) == 0 && now == 1) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "GPU %d is split by MIG: CUDA IPC and NCCL do not "
                          "work between ranks; use whole GPUs, chosen by "
                          "CUDA_VISIBLE_DEVICES in launch.env",
                          cuda_device);
    }
    if (table.DeviceGetComputeMode(device, &mode) == 0 &&
        mode == RF_NVML_COMPUTE_PROHIBITED) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "GPU %d has compute mode prohibited (see nvidia-smi)",
                          cuda_device);
    }
    return RF_OK;
}

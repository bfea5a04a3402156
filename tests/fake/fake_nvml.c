/*
 * Fake NVML over the fake CUDA runtime: one process's memory, the processes if
 * the driver reports them, MIG, errors, clocks and NVLink counters.
 *
 *   FAKE_NVML_FOREIGN=bytes    in use by another process
 *   FAKE_NVML_PROCESSES=0      the driver does not report processes
 *   FAKE_NVML_MIG=n            devices that are split by MIG, as bits
 *   FAKE_NVML_COMPUTE_MODE=n   as nvidia-smi sets it
 *   FAKE_NVML_ECC=n            uncorrected errors of every device
 *   FAKE_NVML_SLOWED=n         reasons for low clocks, as bits
 *   FAKE_NVML_DRIVER=version   of the driver
 *   FAKE_NVML_NVLINK=1         it has NVLinks; queries raise their counters
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/nvml/nvml.h"
#include "tests/fake/fake_cuda.h"

#define CONTEXT_BYTES (300ull << 20)
#define NOT_SUPPORTED 3
#define MOST_DEVICES 64

static char devices[MOST_DEVICES]; /* their addresses are the handles */

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* Memory of this process: none before it has a context. */
static unsigned long long own(void)
{
    const size_t used = fake_cuda_used();
    return fake_cuda_has_context() ? used + CONTEXT_BYTES : 0;
}

/* Read once: a thread samples while tests change the environment. */
static unsigned long long foreign;
static bool tells_processes;

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    foreign = number("FAKE_NVML_FOREIGN", 0);
    tells_processes = number("FAKE_NVML_PROCESSES", 1) != 0;
    return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    const char *version = getenv("FAKE_NVML_DRIVER");
    if (version == NULL) {
        version = "580.00.00";
    }
    if (size <= strlen(version)) {
        return 7;
    }
    strcpy(out, version);
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, rf_nvml_device_t *out);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, rf_nvml_device_t *out)
{
    unsigned node, bus_number; /* of fake_runtime.c */
    if (sscanf(bus, "%x:%x:", &node, &bus_number) != 2 || bus_number == 0 ||
        bus_number > MOST_DEVICES) {
        return 2;
    }
    *out = (rf_nvml_device_t)(void *)&devices[bus_number - 1];
    return 0;
}

int nvmlDeviceGetMemoryInfo_v2(rf_nvml_device_t device,
                               struct rf_nvml_memory *out);
int nvmlDeviceGetMemoryInfo_v2(rf_nvml_device_t device,
                               struct rf_nvml_memory *out)
{
    (void)device;
    if (out->version != RF_NVML_MEMORY_VERSION) {
        return 25; /* argument version mismatch */
    }
    out->total = 4ull << 30;
    out->reserved = 0;
    out->used = own() + foreign;
    out->available = out->total - out->used;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(rf_nvml_device_t device,
                                            unsigned *n,
                                            struct rf_nvml_process *out);
int nvmlDeviceGetComputeRunningProcesses_v3(rf_nvml_device_t device,
                                            unsigned *n,
                                            struct rf_nvml_process *out)
{
    (void)device;
    if (!tells_processes) {
        return NOT_SUPPORTED;
    }
    memset(out, 0, 2 * sizeof(*out));
    out[0].pid = (unsigned)getpid();
    out[0].used = own();
    out[1].pid = 1;
    out[1].used = foreign;
    *n = foreign > 0 ? 2 : 1;
    return 0;
}

int nvmlDeviceGetMigMode(rf_nvml_device_t device, unsigned *now,
                         unsigned *after_reset);
int nvmlDeviceGetMigMode(rf_nvml_device_t device, unsigned *now,
                         unsigned *after_reset)
{
    const long index = (const char *)(const void *)device - devices;
    *now = *after_reset = number("FAKE_NVML_MIG", 0) >> index & 1;
    return 0;
}

int nvmlDeviceGetComputeMode(rf_nvml_device_t device, int *mode);
int nvmlDeviceGetComputeMode(rf_nvml_device_t device, int *mode)
{
    (void)device;
    *mode = (int)number("FAKE_NVML_COMPUTE_MODE", 0);
    return 0;
}

int nvmlDeviceGetTotalEccErrors(rf_nvml_device_t device, int type, int since,
                                unsigned long long *out);
int nvmlDeviceGetTotalEccErrors(rf_nvml_device_t device, int type, int since,
                                unsigned long long *out)
{
    (void)device;
    if (type != RF_NVML_UNCORRECTED || since != RF_NVML_VOLATILE) {
        return NOT_SUPPORTED;
    }
    *out = number("FAKE_NVML_ECC", 0);
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(rf_nvml_device_t device,
                                              unsigned long long *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(rf_nvml_device_t device,
                                              unsigned long long *out)
{
    (void)device;
    *out = number("FAKE_NVML_SLOWED", 1); /* it idles */
    return 0;
}

int nvmlDeviceGetFieldValues(rf_nvml_device_t device, int n,
                             struct rf_nvml_field *fields);
int nvmlDeviceGetFieldValues(rf_nvml_device_t device, int n,
                             struct rf_nvml_field *fields)
{
    static unsigned asked;
    (void)device;
    asked++;
    for (int i = 0; i < n; i++) {
        const bool known = fields[i].field == RF_NVML_NVLINK_SENT ||
                           fields[i].field == RF_NVML_NVLINK_RECEIVED;
        fields[i].result =
            number("FAKE_NVML_NVLINK", 0) != 0 && known ? 0 : NOT_SUPPORTED;
        fields[i].value.number = /* KiB */
            asked * (fields[i].field == RF_NVML_NVLINK_SENT ? 1000ull : 3000);
    }
    return 0;
}

/*
 * NVML through dlopen, with our own types: its header is not in every toolkit,
 * its library comes with the driver. The declarations follow the public
 * interface of NVML (API 12 and later).
 */
#ifndef RF_CUDA_NVML_NVML_H
#define RF_CUDA_NVML_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

typedef struct rf_nvml_device *rf_nvml_device_t;

struct rf_nvml_memory {
    unsigned version;
    unsigned long long total, reserved, available, used;
};
_Static_assert(sizeof(struct rf_nvml_memory) == 40, "public ABI");
#define RF_NVML_MEMORY_VERSION                                                 \
    ((unsigned)sizeof(struct rf_nvml_memory) | 2u << 24)

struct rf_nvml_process {
    unsigned pid; /* of the host's namespace */
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct rf_nvml_process) == 24, "public ABI");
#define RF_NVML_NOT_AVAILABLE (~0ull)

struct rf_nvml_field {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    union {
        double real;
        unsigned long long number;
    } value;
};
_Static_assert(sizeof(struct rf_nvml_field) == 40, "public ABI");
/* Data moved over NVLink in KiB; scope all ones: all links together. */
#define RF_NVML_NVLINK_SENT 138
#define RF_NVML_NVLINK_RECEIVED 139

#define RF_NVML_COMPUTE_PROHIBITED 2

/* Uncorrectable ECC errors since the driver was loaded. */
#define RF_NVML_UNCORRECTED 1
#define RF_NVML_VOLATILE 0

/* Reasons for lowered clocks, bits. */
#define RF_NVML_HARDWARE_SLOWDOWN 0x08ull
#define RF_NVML_SOFTWARE_THERMAL 0x20ull
#define RF_NVML_HARDWARE_THERMAL 0x40ull
#define RF_NVML_POWER_BRAKE 0x80ull

#define RF_NVML_FUNCTIONS(X)                                                   \
    X(Init_v2, (void))                                                         \
    X(SystemGetDriverVersion, (char *, unsigned))                              \
    X(DeviceGetHandleByPciBusId_v2, (const char *, rf_nvml_device_t *))        \
    X(DeviceGetMemoryInfo_v2, (rf_nvml_device_t, struct rf_nvml_memory *))     \
    X(DeviceGetComputeRunningProcesses_v3,                                     \
      (rf_nvml_device_t, unsigned *, struct rf_nvml_process *))                \
    X(DeviceGetMigMode, (rf_nvml_device_t, unsigned *, unsigned *))            \
    X(DeviceGetComputeMode, (rf_nvml_device_t, int *))                         \
    X(DeviceGetTotalEccErrors,                                                 \
      (rf_nvml_device_t, int, int, unsigned long long *))                      \
    X(DeviceGetCurrentClocksThrottleReasons,                                   \
      (rf_nvml_device_t, unsigned long long *))                                \
    X(DeviceGetFieldValues, (rf_nvml_device_t, int, struct rf_nvml_field *))

struct rf_nvml {
#define X(name, args) int(*name) args;
    RF_NVML_FUNCTIONS(X)
#undef X
};

/* The table, initialised, or NULL with the reason. Safe from any thread. */
const struct rf_nvml *rf_nvml_load(struct rf_err *err);

/* NVML's handle of a CUDA device, found by its PCI address because the two
 * number devices differently under CUDA_VISIBLE_DEVICES; NULL: none. */
rf_nvml_device_t rf_nvml_device(int cuda_device);

/* Memory in use on the whole device; false without NVML. */
bool rf_nvml_used(rf_nvml_device_t device, uint64_t *used);

/* Memory in use by this process and by all others; false if the driver does not
 * report it (in a container or a virtual machine it may not). */
bool rf_nvml_processes(rf_nvml_device_t device, uint64_t *own,
                       uint64_t *others);

/* Number of other processes that compute on the device, and their memory (0 if
 * the driver does not report it); false if it reports no processes. */
bool rf_nvml_others(rf_nvml_device_t device, uint32_t *count, uint64_t *bytes);

/* Bytes sent and received over the device's NVLinks since the driver started;
 * false if it has none. */
bool rf_nvml_nvlink(rf_nvml_device_t device, uint64_t *sent,
                    uint64_t *received);

/* RF_ERR_UNSUPPORTED if a device cannot be used whole: split by MIG, or closed
 * to computing. RF_OK also if NVML does not report it. */
enum rf_status rf_nvml_check_device(int cuda_device,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

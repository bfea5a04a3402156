/*
 * The interfaces of refit-cuda.so, the only code that touches CUDA, NCCL,
 * NVSHMEM and NVML, and of refit-ucx.so, the only code that touches UCX. Opened
 * at run time by transport/method/module.c; a node without them, or without a
 * driver, still starts and reports what is missing. Both sides are built from
 * one tree; another ABI number is refused.
 */
#ifndef RF_TRANSPORT_METHOD_MODULE_H
#define RF_TRANSPORT_METHOD_MODULE_H

#include "transport/info/module_files.h"
#include "transport/method/method.h"
#include "transport/method/ucx_wire.h"

#define RF_MODULE_ABI 12
#define RF_MODULE_SYMBOL "rf_cuda_module"

#define RF_MODULE_MAX_DEVICES 32

struct rf_module_device {
    char name[64], uuid[48], pci_bus_id[32];
    char compute_capability[8]; /* "9.0" */
    uint64_t memory_bytes;
    uint32_t multiprocessors;
    uint32_t processes;     /* of others; UINT32_MAX: unknown */
    uint64_t foreign_bytes; /* in use by them; UINT64_MAX: unknown */
    uint64_t ecc_errors;    /* uncorrected, since the driver was loaded; */
                            /* UINT64_MAX: unknown */
    char slowed[96];        /* what lowers its clocks; "": nothing known */
    bool dmabuf;            /* its memory can be exported as a dma-buf */
    char why[256];          /* why methods cannot use it; else empty */
};

/* The module's findings on the node; texts are empty where there is nothing. */
struct rf_module_facts {
    char why[256];           /* why no device can be used; else empty */
    int driver, runtime;     /* CUDA versions, 13000 = 13.0; 0: none */
    char driver_version[80]; /* "580.95.05", from NVML */
    char nccl_version[16], nccl_path[512], nccl_why[256];
    uint32_t n_devices;
    struct rf_module_device devices[RF_MODULE_MAX_DEVICES];
};

/* Device memory of this process, the most of any sample; 0: unknown. */
struct rf_module_usage {
    uint64_t peak_bytes;    /* the best available figure, see docs/GPU.md */
    uint64_t arena_bytes;   /* arenas alone, exact */
    uint64_t runtime_bytes; /* without the context, by cudaMemGetInfo */
    uint64_t process_bytes; /* of this process, by NVML */
    uint64_t device_bytes;  /* in use on the device, less the initial use */
    uint64_t foreign_bytes; /* of others, by NVML */
    bool has_nvlink;        /* if so, of the whole device since the start: */
    uint64_t nvlink_sent_bytes, nvlink_received_bytes;
};

struct rf_ucx_module;

/* The worker's services for the module. */
struct rf_module_host {
    void (*log)(int level, const char *line);
    /* rf_ucx_module_load() */
    const struct rf_ucx_module *(*ucx)(struct rf_err *err);
};

struct rf_module {
    uint32_t abi;
    /* Called once, first. RF_OK even without a usable device. */
    enum rf_status (*init)(const struct rf_module_host *host,
                           struct rf_err *err);
    void (*facts)(struct rf_module_facts *out);
    uint32_t (*device_count)(void);
    /* Binds the calling thread (the rank's data thread) to a device. */
    enum rf_status (*use_device)(uint32_t device, struct rf_err *err);
    const struct rf_memory_ops *memory;
    const struct rf_method_ops *const *methods; /* ends with NULL */
    /* Device memory used by this process; ends the sampling. */
    void (*usage)(struct rf_module_usage *out);
    /* Copy bandwidth of the device in GB/s of payload (read + write counted
     * once), for the link probe; between buffers larger than its caches, or
     * smaller ones if memory is short. */
    enum rf_status (*copy_probe)(double *gbytes_per_s, struct rf_err *err);
};

/* Loads the module from beside the executable, then from the library path; NULL
 * with the reason. Cached after the first call. */
const struct rf_module *rf_module_load(struct rf_err *err);

#define RF_UCX_MODULE_ABI 6
#define RF_UCX_MODULE_SYMBOL "rf_ucx_module"

struct rf_ucx_module {
    uint32_t abi;
    const struct rf_method_ops *method;
    const struct rf_ucx_wire_ops *wire;
};

/* The same for UCX. */
const struct rf_ucx_module *rf_ucx_module_load(struct rf_err *err);

#endif

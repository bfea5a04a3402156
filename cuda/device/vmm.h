/*
 * Device memory made with the driver's virtual memory management, which other
 * processes map through a file descriptor: the form of sharing that needs no
 * legacy IPC handles. The driver's functions come through the runtime, so
 * nothing is linked to libcuda.
 */
#ifndef RF_CUDA_DEVICE_VMM_H
#define RF_CUDA_DEVICE_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* How arenas are shared: variable REFIT_IPC. */
enum rf_vmm_wish {
    RF_VMM_IF_NEEDED, /* "auto", or not set: where legacy handles are refused */
    RF_VMM_NEVER,     /* "legacy" */
    RF_VMM_ALWAYS,    /* "vmm" */
};
enum rf_status rf_vmm_wish(enum rf_vmm_wish *out,
                           struct rf_err *err) RF_MUST_CHECK;

/* Whether the rank's device can do it; RF_ERR_UNSUPPORTED with why not. */
enum rf_status rf_vmm_ready(struct rf_err *err) RF_MUST_CHECK;

/* Memory of the rank's device, rounded up to whole grains: *bytes is then what
 * it has. *fd stands for it in other processes (close-on-exec, the caller's).
 * It lives until it is unmapped everywhere and all its descriptors are closed.
 */
enum rf_status rf_vmm_alloc(uint64_t *bytes, void **base, int *fd,
                            struct rf_err *err) RF_MUST_CHECK;

/* Maps what another process made; the descriptor stays the caller's. `bytes` is
 * the size that rf_vmm_alloc() gave there. */
enum rf_status rf_vmm_map(int fd, uint64_t bytes, void **base,
                          struct rf_err *err) RF_MUST_CHECK;

/* Either of the two; after the device is done with it. */
void rf_vmm_unmap(void *base, uint64_t bytes);

#endif

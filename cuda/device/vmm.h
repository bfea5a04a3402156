/*
 * Device memory from the driver's virtual memory management, which other
 * processes map through a file descriptor: sharing without legacy IPC handles.
 * The driver's functions come through the runtime, so nothing links to libcuda.
 */
#ifndef RF_CUDA_DEVICE_VMM_H
#define RF_CUDA_DEVICE_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* How arenas are shared: variable REFIT_IPC. */
enum rf_vmm_wish {
    RF_VMM_IF_NEEDED, /* "auto" or unset: if legacy handles are refused */
    RF_VMM_NEVER,     /* "legacy" */
    RF_VMM_ALWAYS,    /* "vmm" */
};
enum rf_status rf_vmm_wish(enum rf_vmm_wish *out,
                           struct rf_err *err) RF_MUST_CHECK;

/* RF_OK if the rank's device supports it, else RF_ERR_UNSUPPORTED and why. */
enum rf_status rf_vmm_ready(struct rf_err *err) RF_MUST_CHECK;

/* Allocates on the rank's device and rounds *bytes up to whole grains. *fd
 * shares the memory with other processes (close-on-exec, the caller's). The
 * memory lives until it is unmapped everywhere and all its descriptors are
 * closed. */
enum rf_status rf_vmm_alloc(uint64_t *bytes, void **base, int *fd,
                            struct rf_err *err) RF_MUST_CHECK;

/* Maps the memory of another process; the descriptor stays the caller's.
 * `bytes` is the size that rf_vmm_alloc() returned there. */
enum rf_status rf_vmm_map(int fd, uint64_t bytes, void **base,
                          struct rf_err *err) RF_MUST_CHECK;

/* Unmaps memory of either function; the device must be done with it. */
void rf_vmm_unmap(void *base, uint64_t bytes);

#endif

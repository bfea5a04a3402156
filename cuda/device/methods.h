/* What the methods of this folder share. */
#ifndef RF_CUDA_METHODS_H
#define RF_CUDA_METHODS_H

#include <driver_types.h>

#include "common/clock.h"
#include "common/log.h"
#include "transport/method/method.h"
#include "transport/method/ucx_wire.h"

/* The methods; their infos are those of transport/info/method_info.c. */
extern const struct rf_method_ops rf_cuda_method_nccl, rf_cuda_method_ipc,
    rf_cuda_method_nvshmem, rf_cuda_method_ucx;

/* A rank that is stopped after so long without progress says where it is: with
 * whom it was waiting is what is needed to find out why. */
#define RF_STUCK_NS (RF_NS_PER_S)

/* RF_ERR_UNSUPPORTED with why there is no device: no driver, a stub library, a
 * driver too old for the toolkit, no visible device, or a broken stack named by
 * CUDA. */
enum rf_status rf_device_why_none(cudaError_t code, struct rf_err *err);

/* Whether methods can use this node's devices: there are some, and each can be
 * used whole; why not otherwise. */
enum rf_status rf_device_ready(struct rf_err *err) RF_MUST_CHECK;

/* Messages through refit-ucx.so; NULL with why not. */
const struct rf_ucx_wire_ops *rf_cuda_ucx_wire(struct rf_err *err);

/* A line for the worker's log. */
void rf_cuda_log(enum rf_log_level level, const char *fmt, ...) RF_PRINTF(2, 3);

#endif

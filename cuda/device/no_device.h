/* The reason why there is no device. */
#ifndef RF_CUDA_DEVICE_NO_DEVICE_H
#define RF_CUDA_DEVICE_NO_DEVICE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "common/err.h"

/* RF_ERR_UNSUPPORTED with the reason: no driver, a stub library, a driver too
 * old for the toolkit, no visible device, or a broken stack named by CUDA. */
enum rf_status rf_device_why_none(cudaError_t code, struct rf_err *err);

/* The driver's own version, "535.129.03"; empty without NVML. */
void rf_device_driver_version(char *out, size_t size);

#endif

/* In what state a device is, for facts: who else uses it, and what slows it. */
#ifndef RF_CUDA_HEALTH_H
#define RF_CUDA_HEALTH_H

#include "transport/method/module.h"

/* Fills the members of `out` that NVML and the driver know of a CUDA device;
 * what they do not tell stays not known. */
void rf_health_of_device(int cuda_device, struct rf_module_device *out);

#endif

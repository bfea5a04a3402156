/* What the methods of this folder share. */
#ifndef RF_CUDA_DEVICE_METHODS_H
#define RF_CUDA_DEVICE_METHODS_H

#include <driver_types.h>

#include "common/clock.h"
#include "cuda/device/host.h"
#include "transport/method/method.h"
#include "transport/method/ucx_wire.h"

/* The methods, one per file. */
#define X(ID, ops, ...) extern const struct rf_method_ops rf_cuda_method_##ops;
RF_CUDA_METHODS(X)
#undef X

/* A rank that is stopped after so long without progress says where it is: with
 * whom it was waiting is what is needed to find out why. */
#define RF_STUCK_NS (RF_NS_PER_S)

#endif

/* Shared by the methods of cuda/. */
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

/* A rank stopped after so long without progress logs which ranks it waits for,
 * which is needed to find the cause. */
#define RF_STUCK_NS (RF_NS_PER_S)

#endif

/* Services that the worker lends to the module. */
#ifndef RF_CUDA_DEVICE_HOST_H
#define RF_CUDA_DEVICE_HOST_H

#include "common/log.h"
#include "transport/method/module.h"

/* Once, before anything else. */
void rf_cuda_lend(const struct rf_module_host *lent);

/* Messages through refit-ucx.so; NULL with the reason. */
const struct rf_ucx_wire_ops *rf_cuda_ucx_wire(struct rf_err *err);

/* Adds a line to the worker's log. */
void rf_cuda_log(enum rf_log_level level, const char *fmt, ...) RF_PRINTF(2, 3);

#endif

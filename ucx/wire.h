/* Messages between ranks, for refit-cuda.so. Internal to refit-ucx.so. */
#ifndef RF_UCX_WIRE_H
#define RF_UCX_WIRE_H

#include "transport/method/ucx_wire.h"

extern const struct rf_ucx_wire_ops rf_ucx_wire_ops;

#endif

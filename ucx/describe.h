/* What UCX says of one endpoint. Internal to refit-ucx.so. */
#ifndef RF_UCX_DESCRIBE_H
#define RF_UCX_DESCRIBE_H

#include <stdbool.h>

#define RF_UCX_NAMES_BYTES 112

struct rf_ucx_lanes {
    /* Transports and devices ("tcp/lo"), each once, separated by commas; those
     * that map memory of others apart, and those that may carry memory of
     * devices: without TCP, which is beside others for the host's alone. */
    char all[RF_UCX_NAMES_BYTES], mapping[RF_UCX_NAMES_BYTES];
    char device[RF_UCX_NAMES_BYTES];
    bool rma; /* it reaches registered memory without the other's help */
    bool tcp; /* it has nothing but TCP */
};

/* From its own account of itself. */
void rf_ucx_describe(const char *info, struct rf_ucx_lanes *out);

#endif

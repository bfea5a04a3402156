/* UCX's description of one endpoint. Internal to refit-ucx.so. */
#ifndef RF_UCX_DESCRIBE_H
#define RF_UCX_DESCRIBE_H

#include <stdbool.h>

#define RF_UCX_NAMES_BYTES 112

struct rf_ucx_lanes {
    /* Transports and devices ("tcp/lo"), each once, separated by commas.
     * `mapping`: those that map memory of other processes. `device`: those that
     * may carry device memory; without TCP, which beside others carries host
     * memory only. */
    char all[RF_UCX_NAMES_BYTES], mapping[RF_UCX_NAMES_BYTES];
    char device[RF_UCX_NAMES_BYTES];
    bool rma; /* accesses registered memory without the peer's help */
    bool tcp; /* has only TCP */
};

/* Parses the text of ucp_ep_print_info(). */
void rf_ucx_describe(const char *info, struct rf_ucx_lanes *out);

/* Whether `name` is in a comma-separated list, which may begin with '^'. */
bool rf_ucx_is_listed(const char *list, const char *name);

#endif

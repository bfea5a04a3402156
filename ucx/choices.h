/*
 * What UCX chose for endpoints, and telling it to all ranks. Internal to
 * refit-ucx.so.
 */
#ifndef RF_UCX_CHOICES_H
#define RF_UCX_CHOICES_H

#include <ucp/api/ucp.h>

#include "transport/method.h"

#define RF_UCX_NAMES_BYTES 112

/* What UCX says of one endpoint. */
struct rf_ucx_ways {
    /* Transports and devices ("tcp/lo"), each once, separated by commas; those
     * that map memory of others apart, and those that may carry memory of
     * devices: without TCP, which is beside others for the host's alone. */
    char all[RF_UCX_NAMES_BYTES], mapping[RF_UCX_NAMES_BYTES];
    char device[RF_UCX_NAMES_BYTES];
    bool rma; /* it reaches registered memory without the other's help */
    bool tcp; /* it has nothing but TCP */
};

/* --- describe.c ----------------------------------------------------------- */

/* From its own account of itself. */
void rf_ucx_describe(const char *info, struct rf_ucx_ways *out);

/* --- choices.c ------------------------------------------------------------ */

enum rf_status rf_ucx_ask(ucp_ep_h ep, struct rf_ucx_ways *out,
                          struct rf_err *err) RF_MUST_CHECK;
/* Adds a way to what this rank tells: "messages by", "tcp/lo". */
void rf_ucx_tell(struct rf_blob *mine, const char *how, const char *names);
/* Collective: all of the world's ways, counted, in env->registration. */
enum rf_status rf_ucx_publish(const struct rf_method_env *env,
                              const struct rf_blob *mine,
                              struct rf_err *err) RF_MUST_CHECK;

#endif

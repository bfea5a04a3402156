/* Models other than GPT, selected by Megatron-LM's --spec. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_SPEC_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_SPEC_H

#include "coordinator/megatron/megatron_flags.h"

/* The model, a new reference, as a config of its model type with the sizes from
 * the flags; for GPT *out stays as it is. An unknown spec is RF_ERR_USAGE. */
enum rf_status rf_megatron_spec(struct rf_megatron_args *args, json_t **out,
                                struct rf_err *err) RF_MUST_CHECK;

#endif

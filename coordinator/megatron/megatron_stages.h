/* Pipeline stages from Megatron-LM's flags. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_STAGES_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_STAGES_H

#include "coordinator/megatron/megatron_flags.h"

/* Adds "vpp" and "pp_layers" to the training side, which has its "pp", if the
 * flags ask for stages that "pp" alone does not give. */
enum rf_status rf_megatron_stages(const struct rf_megatron_args *args,
                                  json_t *train,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

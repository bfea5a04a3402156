/* A load that sends to other nodes. */
#ifndef RF_WORKER_RANK_LOAD_NETWORK_H
#define RF_WORKER_RANK_LOAD_NETWORK_H

#include "transport/method/method.h"
#include "worker/rank/rank_load.h"

/* A load that sends, and takes what others send: collective over all ranks of
 * the attempt, as it connects them; *out is NULL on those without a load. */
enum rf_status rf_rank_load_sends(const struct rf_load_spec *spec,
                                  const struct rf_method_env *env,
                                  struct rf_rank_load **out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

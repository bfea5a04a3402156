/* A load that reads memory. */
#ifndef RF_WORKER_RANK_LOAD_MEMORY_H
#define RF_WORKER_RANK_LOAD_MEMORY_H

#include "worker/rank/rank_load.h"

/* A load of `memory`, of one of `n_ranks` of this node that have one. In host
 * memory it allocates and touches buffers: shared memory, which is no part of
 * the peaks of a rank. RF_ERR_NOMEM: no room for them. */
enum rf_status rf_rank_load_reads(const struct rf_load_spec *spec,
                                  const struct rf_memory_ops *memory,
                                  uint32_t n_ranks, struct rf_rank_load **out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

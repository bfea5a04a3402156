/*
 * A rank's load: threads that read memory beside a refit, as an engine does
 * that generates meanwhile. Each reads a buffer of its own from end to end,
 * again and again. All buffers of a node are together three times as large as
 * the last cache, so that what is read comes from memory, also where two
 * sockets share them. A thread reads blocks of RF_LOAD_BLOCK_BYTES and counts them.
 */
#ifndef RF_WORKER_RANK_RANK_LOAD_H
#define RF_WORKER_RANK_RANK_LOAD_H

#include <stdint.h>

#include "common/err.h"
#include "planner/scenario/spec_load.h"

struct rf_rank_load;

/* Allocates and touches the buffers of one of `n_ranks` of this node that have
 * a load. They are shared memory, which is no part of the peaks of a rank.
 * RF_ERR_NOMEM: no room for them. */
enum rf_status rf_rank_load_create(const struct rf_load_spec *spec,
                                   uint32_t n_ranks, struct rf_rank_load **out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_rank_load_destroy(struct rf_rank_load *load); /* stopped, or NULL */

/* Starts the threads. On failure some may run: stop it. */
enum rf_status rf_rank_load_start(struct rf_rank_load *load,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Ends the threads that run, each within a block. */
void rf_rank_load_stop(struct rf_rank_load *load);

/* What has been read since it was created; from any thread. */
uint64_t rf_rank_load_bytes(const struct rf_rank_load *load);

/* A paced thread that is late, because it slept too long or something held it
 * up, reads faster until it has caught up with this much time; the rest is
 * lost. */
#define RF_LOAD_CATCH_UP_NS INT64_C(1000000)

/* When a block of a paced thread is due, after one that was due at `due_ns` and
 * begins now; a thread reads a block every `block_ns`. Pure. */
int64_t rf_rank_load_due(int64_t due_ns, int64_t now_ns, int64_t block_ns);

#endif

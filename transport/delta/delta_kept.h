/*
 * Chunks as they came, for ops that forward all of what another op brings: a
 * rank sends them on without encoding anything.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_KEPT_H
#define RF_TRANSPORT_DELTA_DELTA_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/schedule/schedule.h"
#include "transport/codec/codec.h"

struct rf_delta_kept;

/* Whether an op forwards all that `dep` brings. */
bool rf_delta_forwards(const struct rf_op *op, const struct rf_op *dep);

/* `wanted`, which it takes, says for each op of the schedule whether its chunks
 * are kept; they have `room` bytes in all. The schedule must outlive it. NULL:
 * no memory. */
struct rf_delta_kept *rf_delta_kept_create(const struct rf_schedule *schedule,
                                           bool *wanted, size_t room);
void rf_delta_kept_destroy(struct rf_delta_kept *kept); /* NULL is fine */

/* Forgets all chunks. */
void rf_delta_kept_clear(struct rf_delta_kept *kept);

/* Keeps a chunk of `op`, with the bytes `in`, if that is wanted and there is
 * room. */
void rf_delta_kept_add(struct rf_delta_kept *kept, const struct rf_op *op,
                       const struct rf_chunk *chunk, const void *in);

/* The bytes of the chunk that `op` forwards as `chunk`, whose items and bytes
 * are limits and become those of the chunk that came. NULL: there is none, and
 * `chunk` is as before. */
const void *rf_delta_kept_find(const struct rf_delta_kept *kept,
                               const struct rf_op *op, struct rf_chunk *chunk);

#endif

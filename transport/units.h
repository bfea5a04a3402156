/*
 * The copies of a node cut into units of about 1 MiB that any of its ranks may
 * claim, so that work is shared evenly however the plan is shaped.
 *
 * Copies that read the same rows of one source (a column split, replicas) are
 * grouped: a unit reads its part of the source once, front to back, and writes
 * it to all destinations, because strided reads are slow and strided streaming
 * writes are not. Deterministic: every rank of the node makes the same list.
 */
#ifndef RF_TRANSPORT_UNITS_H
#define RF_TRANSPORT_UNITS_H

#include "transport/copy.h"
#include "transport/flow.h"

#define RF_UNIT_BYTES (UINT64_C(1) << 20)

struct rf_copy_units;

/* Cuts the shared copies of `flow` and sets its n_units, n_free and each
 * action's units and parts. */
void rf_copy_units_build(struct rf_flow *flow, struct rf_copy_units **out);
void rf_copy_units_destroy(struct rf_copy_units *units);

/* Runs one claimed unit on the mapped arenas and reports what it completed to
 * `flow`. */
void rf_copy_units_run(const struct rf_copy_units *units, uint32_t unit,
                       struct rf_flow *flow, const struct rf_nodeshm *shm);

#endif

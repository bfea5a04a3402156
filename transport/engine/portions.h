/*
 * The copies of a node, cut into portions of about 1 MiB that any of its ranks
 * may claim, so that work is shared evenly whatever the plan.
 *
 * Copies of the same rows of one source (a column split, replicas) are grouped:
 * a portion reads its part of the source once, front to back, and writes it to
 * all destinations, because strided reads are slow and strided streaming writes
 * are not. Deterministic: all ranks of the node make the same list.
 */
#ifndef RF_TRANSPORT_ENGINE_PORTIONS_H
#define RF_TRANSPORT_ENGINE_PORTIONS_H

#include "transport/codec/codec.h"
#include "transport/engine/flow.h"

#define RF_PORTION_BYTES (UINT64_C(1) << 20)

struct rf_portions;

/* Cuts the shared copies of `flow`; sets its n_portions and n_free, and the
 * portions and parts of each action. `codec`: see rf_coder_of(). */
void rf_portions_build(struct rf_flow *flow, const struct rf_codec *codec,
                       struct rf_portions **out);
void rf_portions_destroy(struct rf_portions *portions);

/* Index of a portion's first op, and the bytes that the portion writes. */
struct rf_portion_about {
    uint32_t op;
    uint64_t bytes;
};
struct rf_portion_about rf_portions_about(const struct rf_portions *portions,
                                          uint32_t portion);

/* Runs one claimed portion on the mapped arenas and reports completed parts to
 * `flow`. Rows that share a source always use streaming stores. */
void rf_portions_run(const struct rf_portions *portions, uint32_t portion,
                     struct rf_flow *flow, const struct rf_node_memory *shm,
                     bool streaming);

#endif

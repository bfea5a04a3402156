/*
 * The messages of method nvshmem's steps, enqueued on streams: puts, and what
 * orders the ranks.
 *
 * Two words of symmetric memory per slot and pair order the ranks. `arrived` is
 * set by the put of the step's last message to a rank, after its bytes and when
 * those of earlier ones are complete: the receiver unpacks when all messages of
 * its step are there. `room` is set by the receiver when a slot is unpacked,
 * for those that put into it next: they wait for it. Values only grow, over all
 * iterations. A step's slot is that of the receiver's own count of steps, which
 * is in the table. All ranks go through their steps in one order, so the first
 * step that somebody waits for can always go on.
 *
 * Where ranks share a device NVSHMEM cannot wait for signals (it supports that
 * with MPS only): there a barrier of all ranks ends each step instead, also in
 * ranks that have no part in it. A barrier comes after all unpacking of earlier
 * steps, so a slot is free two steps later.
 */
#ifndef RF_CUDA_NVSHMEM_NVSHMEM_WIRE_H
#define RF_CUDA_NVSHMEM_NVSHMEM_WIRE_H

#include "cuda/lockstep/phases.h"
#include "cuda/nvshmem/nvshmem_api.h"
#include "cuda/nvshmem/nvshmem_table.h"

/* Puts have a stream of their own, as packing and unpacking have; waiting for
 * arrivals is the first part of what unpacking's stream does. */
enum rf_nvshmem_phase {
    RF_NVSHMEM_PUT = RF_DEVICE_PHASE_OTHERS,
    RF_NVSHMEM_ARRIVE,
};

struct rf_nvshmem_wire {
    const struct rf_nvshmem *api;
    const struct rf_nvshmem_table *table; /* borrowed, like phases */
    const struct rf_phases *phases;
    uint64_t *words;    /* symmetric: [word][slot][rank] */
    uint64_t iteration; /* from 1 */
};

/* Collective; false: the symmetric heap is full. */
bool rf_nvshmem_wire_open(struct rf_nvshmem_wire *wire,
                          const struct rf_nvshmem *api,
                          const struct rf_nvshmem_table *table,
                          const struct rf_phases *phases) RF_MUST_CHECK;
void rf_nvshmem_wire_close(struct rf_nvshmem_wire *wire); /* collective */

/* A turn in which this rank has a step: its messages, behind its packing. */
enum rf_status rf_nvshmem_wire_put(const struct rf_nvshmem_wire *wire,
                                   const struct rf_nvshmem_turn *turn,
                                   struct rf_err *err) RF_MUST_CHECK;
/* A turn in which it has none. */
void rf_nvshmem_wire_pass(const struct rf_nvshmem_wire *wire);

/* Before step `index` is unpacked: all that it receives is there. */
enum rf_status rf_nvshmem_wire_await(const struct rf_nvshmem_wire *wire,
                                     size_t index,
                                     struct rf_err *err) RF_MUST_CHECK;
/* After it: its slot is free for those that put into it next. */
void rf_nvshmem_wire_make_room(const struct rf_nvshmem_wire *wire,
                               size_t index);

#endif

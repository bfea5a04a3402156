/*
 * The messages of method nvshmem's steps, enqueued on streams: puts, and the
 * signals that order the ranks.
 *
 * Two words of symmetric memory per slot and pair order the ranks. The put of a
 * step's last message to a rank sets `arrived`, after its bytes and once those
 * of earlier messages are complete: the receiver unpacks when all messages of
 * its step have arrived. The receiver sets `room` when a slot is unpacked; the
 * next senders into that slot wait for it. Values only grow, over all
 * iterations. A step's slot follows from the receiver's own count of steps,
 * which is in the table. All ranks run their steps in one order, so the first
 * step that any rank waits for can always proceed.
 *
 * If ranks share a device, NVSHMEM cannot wait for signals (it supports that
 * with MPS only): instead a barrier of all ranks ends each step, including
 * ranks without a part in it. A barrier comes after all unpacking of earlier
 * steps, so a slot is free two steps later.
 */
#ifndef RF_CUDA_NVSHMEM_NVSHMEM_WIRE_H
#define RF_CUDA_NVSHMEM_NVSHMEM_WIRE_H

#include "cuda/lockstep/phases.h"
#include "cuda/nvshmem/nvshmem_api.h"
#include "cuda/nvshmem/nvshmem_table.h"

/* Puts have their own stream, as do packing and unpacking; the unpacking stream
 * first waits for arrivals. */
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

/* Enqueues the messages of a turn in which this rank has a step, behind its
 * packing. */
enum rf_status rf_nvshmem_wire_put(const struct rf_nvshmem_wire *wire,
                                   const struct rf_nvshmem_turn *turn,
                                   struct rf_err *err) RF_MUST_CHECK;
/* A turn in which this rank has no step. */
void rf_nvshmem_wire_pass(const struct rf_nvshmem_wire *wire);

/* Before step `index` is unpacked: waits for all that it receives. */
enum rf_status rf_nvshmem_wire_await(const struct rf_nvshmem_wire *wire,
                                     size_t index,
                                     struct rf_err *err) RF_MUST_CHECK;
/* After step `index` is unpacked: frees its slot for the next senders. */
void rf_nvshmem_wire_make_room(const struct rf_nvshmem_wire *wire,
                               size_t index);

#endif

/*
 * Exchanges of one rank over its communicators (nccl_comm.h): each has a group
 * of its own, the node's always first, and its own stream if NCCL keeps that
 * order on several (rf_nccl_keeps_order()).
 *
 * Why an order: before NCCL 2.26.2 the kernels of one group's communicators
 * start one after the other, in the order in which the program first names
 * them. Four ranks whose first peers make a cycle (0 node, 1 world, 3 node, 2
 * world) then deadlock once a message is larger than NCCL's buffers. On any
 * version they do if a device has room for one kernel and starts another one
 * than its peer. Why two streams: traffic inside the node and between nodes uses
 * different links and need not wait for each other.
 */
#ifndef RF_CUDA_NCCL_NCCL_WIRE_H
#define RF_CUDA_NCCL_NCCL_WIRE_H

#include <cuda_runtime_api.h>

#include "cuda/lockstep/steps.h"
#include "cuda/nccl/nccl_comm.h"

enum rf_nccl_path { RF_NCCL_NODE, RF_NCCL_WORLD, RF_NCCL_PATHS };

struct rf_nccl_wire {
    struct rf_nccl_comms *comms; /* borrowed */
    cudaStream_t stream[RF_NCCL_PATHS];
    const struct rf_step *step; /* whose messages are exchanged; borrowed */
    struct rf_bases bases;
    enum rf_nccl_path next; /* the next group to issue; PATHS: all issued */
};

/* Makes the streams; rf_nccl_wire_close() also after a failure. */
enum rf_status rf_nccl_wire_open(struct rf_nccl_wire *wire,
                                 struct rf_nccl_comms *comms,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_nccl_wire_close(struct rf_nccl_wire *wire);

/* Sets the next exchange, the messages of `step`, which it borrows until they
 * are issued; the last one must have been issued. */
void rf_nccl_wire_set(struct rf_nccl_wire *wire, const struct rf_step *step,
                      const struct rf_bases *bases);

/* Issues the groups one after the other, as far as NCCL takes them without
 * waiting. *issued: both groups are on their streams. */
enum rf_status rf_nccl_wire_issue(struct rf_nccl_wire *wire, bool *issued,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The minimum size of each of the two buffers of the first exchanges. */
uint64_t rf_nccl_wire_warm_bytes(const struct rf_method_env *env);

/* Collective: the first exchange of every pair of the plan, a few bytes each,
 * outside the window, so that NCCL connects the pairs then. They leave
 * RF_BASE_SEND and arrive at RF_BASE_RECV. */
enum rf_status rf_nccl_wire_warm_up(struct rf_nccl_wire *wire,
                                    const struct rf_steps *steps,
                                    const struct rf_bases *bases,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * The messages of one pair: one rank's ops to or from one other in one round
 * (cuda/lockstep/steps.h), cut into waves. Both ends go through the same ops in
 * the same order, so their messages match.
 */
#ifndef RF_CUDA_LOCKSTEP_PAIR_H
#define RF_CUDA_LOCKSTEP_PAIR_H

#include "cuda/lockstep/steps.h"

/* From which length runs of bytes are not packed: what `wish`, the text of
 * REFIT_DIRECT_BYTES, says where it is not NULL (0: all are packed), else
 * 4 MiB. Pure. */
#define RF_DIRECT_VARIABLE "REFIT_DIRECT_BYTES"
enum rf_status rf_direct_bytes(const char *wish, uint64_t *out,
                               struct rf_err *err) RF_MUST_CHECK;

/* Parts of packed ops have at most this fraction of a wave's bytes. */
#define RF_PAIR_PARTS 8

/* A run of bytes that goes from memory to memory. */
struct rf_byte_run {
    uint32_t src_mem, dst_mem;
    uint64_t src, dst, bytes;
};

/* Calls `emit` for the parts of `op` of at most `max_bytes` on the wire each,
 * in ascending order of their elements. */
void rf_pair_split(const struct rf_op *op, uint64_t max_bytes,
                   void (*emit)(const struct rf_op *part, void *data),
                   void *data);

/* One direction of one pair in one round, while it is cut into messages. */
struct rf_pair {
    struct rf_steps *steps;
    size_t first_step; /* of the round */
    uint32_t round, peer;
    bool sending;
    uint64_t message_bytes; /* of a wave */
    uint64_t direct_bytes;  /* runs that long are not packed; 0: all are */
    bool staged;            /* see rf_steps_of */
    uint32_t wave;
    uint64_t used; /* of the current wave */
    size_t packed; /* index of its packed message; SIZE_MAX: none */
    struct rf_byte_run last_direct; /* its last message if that is direct */
    size_t after;                   /* of the current op, see rf_step.after */
};

/* Adds an op to the pair's messages, and its copies to the steps; says whether
 * it goes without packing, as the op alone decides (rf_steps_of.direct_bytes).
 */
bool rf_pair_add(struct rf_pair *pair, const struct rf_op *op);

#endif

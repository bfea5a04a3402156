/*
 * The messages of one pair: one rank's ops to or from one peer in one round
 * (cuda/lockstep/steps.h), cut into waves. Both ends walk the same ops in the
 * same order, so their messages match.
 */
#ifndef RF_CUDA_LOCKSTEP_PAIR_H
#define RF_CUDA_LOCKSTEP_PAIR_H

#include "cuda/lockstep/steps.h"
#include "planner/schedule/copy_shape.h"

/* The length from which runs of bytes are not packed: `wish`, the text of
 * REFIT_DIRECT_BYTES, if not NULL (0: all are packed), else 4 MiB. Pure. */
#define RF_DIRECT_VARIABLE "REFIT_DIRECT_BYTES"
enum rf_status rf_direct_bytes(const char *wish, uint64_t *out,
                               struct rf_err *err) RF_MUST_CHECK;

/* A part of a packed op has at most this fraction of a wave's bytes. */
#define RF_PAIR_PARTS 8

/* A run of bytes copied from memory to memory. */
struct rf_byte_run {
    uint32_t src_mem, dst_mem;
    uint64_t src, dst, bytes;
};

/* Calls `emit` for the parts of `op`, each at most `max_bytes` on the wire, in
 * ascending order of their elements. */
void rf_pair_split(const struct rf_op *op, uint64_t max_bytes,
                   void (*emit)(const struct rf_op *part, void *data),
                   void *data);

/* One direction of one pair in one round, while being cut into messages. */
struct rf_pair {
    struct rf_steps *steps;
    size_t first_step; /* of the round */
    uint32_t round, peer;
    bool sending;
    uint64_t message_bytes; /* of a wave */
    uint64_t direct_bytes;  /* runs this long are not packed; 0: all are */
    bool staged;            /* see rf_steps_of */
    uint32_t wave;
    uint64_t used; /* of the current wave */
    size_t packed; /* index of its packed message; SIZE_MAX: none */
    struct rf_byte_run last_direct; /* its last message if that is direct */
    size_t after;                   /* of the current op, see rf_step.after */
};

/* Whether an op goes from memory to memory without packing: no cast, the same
 * runs of at least `least` bytes (0: never) at both ends, and all of them
 * aligned for 16-byte copies. Then *shape is the op's. */
bool rf_pair_is_direct(const struct rf_op *op, uint64_t least,
                       struct rf_copy_shape *shape);

/* Adds an op to the pair's messages, and its copies to the steps. */
void rf_pair_add(struct rf_pair *pair, const struct rf_op *op);

#endif

/*
 * The steps of a lockstep method (NCCL, NVSHMEM, UCX) on one rank: the bytes it
 * packs, exchanges with each peer, and unpacks, in an order that all ranks
 * share. Pure; made once per plan.
 *
 * A step is (round, wave). Between two ranks, the ops of a round are packed in
 * ascending id, each at a multiple of RF_SEGMENT_ALIGN, into messages; message
 * w of a round travels in wave w. A rank's sends and receives in a round are
 * cut into as few waves as its bucket allows, and as leave a step about a
 * quarter of all that the rank packs or unpacks: while one step travels, its
 * neighbours are packed and unpacked. A pair uses the higher wave count of its
 * two ranks, so all of a rank's messages of a round end together, whatever
 * their sizes. Ops larger than a part of a message are split. Both ends compute
 * the same cuts from the same ops, so the wire carries no description of them.
 *
 * Long runs of bytes that are whole at both ends need no packing: if the caller
 * asks for it (rf_steps_of.direct_bytes), each is a separate message from
 * memory to memory. It counts in its wave like packed bytes, but takes no room
 * in a slot; or, staged, it arrives in the receiver's slot and is unpacked
 * there. Messages of one pair have the same order at both ends.
 *
 * Rounds do not wait for each other as a whole: each step has the number of
 * earlier steps that must have arrived (rf_step.after).
 */
#ifndef RF_CUDA_LOCKSTEP_STEPS_H
#define RF_CUDA_LOCKSTEP_STEPS_H

#include "cuda/device/tiles.h"

#define RF_SEGMENT_ALIGN 256

/* Memories by index in rf_bases for these steps. */
enum rf_step_base {
    RF_BASE_TRAIN,
    RF_BASE_INFER,
    RF_BASE_STAGE,
    RF_BASE_SEND, /* the step's slot of the send buffer */
    RF_BASE_RECV,
    RF_STEP_BASES,
};

struct rf_message {
    uint32_t peer;   /* world rank */
    uint32_t base;   /* RF_BASE_SEND or RF_BASE_RECV: packed; else the memory
                        it leaves or reaches directly */
    uint64_t offset; /* from the base */
    uint64_t bytes;
};

struct rf_step {
    uint32_t round;
    size_t after; /* number of first steps that must be unpacked, and their
                     sends gone, before this one is packed */
    struct rf_copies pack, unpack;
    struct rf_message *sends, *recvs;
    size_t n_sends, sends_capacity, n_recvs, recvs_capacity;
};

struct rf_steps {
    struct rf_step *at;
    size_t n, capacity;
    uint64_t send_slot_bytes, recv_slot_bytes; /* largest step */
    uint64_t sent_bytes, received_bytes;       /* payload of an iteration */
    uint32_t cast;                             /* enum rf_cast of the casts */
};

/* The step of that index; makes the missing steps up to it, with `round`. */
struct rf_step *rf_step_at(struct rf_steps *steps, size_t index,
                           uint32_t round);

/* First free offset, aligned, of the slot that has the packed ones of these
 * messages. */
uint64_t rf_slot_end(const struct rf_message *messages, size_t n);

/* Whether a rank packs and unpacks, not only one of the two. */
bool rf_steps_copy_both_ways(const struct rf_steps *steps);

void rf_steps_free(struct rf_steps *steps);

/* "1, 4": the peers of a step's messages, for texts. */
void rf_step_peers(const struct rf_step *step, char *out, size_t size);

#endif

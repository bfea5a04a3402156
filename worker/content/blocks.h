/*
 * A rank's side cut into blocks: parts of one piece in one logical tensor, each
 * of about the size that is read from a file, or copied to a device, at once.
 * Pure.
 */
#ifndef RF_WORKER_CONTENT_BLOCKS_H
#define RF_WORKER_CONTENT_BLOCKS_H

#include "worker/content/runs.h"

struct rf_block {
    uint32_t piece; /* of the rank's layout */
    uint32_t item;  /* bytes of an element */
    struct rf_box box;
    uint64_t bytes;
};

/* All pieces of a rank's side, in their order, in blocks of `most` bytes, or of
 * one index of the outermost dimension where that is more. Freed with free();
 * NULL where there is none. */
struct rf_block *rf_blocks_of(const struct rf_plan *plan, enum rf_side side,
                              uint32_t rank, uint64_t most, size_t *n_out);

/* Starts a walk over the block's runs; their offsets count from element 0 of
 * the block, which is *offset bytes behind that of its piece. */
void rf_block_walk(const struct rf_block *block, const struct rf_family *family,
                   const struct rf_piece *piece,
                   const uint64_t stride[RF_BOX_DIMS], struct rf_run_walk *walk,
                   uint64_t *offset);

/* One past the block's last element, row-major in the logical tensor. */
uint64_t rf_block_end(const struct rf_block *block,
                      const struct rf_family *family);

#endif

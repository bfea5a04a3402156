/*
 * How packing and NCCL share a device. Pure.
 *
 * A block of a copy kernel takes half of a multiprocessor's registers (512
 * threads at 64), a block of NCCL's kernels more than the other half. The
 * device spreads a grid over all multiprocessors before it puts a second block
 * on any. So NCCL gets only the multiprocessors without a packing block, and a
 * packing grid has one block for each of its own multiprocessors.
 *
 * NCCL wants a multiprocessor per channel: at most 32 for sends and receives on
 * NVLink, in each of two communicators. The rest, but never less than half, is
 * for packing and unpacking. Where a rank does both, they run at the same time
 * and get half of it each: 68 of an H100's 132, so 34 blocks each.
 */
#ifndef RF_CUDA_DEVICE_SM_SHARE_H
#define RF_CUDA_DEVICE_SM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* Multiprocessors for packing and unpacking together. If `wish`, the text of
 * REFIT_PACK_SMS, is not NULL, it sets them: from 2 to all. */
#define RF_SHARE_VARIABLE "REFIT_PACK_SMS"

/* Blocks of a packing or an unpacking grid; `both`: there are grids of both
 * kinds. */
enum rf_status rf_sm_share_blocks(uint32_t processors, bool both,
                                  const char *wish, uint32_t *out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * How packing shares a device with NCCL. Pure.
 *
 * A block of a copy kernel takes half of a multiprocessor's registers (512
 * threads at 64), a block of NCCL's kernels more than the other half, and the
 * device spreads a grid over all multiprocessors before it puts a second block
 * on any. So what packing leaves to NCCL are the multiprocessors for which it
 * has no block at all, and its grids count one block for each of its own.
 *
 * NCCL wants a multiprocessor per channel: at most 32 for sends and receives on
 * NVLink, in each of two communicators. What is left, but never less than half,
 * is for packing and unpacking, which run at once and get half of it each: 68
 * of an H100's 132, so 34 blocks each with 64 KiB in flight. That is 2.1 MiB,
 * while the memory of an H200 takes about 1.7 MB to saturate.
 */
#ifndef RF_CUDA_DEVICE_SM_SHARE_H
#define RF_CUDA_DEVICE_SM_SHARE_H

#include <stdint.h>

#include "common/err.h"

/* Multiprocessors for packing and unpacking together, which `wish`, the text of
 * REFIT_PACK_SMS, sets where it is not NULL: from 2 to all of them. */
#define RF_SHARE_VARIABLE "REFIT_PACK_SMS"

/* Blocks of a grid that packs or that unpacks. */
enum rf_status rf_sm_share_blocks(uint32_t processors, const char *wish,
                                  uint32_t *out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif

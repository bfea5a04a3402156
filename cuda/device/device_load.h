/*
 * A load in device memory: copies inside the device, on a stream of their own,
 * as a decoding engine reads its weights and caches. It has never run on a GPU.
 */
#ifndef RF_CUDA_DEVICE_DEVICE_LOAD_H
#define RF_CUDA_DEVICE_DEVICE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* What a step copies: some 14 µs of an H200's 4.8 TB/s. */
#define RF_DEVICE_LOAD_BYTES (UINT64_C(32) << 20)

/* Members of rf_memory_cuda. A load is for one thread, any but for its
 * creation. */
enum rf_status rf_device_load_create(void **out,
                                     struct rf_err *err) RF_MUST_CHECK;
/* Waits for the copy before the last, if there is one, which *ended says, and
 * enqueues a copy of RF_DEVICE_LOAD_BYTES. So the last two before a pause are
 * those that the first two after it tell. */
enum rf_status rf_device_load_step(void *load, bool *ended,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_device_load_destroy(void *load); /* NULL is fine */

#endif

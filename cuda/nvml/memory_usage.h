/*
 * Device memory use of a rank, from three sources: the size of its arenas, the
 * free memory that cudaMemGetInfo lost since the context was made, and NVML's
 * report on the device and its processes. A thread samples NVML from
 * rf_memory_usage_have_context() to rf_memory_usage_end().
 * rf_memory_usage_note() samples everything; the data thread calls it outside
 * timed windows.
 */
#ifndef RF_CUDA_NVML_MEMORY_USAGE_H
#define RF_CUDA_NVML_MEMORY_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/method/module.h"

/* Call before this process has a context on the device: memory in use then
 * belongs to others. */
void rf_memory_usage_begin(int cuda_device);
/* Call just after the context was made; starts the thread. */
void rf_memory_usage_have_context(void);

/* Pauses samples of NVML while a probe holds buffers that are no part of the
 * refit. */
void rf_memory_usage_pause(bool paused);

/* Samples everything, with the arena bytes now. */
void rf_memory_usage_note(uint64_t arena_bytes);

/* In use by this process now: NVML's figure for it, else the memory that the
 * runtime lost since our context. */
uint64_t rf_memory_usage_now(void);

/* Stops sampling; returns the figures so far. May be called again. */
void rf_memory_usage_end(struct rf_module_usage *out);

#endif

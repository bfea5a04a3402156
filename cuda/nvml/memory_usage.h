/*
 * How much device memory a rank takes, from three sources: what its arenas
 * have, what cudaMemGetInfo lost since the context was made, and what NVML
 * reports of the device and its processes. NVML is sampled from a thread of its
 * own from rf_memory_usage_begin() to rf_memory_usage_end(); everything is
 * sampled at rf_memory_usage_note(), which the data thread calls outside timed
 * windows.
 */
#ifndef RF_CUDA_NVML_MEMORY_USAGE_H
#define RF_CUDA_NVML_MEMORY_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/method/module.h"

/* Before this process has a context on the device: what is in use then is
 * somebody else's. */
void rf_memory_usage_begin(int cuda_device);
/* Just after the context was made. */
void rf_memory_usage_have_context(void);

/* While a probe has buffers that are no part of the refit. */
void rf_memory_usage_pause(bool paused);

/* Arena bytes now. */
void rf_memory_usage_note(uint64_t arena_bytes);

/* In use by this process now, by its own figure or else by what the runtime
 * lost since our context. */
uint64_t rf_memory_usage_now(void);

/* Stops sampling; the figures so far. May be called again. */
void rf_memory_usage_end(struct rf_module_usage *out);

#endif

/*
 * The device's clock: CUDA events, which a stream stamps when it reaches them.
 * They time a step's phases and the whole iteration; the caller keeps the
 * host's clock (worker/rank/attempt.c).
 */
#ifndef RF_CUDA_DEVICE_EVENTS_H
#define RF_CUDA_DEVICE_EVENTS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Nanoseconds between two completed events of this device; 0 if either was
 * never recorded. For an event recorded again, the last record counts. */
int64_t rf_events_ns(cudaEvent_t begin, cudaEvent_t end);

/* NULL is fine. Those of an abandoned device stay (rf_device_abandon()). */
void rf_event_free(cudaEvent_t event);
void rf_stream_free(cudaStream_t stream);

#endif

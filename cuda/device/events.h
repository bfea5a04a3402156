/*
 * What the device's own clock says: CUDA events, which a stream stamps when it
 * reaches them. A step's phases and the whole of an iteration are timed so; the
 * host's clock is the caller's (worker/rank/attempt.c).
 */
#ifndef RF_CUDA_DEVICE_EVENTS_H
#define RF_CUDA_DEVICE_EVENTS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Nanoseconds between two events of this device that are complete; 0 where one
 * was never recorded. Of events recorded again the last record counts. */
int64_t rf_events_ns(cudaEvent_t begin, cudaEvent_t end);

/* NULL is fine. */
void rf_event_free(cudaEvent_t event);
void rf_stream_free(cudaStream_t stream);

#endif

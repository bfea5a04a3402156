/* The device's clock. See events.h. A failure is a time of 0, never an error: a
 * lost measurement must not fail a complete refit. */
#include "cuda/device/events.h"

#include "common/clock.h"
#include "cuda/device/device.h"

int64_t rf_events_ns(cudaEvent_t begin, cudaEvent_t end)
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, begin, end) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return (int64_t)((double)ms * RF_NS_PER_MS);
}

void rf_event_free(cudaEvent_t event)
{
    if (event != NULL && !rf_device_abandoned()) {
        cudaEventDestroy(event);
    }
}

void rf_stream_free(cudaStream_t stream)
{
    if (stream != NULL && !rf_device_abandoned()) {
        cudaStreamDestroy(stream);
    }
}

/*
 * See device_load.h. The buffers are together larger than a last cache (126 MB
 * on B200), and two copies are enqueued, so that the device never waits for the
 * host.
 */
#include "cuda/device/device_load.h"

#include <stdlib.h>

#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"

#define BLOCKS ((size_t)4) /* of each of both buffers */
#define AT_ONCE 2

struct device_load {
    unsigned char *memory; /* what is read, then what is written */
    cudaStream_t stream;
    cudaEvent_t ends[AT_ONCE];
    uint64_t steps;
};

enum rf_status rf_device_load_create(void **out, struct rf_err *err)
{
    const size_t bytes = 2 * BLOCKS * RF_DEVICE_LOAD_BYTES;
    struct device_load *load = rf_xcalloc(1, sizeof(*load));
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out, cudaMalloc((void **)&load->memory, bytes));
    RF_CUDA_TRY(err, out, cudaMemset(load->memory, 1, bytes));
    status = rf_device_stream(RF_STREAM_COPIES, &load->stream, err);
    for (size_t i = 0; i < AT_ONCE && status == RF_OK; i++) {
        RF_CUDA_TRY(err, out,
                    cudaEventCreateWithFlags(&load->ends[i],
                                             cudaEventDisableTiming |
                                                 cudaEventBlockingSync));
    }
out:
    if (status != RF_OK) {
        rf_err_wrap(err, "a load in device memory");
        rf_device_load_destroy(load);
        load = NULL;
    }
    *out = load;
    return status;
}

enum rf_status rf_device_load_step(void *data, bool *ended, struct rf_err *err)
{
    struct device_load *load = data;
    unsigned char *from =
        load->memory + load->steps % BLOCKS * RF_DEVICE_LOAD_BYTES;
    const cudaEvent_t end = load->ends[load->steps % AT_ONCE];
    RF_CUDA_CHECK(err, cudaSetDevice(rf_device_index())); /* of this thread */
    *ended = load->steps >= AT_ONCE;
    if (*ended) {
        RF_CUDA_CHECK(err, cudaEventSynchronize(end));
    }
    RF_CUDA_CHECK(err, cudaMemcpyAsync(from + BLOCKS * RF_DEVICE_LOAD_BYTES,
                                       from, RF_DEVICE_LOAD_BYTES,
                                       cudaMemcpyDeviceToDevice, load->stream));
    RF_CUDA_CHECK(err, cudaEventRecord(end, load->stream));
    load->steps++;
    return RF_OK;
}

void rf_device_load_destroy(void *data)
{
    struct device_load *load = data;
    if (load == NULL) {
        return;
    }
    for (size_t i = 0; i < AT_ONCE; i++) {
        rf_event_free(load->ends[i]);
    }
    rf_stream_free(load->stream);
    if (load->memory != NULL && !rf_device_abandoned()) {
        cudaFree(load->memory);
    }
    free(load);
}

/*
 * Internals of the fake CUDA runtime, for the other fakes.
 *
 * Device addresses lie in a reserved range that the host cannot touch; the
 * bytes are mapped a fixed distance away, where only the fakes look. Code that
 * dereferences a device pointer on the host therefore crashes, as it would with
 * a device.
 */
#ifndef RF_TESTS_FAKE_CUDA_H
#define RF_TESTS_FAKE_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* The host address of a device address's bytes; host addresses stay as they
 * are. */
void *fake_cuda_shadow(const void *device);

/* Whether [device, device + bytes) lies inside one live allocation. */
bool fake_cuda_is_device(const void *device, size_t bytes);

/* Bytes that this process has allocated, and whether it chose a device. */
size_t fake_cuda_used(void);
bool fake_cuda_has_context(void);

/* Whether every stream of the process is idle; waits until it is. */
bool fake_cuda_idle(void);
void fake_cuda_drain(void);

/* Runs `task` on the stream's thread after the tasks queued there; at once for
 * the NULL stream. */
void fake_cuda_enqueue(cudaStream_t stream, void (*task)(void *data),
                       void *data);

/* Adds a line to the trace (fake_trace.c); the number of a stream in it, 0 for
 * the NULL stream. */
void fake_cuda_trace(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
unsigned fake_cuda_stream_number(cudaStream_t stream);

/* Environment variable `variable`, such as FAKE_CUDA_FAIL, names a call and its
 * count: "cudaMalloc:3:2" makes the third cudaMalloc return 2. Returns that
 * code when this is the call, else 0. Thread safe. */
int fake_cuda_injected(const char *variable, const char *call);

#endif

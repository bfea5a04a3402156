/*
 * NVSHMEM's host library through dlopen. Its headers are C++ and its usual
 * start-up code is in a device archive, so this file declares the few entry
 * points that puts from the host need, after the public headers of NVSHMEM 3
 * (unique-ID bootstrap, version 1 structures).
 */
#ifndef RF_CUDA_NVSHMEM_NVSHMEM_API_H
#define RF_CUDA_NVSHMEM_NVSHMEM_API_H

#include <driver_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define RF_NVSHMEM_ID_BYTES 128
#define RF_NVSHMEM_ATTR_BYTES 144

struct rf_nvshmem_id {
    int version;
    char opaque[RF_NVSHMEM_ID_BYTES - sizeof(int)];
};

struct rf_nvshmem_uid_args {
    int version;
    struct rf_nvshmem_id *id; /* must outlive initialisation */
    int rank, ranks;
};

struct rf_nvshmem_attr {
    int version;
    void *mpi_comm;
    struct {
        int version;
        struct rf_nvshmem_uid_args uid;
        char padding[96];
    } args;
};
_Static_assert(sizeof(struct rf_nvshmem_uid_args) == 24, "public ABI");
_Static_assert(sizeof(struct rf_nvshmem_attr) == RF_NVSHMEM_ATTR_BYTES,
               "public ABI");

#define RF_NVSHMEM_VERSION(size) ((1 << 16) + (int)(size))
#define RF_NVSHMEM_INIT_WITH_UNIQUEID (1u << 3)
#define RF_NVSHMEM_SIGNAL_SET 9
#define RF_NVSHMEM_CMP_GE 5

#define RF_NVSHMEM_FUNCTIONS(X)                                                \
    X(nvshmemx_get_uniqueid, int, (struct rf_nvshmem_id *))                    \
    X(nvshmemx_hostlib_init_attr, int, (unsigned, struct rf_nvshmem_attr *))   \
    X(nvshmemx_hostlib_finalize, void, (void))                                 \
    X(nvshmem_malloc, void *, (size_t))                                        \
    X(nvshmem_calloc, void *, (size_t, size_t))                                \
    X(nvshmem_free, void, (void *))                                            \
    X(nvshmemx_buffer_register, int, (void *, size_t))                         \
    X(nvshmemx_buffer_unregister, int, (void *))                               \
    X(nvshmemx_putmem_nbi_on_stream, void,                                     \
      (void *, const void *, size_t, int, cudaStream_t))                       \
    X(nvshmemx_putmem_signal_on_stream, void,                                  \
      (void *, const void *, size_t, uint64_t *, uint64_t, int, int,           \
       cudaStream_t))                                                          \
    X(nvshmemx_signal_op_on_stream, void,                                      \
      (uint64_t *, uint64_t, int, int, cudaStream_t))                          \
    X(nvshmemx_signal_wait_until_on_stream, void,                              \
      (uint64_t *, int, uint64_t, cudaStream_t))                               \
    X(nvshmemx_quiet_on_stream, void, (cudaStream_t))                          \
    X(nvshmemx_barrier_all_on_stream, void, (cudaStream_t))

struct rf_nvshmem {
#define X(name, result, args) result(*name) args;
    RF_NVSHMEM_FUNCTIONS(X)
#undef X
};

/* The table, or NULL with the reason. */
const struct rf_nvshmem *rf_nvshmem_load(struct rf_err *err);

/* A loaded library can be started only once: the first call starts it and
 * returns its error, further calls only count, and the last stop ends it.
 * Collective, from one thread. */
int rf_nvshmem_start(struct rf_nvshmem_attr *attr);
bool rf_nvshmem_started(void);
void rf_nvshmem_stop(void);

#endif

/*
 * The UCX context of this process, and arenas allocated by UCX, which other
 * ranks of the node can map where UCX supports it (POSIX segments and XPMEM;
 * System V is left out). Keys belong to one ucp context, so arenas and
 * everything opened over them share one while any of them lives. Internal to
 * refit-ucx.so.
 */
#ifndef RF_UCX_LIBRARY_H
#define RF_UCX_LIBRARY_H

#include <ucp/api/ucp.h>

#include "transport/method/method.h"

/* Bytes that UCX reads from a TCP connection at once, unless
 * UCX_TCP_RX_SEG_SIZE is set. */
#define RF_UCX_TCP_SEGMENT "256k"
/* Socket buffers of a connection at each end, unless UCX_TCP_SNDBUF and
 * UCX_TCP_RCVBUF are set. Left to the system they grow to megabytes, which
 * leave the cache before UCX reads them: a third slower here (make bench-ucx).
 * This size is enough for 5 GB/s with a round trip of 0.1 ms. */
#define RF_UCX_TCP_BUFFER "512k"

/* UCX ends the process if it lacks descriptors or cannot start its thread. */
#define RF_UCX_DESCRIPTORS 16
#define RF_UCX_THREADS 1

struct rf_ucx_arena;

/* Uses of UCX; each has a context with its own features. */
enum rf_ucx_use {
    RF_UCX_CARRY, /* ops of the host methods' engine (carrier.h) */
    RF_UCX_WIRE,  /* tagged messages (transport/method/ucx_wire.h) */
    RF_UCX_USES,
};

struct rf_ucx_library {
    enum rf_ucx_use use;
    ucp_context_h context;
    uint32_t users;
    bool stuck; /* UCX cannot cancel the remaining requests: everything stays
                   until the process ends */
    struct rf_ucx_arena *arenas;
};

/* Adds a user. `n_ranks`: ranks of the world, for UCX's estimates. */
enum rf_status rf_ucx_library_take(enum rf_ucx_use use, uint32_t n_ranks,
                                   struct rf_ucx_library **out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_library_give(struct rf_ucx_library *library); /* NULL is fine */

/* The UCX memory handle of an arena: existing if UCX allocated the arena,
 * otherwise newly registered. */
enum rf_status rf_ucx_register(struct rf_ucx_library *library,
                               enum rf_memory_kind kind,
                               const struct rf_arena *arena, ucp_mem_h *out,
                               struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_deregister(struct rf_ucx_library *library, ucp_mem_h memory);

static inline ucs_memory_type_t rf_ucx_memory_type(enum rf_memory_kind kind)
{
    return kind == RF_DEVICE_MEMORY ? UCS_MEMORY_TYPE_CUDA
                                    : UCS_MEMORY_TYPE_HOST;
}

extern const struct rf_arena_ops rf_ucx_arenas;

/* "UCX cannot WHAT: why". */
enum rf_status rf_ucx_failed(const char *what, ucs_status_t why,
                             struct rf_err *err);

#endif

/*
 * UCX itself in this process, and arenas that it allocates: other ranks of the
 * node can reach those through it (System V's segments left out, POSIX's and
 * XPMEM's), where it has such a way. Keys name memory of one ucp context, so
 * arenas and all that is opened over them share one, as long as any of them
 * lives. Internal to refit-ucx.so.
 */
#ifndef RF_UCX_LIBRARY_H
#define RF_UCX_LIBRARY_H

#include <ucp/api/ucp.h>

#include "transport/method/method.h"

/* What UCX takes from a TCP connection at once, unless UCX_TCP_RX_SEG_SIZE says
 * otherwise. */
#define RF_UCX_TCP_SEGMENT "256k"
/* What the system keeps of a connection at each end, unless UCX_TCP_SNDBUF and
 * UCX_TCP_RCVBUF say otherwise. As much as it likes is megabytes, which leave
 * the cache before UCX takes them: a third slower here (make bench-ucx). It is
 * enough for 5 GB/s where a round trip takes 0.1 ms. */
#define RF_UCX_TCP_BUFFER "512k"

/* Without some descriptors left, or where its thread cannot start, UCX ends the
 * process. */
#define RF_UCX_DESCRIPTORS 16
#define RF_UCX_THREADS 1

struct rf_ucx_arena;

/* What for: each has a context with features of its own. */
enum rf_ucx_use {
    RF_UCX_CARRY, /* ops of the host methods' engine (carrier.h) */
    RF_UCX_WIRE,  /* tagged messages (transport/method/ucx_wire.h) */
    RF_UCX_USES,
};

struct rf_ucx_library {
    enum rf_ucx_use use;
    ucp_context_h context;
    uint32_t users;
    bool stuck; /* requests are left that UCX cannot take back: everything
                   stays as it is until the process ends */
    struct rf_ucx_arena *arenas;
};

/* One more user. `n_ranks` is how many the world has, for UCX's counts. */
enum rf_status rf_ucx_library_take(enum rf_ucx_use use, uint32_t n_ranks,
                                   struct rf_ucx_library **out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_library_give(struct rf_ucx_library *library); /* NULL is fine */

/* Memory at which UCX can be pointed: that of an arena it has allocated, or of
 * any other, which it registers. */
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

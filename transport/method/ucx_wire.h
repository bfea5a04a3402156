/*
 * Messages between ranks through UCX, for methods that pack by themselves:
 * refit-ucx.so's part of method ucx-cuda, which is in refit-cuda.so. All calls
 * but probe() come from a rank's data thread.
 *
 * Messages from one rank to another match in the order in which both ends ask
 * for them, whatever their sizes and however they arrive. Both say the same
 * size.
 */
#ifndef RF_TRANSPORT_METHOD_UCX_WIRE_H
#define RF_TRANSPORT_METHOD_UCX_WIRE_H

#include "transport/method/method.h"

struct rf_ucx_wire;

/* What messages leave and reach: known before, so that it is registered once.
 * Entries of 0 bytes are fine. */
struct rf_ucx_wire_memory {
    enum rf_memory_kind kind;
    const struct rf_arena *at;
    size_t n;
};

struct rf_ucx_wire_ops {
    /* RF_OK, or RF_ERR_UNSUPPORTED with why UCX cannot reach such memory. */
    enum rf_status (*probe)(enum rf_memory_kind kind, struct rf_err *err);
    /* Collective: ways between all ranks that have ops with each other in
     * env->schedule, and what UCX chose for them in env->registration. A
     * failure leaves no message under way that has bytes. */
    enum rf_status (*open)(const struct rf_method_env *env,
                           const struct rf_ucx_wire_memory *memory,
                           struct rf_ucx_wire **out, struct rf_err *err);
    void (*start)(struct rf_ucx_wire *wire); /* an iteration */
    /* `*left` counts what is not complete: raised here, lowered by progress()
     * or at once. What fails is told by progress(). */
    void (*send)(struct rf_ucx_wire *wire, uint32_t rank, const void *from,
                 uint64_t bytes, uint32_t *left);
    void (*receive)(struct rf_ucx_wire *wire, uint32_t rank, void *to,
                    uint64_t bytes, uint32_t *left);
    enum rf_status (*progress)(struct rf_ucx_wire *wire, bool *worked,
                               struct rf_err *err);
    /* When all of this rank's messages are complete, beside progress() until
     * *done: the others need this rank no more. */
    void (*end)(struct rf_ucx_wire *wire, bool *done);
    /* UCX has no way to take requests back: all stays as it is until the
     * process ends, memory included. */
    void (*abort)(struct rf_ucx_wire *wire);
    void (*close)(struct rf_ucx_wire *wire); /* NULL is fine */
};

#endif

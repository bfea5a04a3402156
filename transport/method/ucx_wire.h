/*
 * Messages between ranks through UCX, for methods that do their own packing:
 * refit-ucx.so's part of method ucx-cuda, which is in refit-cuda.so. All calls
 * but probe() come from a rank's data thread.
 *
 * Messages from one rank to another match in the order of the calls on both
 * ends, whatever their sizes and order of arrival. Both ends give the same
 * size.
 */
#ifndef RF_TRANSPORT_METHOD_UCX_WIRE_H
#define RF_TRANSPORT_METHOD_UCX_WIRE_H

#include "transport/method/method.h"

struct rf_ucx_wire;

/* Memory of messages, given in advance so that it is registered once. Entries
 * of 0 bytes are fine. */
struct rf_ucx_wire_memory {
    enum rf_memory_kind kind;
    const struct rf_arena *at;
    size_t n;
};

struct rf_ucx_wire_ops {
    /* RF_OK, or RF_ERR_UNSUPPORTED with why UCX cannot access such memory. */
    enum rf_status (*probe)(enum rf_memory_kind kind, struct rf_err *err);
    /* Collective: connects all ranks that have ops with each other in
     * env->schedule; env->registration gets UCX's choices. After a failure no
     * message with bytes is in flight. */
    enum rf_status (*open)(const struct rf_method_env *env,
                           const struct rf_ucx_wire_memory *memory,
                           struct rf_ucx_wire **out, struct rf_err *err);
    void (*start)(struct rf_ucx_wire *wire); /* an iteration */
    /* `*left` counts incomplete messages: raised here, lowered by progress() or
     * at once. progress() reports failures. */
    void (*send)(struct rf_ucx_wire *wire, uint32_t rank, const void *from,
                 uint64_t bytes, uint32_t *left);
    void (*receive)(struct rf_ucx_wire *wire, uint32_t rank, void *to,
                    uint64_t bytes, uint32_t *left);
    enum rf_status (*progress)(struct rf_ucx_wire *wire, bool *worked,
                               struct rf_err *err);
    /* Called with progress() once all of this rank's messages are complete;
     * *done: the others no longer need this rank. */
    void (*end)(struct rf_ucx_wire *wire, bool *done);
    /* UCX cannot cancel requests: everything, memory included, stays until the
     * process ends. */
    void (*abort)(struct rf_ucx_wire *wire);
    void (*close)(struct rf_ucx_wire *wire); /* NULL is fine */
};

#endif

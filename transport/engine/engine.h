/*
 * What the host methods share: an iteration is a flow of copies (run here) and
 * of sends and receives (run by a *carrier*: sockets, files). A method is a way
 * to route each op plus a carrier. Internal to transport/.
 */
#ifndef RF_TRANSPORT_ENGINE_ENGINE_H
#define RF_TRANSPORT_ENGINE_ENGINE_H

#include "transport/engine/flow.h"
#include "transport/engine/portions.h"
#include "transport/method/method.h"

struct rf_engine;

#define RF_ENGINE_NAP_MS 5

/* Something the engine's epoll watches, edge-triggered. */
struct rf_watch {
    void (*on_event)(struct rf_watch *watch, uint32_t events);
};

/* `start` and `nap_ms` may be NULL. */
struct rf_carrier_ops {
    /* Before ranks meet: what must be told as a port; 0: nothing. *carrier is
     * what the policy has `made`. */
    enum rf_status (*prepare)(struct rf_engine *engine, void **carrier,
                              uint16_t *port, struct rf_err *err);
    /* After they have met; may block within the deadline. */
    enum rf_status (*open)(void *carrier, struct rf_err *err);
    enum rf_status (*start)(void *carrier, struct rf_err *err);
    /* An action of this rank may run now. */
    void (*send)(void *carrier, uint32_t action);
    void (*admit)(void *carrier, uint32_t action);
    /* Moves on without blocking for about a millisecond at most. */
    enum rf_status (*work)(void *carrier, bool *worked, struct rf_err *err);
    /* Whether nothing is left to send to others once our actions are complete.
     */
    bool (*idle)(void *carrier);
    /* Asked just before sleep: after how many milliseconds it must be asked
     * again if no event comes; NULL: RF_ENGINE_NAP_MS. */
    int (*nap_ms)(void *carrier);
    void (*close)(void *carrier);
};

/* What makes a method out of the engine. */
struct rf_copy_engine_policy {
    /* How ops are carried out inside a rank, between ranks of a node, and
     * between nodes; the same on every rank of a node. */
    enum rf_route inside, near, far;
    /* Fills `nothing` (by op index, all false): which own copies need not be
     * made. NULL: all are made. */
    void (*mark_nothing)(const struct rf_engine *engine, bool *nothing);
    /* Tells `engine->shm` where memories of the node's ranks are (with
     * rf_node_memory_adopt). NULL: it maps them itself. */
    void (*attach)(const struct rf_engine *engine);
    const struct rf_carrier_ops *carrier; /* NULL: every op is a copy */
    void *made; /* the carrier, if there is one before `prepare`; the engine
                   closes it in any case */
};

/* Where a destination piece of this rank lives. */
struct rf_engine_place {
    const uint8_t *base; /* NULL: in the arena */
    uint64_t stride[RF_BOX_DIMS];
};

struct rf_engine {
    const struct rf_method_env *env;
    const struct rf_carrier_ops *carrier_ops; /* NULL: none */
    void *carrier;
    enum rf_route *routes; /* by op index */
    bool *nothing; /* by op index: an own copy that moves nothing, or NULL */
    struct rf_engine_place *places; /* by piece, or NULL */
    struct rf_flow *flow;
    struct rf_portions *portions;
    struct rf_node_memory *shm;
    int epoll;
    bool watches_sockets;
    struct rf_watch bell;
    struct rf_engine_death *deaths; /* watches of the peers' ends */
    uint32_t dead_rank;             /* RF_NONE: none */
    /* this rank's actions */
    uint32_t *first; /* those that wait for nothing, in order */
    uint32_t n_first;
    uint32_t n_own, own_left; /* copies, sends and receives of an iteration */
    uint32_t *copies;         /* own copies that may run, a ring of n_own */
    uint64_t copies_in, copies_out;
    uint64_t copy_at; /* items of the front one already copied */
    struct rf_copy_shape *copy_shapes;     /* of own copies, by action */
    uint64_t copied_sent, copied_received; /* bytes by copies, an iteration */
    struct rf_phase_times times;
};

/* The hooks of methods. `*state` becomes the engine. */
enum rf_status rf_engine_open(const struct rf_method_env *env,
                              const struct rf_copy_engine_policy *policy,
                              void **state, struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_engine_start(void *engine, uint64_t iteration,
                               struct rf_err *err);
enum rf_status rf_engine_progress(void *engine, bool *done, struct rf_err *err);
void rf_engine_timing(void *engine, struct rf_phase_times *out);
bool rf_engine_leaves(size_t op, const void *engine);
void rf_engine_abort(void *engine);
void rf_engine_close(void *engine);

/* The members of struct rf_method_ops for a method whose state is the engine;
 * .info, .calls and .open are its own. */
/* clang-format off */
#define RF_ENGINE_HOOKS                                                        \
    .start = rf_engine_start, .progress = rf_engine_progress,                  \
    .timing = rf_engine_timing, .leaves = rf_engine_leaves,                    \
    .abort = rf_engine_abort, .close = rf_engine_close
/* clang-format on */

/* Counts the time since `since_ns` for the phase that `kind` belongs to, and
 * records it if a trace is wanted. `op` is an index of the schedule's ops,
 * RF_NONE: none. */
void rf_engine_spent(struct rf_engine *engine, enum rf_trace_kind kind,
                     int64_t since_ns, uint32_t op, uint64_t bytes);
/* For carriers: one of this rank's actions is complete. */
void rf_engine_complete(struct rf_engine *engine, uint32_t action);
/* Watches a descriptor for reading and writing, edge-triggered. */
enum rf_status rf_engine_watch(struct rf_engine *engine, int fd,
                               struct rf_watch *watch,
                               struct rf_err *err) RF_MUST_CHECK;
/* Where one end of an op begins in this rank's memory. */
uint8_t *rf_engine_place_of(const struct rf_engine *engine,
                            const struct rf_op *op, enum rf_copy_side side);

#endif

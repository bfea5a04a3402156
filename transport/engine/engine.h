/*
 * Shared by the host methods: an iteration is a flow of copies (run here) and
 * of sends and receives (run by a *carrier*: sockets, files). A method is a
 * routing of ops plus a carrier. Internal to transport/.
 */
#ifndef RF_TRANSPORT_ENGINE_ENGINE_H
#define RF_TRANSPORT_ENGINE_ENGINE_H

#include "transport/engine/flow.h"
#include "transport/engine/portions.h"
#include "transport/method/method.h"

struct rf_engine;

#define RF_ENGINE_NAP_MS 5

/* A descriptor in the engine's epoll set, edge-triggered. */
struct rf_watch {
    void (*on_event)(struct rf_watch *watch, uint32_t events);
};

/* `start` and `nap_ms` may be NULL. */
struct rf_carrier_ops {
    /* Before the ranks meet: sets the port to publish; 0: none. On entry
     * *carrier is the policy's `made`. */
    enum rf_status (*prepare)(struct rf_engine *engine, void **carrier,
                              uint16_t *port, struct rf_err *err);
    /* After the ranks have met; may block within the deadline. */
    enum rf_status (*open)(void *carrier, struct rf_err *err);
    enum rf_status (*start)(void *carrier, struct rf_err *err);
    /* An action of this rank may run now. */
    void (*send)(void *carrier, uint32_t action);
    void (*admit)(void *carrier, uint32_t action);
    /* Makes progress for at most about a millisecond; does not block. */
    enum rf_status (*work)(void *carrier, bool *worked, struct rf_err *err);
    /* Asked once our actions are complete: whether nothing is left to send. */
    bool (*idle)(void *carrier);
    /* Called just before sleep: the longest sleep without an event, in
     * milliseconds; NULL: RF_ENGINE_NAP_MS. */
    int (*nap_ms)(void *carrier);
    void (*close)(void *carrier);
};

/* Turns the engine into a method. */
struct rf_copy_engine_policy {
    /* Routes of ops inside a rank, between ranks of a node, and between nodes;
     * the same on every rank of a node. */
    enum rf_route inside, near, far;
    /* Marks in `nothing` (by op index, all false) the own copies to skip. NULL:
     * skip none. */
    void (*mark_nothing)(const struct rf_engine *engine, bool *nothing);
    /* Passes mappings of the node's arenas to `engine->shm`
     * (rf_node_memory_adopt). NULL: the engine maps them itself. */
    void (*attach)(const struct rf_engine *engine);
    const struct rf_carrier_ops *carrier; /* NULL: every op is a copy */
    void *made; /* the carrier if it exists before `prepare`; the engine always
                   closes it */
};

/* Location of a destination piece of this rank. */
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
    struct rf_engine_death *deaths; /* one per peer process */
    uint32_t dead_rank;             /* RF_NONE: none */
    /* this rank's actions */
    uint32_t *first; /* actions without needs, in order */
    uint32_t n_first;
    uint32_t n_own, own_left; /* copies, sends and receives of an iteration */
    uint32_t *copies;         /* own copies that may run: a ring of n_own */
    uint64_t copies_in, copies_out;
    uint32_t *conversions; /* that may run: a ring of n_own */
    uint64_t conversions_in, conversions_out;
    uint64_t copy_at;        /* items already copied of the front copy */
    struct rf_coder *coders; /* of own copies, by action */
    uint64_t copied_sent, copied_received; /* bytes copied in an iteration */
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

/* Adds the time since `since_ns` to the phase of `kind`, and to the trace if
 * there is one. `op` is an index into the schedule's ops; RF_NONE: none. */
void rf_engine_spent(struct rf_engine *engine, enum rf_trace_kind kind,
                     int64_t since_ns, uint32_t op, uint64_t bytes);
/* For carriers: payload went to, or came from, another rank. */
void rf_engine_sent(struct rf_engine *engine, uint32_t rank, uint64_t bytes);
void rf_engine_received(struct rf_engine *engine, uint32_t rank,
                        uint64_t bytes);
/* For carriers: one of this rank's actions is complete. */
void rf_engine_complete(struct rf_engine *engine, uint32_t action);
/* Watches a descriptor for reading and writing, edge-triggered. */
enum rf_status rf_engine_watch(struct rf_engine *engine, int fd,
                               struct rf_watch *watch,
                               struct rf_err *err) RF_MUST_CHECK;
/* Address of one end of an op in this rank's memory. */
uint8_t *rf_engine_place_of(const struct rf_engine *engine,
                            const struct rf_op *op, enum rf_copy_side side);

#endif

/*
 * Methods: how bytes move. A method is a const table of functions; all are in
 * one registry (transport/methods.c, plus those of refit-cuda.so and
 * refit-ucx.so at run time) and all pass the same conformance suite.
 *
 * Life of a method on a rank, all calls from the rank's data thread:
 *     probe → open → { start → progress … → timing }* → close
 * A rank may have opened a method twice, with two schedules over the same
 * arenas; their iterations take turns.
 * `open` may block (connecting, exchanging handles) within env->deadline_ns;
 * start and progress may not block longer than about 10 ms, and look at
 * env->abort: when it is set they return RF_ERR_ABORTED. After an error or an
 * abort only `abort` and `close` are called; of two states `abort` gets the one
 * that last ran first, since its work may hold up what ends the other. A rank
 * closes only when all ranks have finished their iteration; to the others, one
 * that closes earlier has failed. A method works with arenas of any origin,
 * including its own `arenas`.
 */
#ifndef RF_TRANSPORT_METHOD_METHOD_H
#define RF_TRANSPORT_METHOD_METHOD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "planner/schedule/schedule.h"
#include "transport/codec/codec.h"
#include "transport/info/method_info.h"
#include "transport/info/trace.h"
#include "transport/method/memory.h"

#define RF_DATA_KEY_BYTES 32

struct rf_blob {
    void *data; /* malloc'ed; NULL when size is 0 */
    size_t size;
};

/* A method's environment; valid from open to close. */
struct rf_method_env {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule; /* ops that touch this rank's node */
    uint32_t rank;
    const char *const *node_addresses; /* data-plane address of each node */
    struct rf_arena arena[RF_MEM_COUNT];
    const struct rf_memory_ops *memory;
    uint8_t data_key[RF_DATA_KEY_BYTES]; /* of this attempt */
    int64_t deadline_ns;                 /* of open */
    /* Host methods copy with plain stores; set where streaming stores are
     * slower. Read when an iteration starts; the same on all ranks of a
     * node. */
    bool plain_stores;
    const struct rf_codec *codec; /* of all ops; NULL: by their forms */
    const atomic_bool *abort;
    struct rf_trace *trace; /* of the iteration; NULL: not wanted */
    /* Collective over all ranks of the scenario, same order of calls on each:
     * gives `mine` to all ranks and returns theirs in `all` (n_ranks entries,
     * freed with rf_blobs_free). Blocks; honours abort and deadline. */
    enum rf_status (*exchange)(void *exchange_data, const void *mine,
                               size_t size, struct rf_blob *all,
                               struct rf_err *err);
    void *exchange_data;
    /* With "overlap" of "quantize": converts a part of a group's matrices, for a
     * few milliseconds at most; *done with the last. NULL: the rank converts
     * before `start`, or after the last `progress`. */
    enum rf_status (*convert)(void *convert_data, uint32_t group, bool *done,
                              struct rf_err *err);
    void *convert_data;
    /* Receives from `open` the memory registered with its library, or why there
     * is none; NULL: not wanted. Untouched by methods that register nothing. */
    struct rf_registration *registration;
    /* State of an earlier, still open `open` of the same method over the same
     * arenas: this one reuses its copy ways without measuring. NULL: none. The
     * same on all ranks. */
    const void *like;
};

/*
 * Times and bytes of one rank in one iteration. The phases may not add up to
 * the rank's time; the rest is reported as unattributed. In host methods:
 *   pack    gathering or casting rows into a send buffer, or writing files;
 *   wire    moving bytes: copies between mapped arenas (local ones and those a
 *           rank runs for its neighbours included), socket calls;
 *   unpack  scattering or casting from a receive buffer, or reading files;
 *   sync    waiting for other ranks with nothing else to do.
 * Device methods derive them from pairs of events on their streams.
 */
struct rf_phase_times {
    int64_t pack_ns, wire_ns, unpack_ns, sync_ns;
    int64_t device_ns; /* of device methods: from the first to the last of their
                          events, by the device's clock; host methods: 0 */
    uint64_t sent_bytes, received_bytes; /* between different ranks */
    /* Of these, between nodes; counted by methods that can encode. */
    uint64_t link_sent_bytes, link_received_bytes;
};

/* How a method's copies are made on one rank, where it has two ways: a device's
 * copy engines and kernels. */
struct rf_copy_ways {
    const char *rule;           /* how the way is chosen; NULL: only one way */
    uint64_t engine_from_bytes; /* shortest run copied by an engine; UINT64_MAX:
                                   none */
    uint64_t engine_bytes, kernel_bytes; /* of an iteration */
};

/* For methods that must allocate the arenas: ranks of a node reach each other
 * only in memory that the method made. */
struct rf_arena_ops {
    enum rf_status (*alloc)(const struct rf_plan *plan, uint64_t bytes,
                            struct rf_arena *out, struct rf_err *err);
    void (*free)(struct rf_arena *arena);
};

struct rf_method_ops {
    const struct rf_method_info *info;
    const struct rf_arena_ops *arenas; /* NULL: the memory's kind allocates */
    unsigned calls; /* enum rf_calls_of: the calls it needs */
    /* RF_OK, or RF_ERR_UNSUPPORTED with the reason; NULL: any node with those
     * calls can. Callers use rf_method_probe(). */
    enum rf_status (*probe)(struct rf_err *err);
    enum rf_status (*open)(const struct rf_method_env *env, void **state,
                           struct rf_err *err);
    /* Begins iteration `iteration` (counts warm-ups too). */
    enum rf_status (*start)(void *state, uint64_t iteration,
                            struct rf_err *err);
    /* Makes progress; *done when all sends of this rank have left its memory
     * and all its receives have arrived. */
    enum rf_status (*progress)(void *state, bool *done, struct rf_err *err);
    void (*timing)(void *state, struct rf_phase_times *out);
    /* After open; NULL: only one way. */
    void (*ways)(const void *state, struct rf_copy_ways *out);
    /* Address of a destination piece after an iteration, for verification;
     * NULL: in the arena (see rf_memory_ops.verify). The hook is NULL if all
     * are. */
    const void *(*base_of)(const struct rf_piece *piece,
                           uint64_t stride[RF_BOX_DIMS], void *state);
    /* Whether an op, by its index in env->schedule, moves no bytes because its
     * destination is read in the source's memory. The same answer on every rank
     * of the node. NULL: all ops move bytes. */
    bool (*leaves)(size_t op, const void *state);
    void (*abort)(void *state);
    void (*close)(void *state); /* NULL state is fine */
};

/* Whether conversions order the copies of a method: those of senders, and those
 * that overlap. */
bool rf_converts_meanwhile(const struct rf_plan *plan);

/* The implementation of a method (by name) on this node: built in, or from
 * refit-cuda.so or refit-ucx.so (loaded on first need). NULL when absent; `err`
 * gives the reason without the name, as with a failed probe. Worker side
 * only. */
const struct rf_method_ops *rf_method_find(const char *name,
                                           struct rf_err *err);

/* RF_OK if this node can run it, else RF_ERR_UNSUPPORTED with the reason. */
enum rf_status rf_method_probe(const struct rf_method_ops *method,
                               struct rf_err *err) RF_MUST_CHECK;

/* The built-in ones. */
#define X(ID, ops, ...) extern const struct rf_method_ops rf_method_##ops;
RF_WORKER_METHODS(X)
#undef X

/* Turns the refit's key, in place, into the key of the yardstick's instance of
 * the method: connections and files of the two must not mix. */
void rf_method_yardstick_key(uint8_t key[RF_DATA_KEY_BYTES]);

void rf_blobs_free(struct rf_blob *blobs, uint32_t count);

/* env->exchange of data of any size: *all has an entry per rank;
 * rf_shared_free() frees it. */
enum rf_status rf_share(const struct rf_method_env *env, const void *mine,
                        size_t size, struct rf_blob **all,
                        struct rf_err *err) RF_MUST_CHECK;
void rf_shared_free(const struct rf_method_env *env, struct rf_blob **all);

/* env->exchange of `size` bytes per rank, concatenated in `all`.
 * RF_ERR_PROTOCOL names `what` and a rank whose data has another size. */
enum rf_status rf_share_all(const struct rf_method_env *env, const char *what,
                            const void *mine, size_t size, void *all,
                            struct rf_err *err) RF_MUST_CHECK;

/* The same for rank 0 only: all ranks get its `it`. */
enum rf_status rf_share_first(const struct rf_method_env *env, const char *what,
                              void *it, size_t size,
                              struct rf_err *err) RF_MUST_CHECK;

#endif

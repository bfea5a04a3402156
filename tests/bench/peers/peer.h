/*
 * Ways to move the traffic of one refit, timed against each other by
 * bench-peers: the limit of the memory, this project's methods, and what one
 * would write with Open MPI or Gloo. All run in the same processes, on the same
 * arenas, in turn.
 */
#ifndef RF_TESTS_BENCH_PEERS_PEER_H
#define RF_TESTS_BENCH_PEERS_PEER_H

#include <stdbool.h>

#include "planner/schedule/schedule.h"
#include "transport/method/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's part; borrowed by all peers. */
struct peer_env {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule; /* strategy send_recv, its node's ops */
    uint32_t rank, n_ranks;
    struct rf_arena arena[RF_MEM_COUNT];
    const char *folder; /* empty, shared by all ranks */
};

struct peer {
    const char *name;
    bool by_mpi; /* who is done must go on calling MPI for the others */
    /* Everything that a trainer does once: buffers, types, connections.
     * Collective. False after a message on standard error. */
    bool (*open)(const struct peer_env *env, void **state);
    bool (*run)(void *state); /* one refit */
    void (*close)(void *state);
};

extern const struct peer peer_copy, peer_host, peer_tcp, peer_mpi_messages,
    peer_mpi_packed, peer_mpi_types, peer_mpi_gather, peer_gloo_messages;

/* --- Messages: what send and receive libraries move ------------------------
 */

/* One op as a message: where both ends are contiguous, its bytes as they lie;
 * else a buffer that they are packed into and out of. */
struct peer_message {
    const struct rf_op *op;
    uint8_t *at;     /* what is sent or received */
    uint8_t *buffer; /* NULL: `at` is in the arena */
    uint64_t bytes;
};

struct peer_messages {
    const struct peer_env *env;
    struct peer_message *sends, *receives; /* between different ranks, by op */
    const struct rf_op **copies;           /* inside the rank */
    size_t n_sends, n_receives, n_copies;
};

/* With `pack_all`, contiguous ops are packed, too. */
void peer_messages_make(const struct peer_env *env, bool pack_all,
                        struct peer_messages *out);
void peer_messages_free(struct peer_messages *messages);

void peer_message_pack(const struct peer_messages *messages,
                       const struct peer_message *message);
void peer_message_unpack(const struct peer_messages *messages,
                         const struct peer_message *message);

/* All copies inside the rank, as memcpy does them. */
void peer_copy_local(const struct peer_messages *messages);

/* One op from `src`, its source's arena, wherever that is, to this rank's. */
void peer_copy_op(const struct peer_env *env, const struct rf_op *op,
                  const uint8_t *src);

#ifdef __cplusplus
}
#endif

#endif

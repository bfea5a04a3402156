/*
 * Shared by the ranks of one node: their arenas, mapped into each other, one
 * control segment, and a doorbell per rank. All are anonymous memfds or pipes
 * that peers open through /proc/<pid>/fd, so no names are left behind; this
 * needs one user and one PID namespace per node.
 */
#ifndef RF_TRANSPORT_METHOD_NODE_MEMORY_H
#define RF_TRANSPORT_METHOD_NODE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/method/method.h"

#define RF_CACHE_LINE 64

/* One rank of this node, at its slot (position among the node's ranks). */
struct rf_node_memory_peer {
    uint32_t rank;
    pid_t pid;
    int pidfd;                 /* readable once it dies; -1: ourselves */
    int bell;                  /* write end of its doorbell */
    void *arena[RF_MEM_COUNT]; /* its memory in our address space, or NULL */
    uint64_t arena_bytes[RF_MEM_COUNT];
    bool mapped[RF_MEM_COUNT]; /* by us; unmapped at close */
    bool read[RF_MEM_COUNT], written[RF_MEM_COUNT]; /* populated for reading,
                                                       for writing */
    int arena_fd[RF_MEM_COUNT];                     /* descriptor numbers in its
                                                       process */
};

struct rf_node_memory_head;

struct rf_node_memory {
    uint32_t n_peers, self; /* slots of this node, and ours */
    struct rf_node_memory_peer *peers;
    uint32_t *slots; /* of every world rank */
    uint16_t *ports; /* of every world rank: its `port` */
    void *control;   /* the caller's part of the segment, zeroed, 64-aligned */
    uint64_t control_bytes;
    int bell; /* read end of our doorbell: poll, then rf_node_memory_awake() */
    struct rf_node_memory_head *head;
    uint64_t segment_bytes;
    int segment_fd, bell_write;
};

/*
 * Meets the node's ranks (one env->exchange). `control_bytes` and the layout
 * within must be the same on all ranks of the node. `port` is published to all
 * ranks of the world.
 */
enum rf_status rf_node_memory_open(const struct rf_method_env *env,
                                   uint64_t control_bytes, uint16_t port,
                                   struct rf_node_memory **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Maps and populates arena `mem` of the peer at `slot`, also for fast writing
 * if `write`; our own needs no mapping. May be repeated. */
enum rf_status rf_node_memory_map(struct rf_node_memory *shm, uint32_t slot,
                                  enum rf_mem mem, bool write,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Records that arena `mem` of the peer at `slot` is mapped at `at` by other
 * code, which keeps it mapped; rf_node_memory_map() then only populates it. */
void rf_node_memory_adopt(struct rf_node_memory *shm, uint32_t slot,
                          enum rf_mem mem, void *at);

/* Slot of a world rank; RF_NONE: on another node. */
uint32_t rf_node_memory_slot(const struct rf_node_memory *shm, uint32_t rank);

/*
 * Sleep without a lost wake-up: rf_node_memory_doze(), look for work once more,
 * poll `bell`, rf_node_memory_awake(). Wakers publish their work first.
 */
void rf_node_memory_doze(struct rf_node_memory *shm);
void rf_node_memory_awake(struct rf_node_memory *shm);
void rf_node_memory_wake(struct rf_node_memory *shm, uint32_t slot);
void rf_node_memory_wake_all(struct rf_node_memory *shm); /* except ourselves */

/* Tells all ranks of the node to give up. */
void rf_node_memory_abort(struct rf_node_memory *shm);
bool rf_node_memory_aborted(const struct rf_node_memory *shm);

void rf_node_memory_close(struct rf_node_memory *shm); /* NULL is fine */

#endif

/*
 * A rank's load: threads that read memory or send to another node beside a
 * refit, as an engine does that generates meanwhile. A thread reads or sends
 * blocks of RF_LOAD_BLOCK_BYTES and counts them. load_memory.h and load_network.h
 * make loads.
 */
#ifndef RF_WORKER_RANK_RANK_LOAD_H
#define RF_WORKER_RANK_RANK_LOAD_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/err.h"
#include "planner/scenario/spec_load.h"
#include "transport/method/memory.h"
#include "transport/tcp/datalink.h"

struct rf_load_thread {
    const struct rf_rank_load *load;
    /* Reads or sends the block at `at`; may return before it has, once
     * load->stop is set. Returns what counts, in bytes. NULL: has no work. On
     * failure sets `status` and `err`, and is not called again. */
    uint64_t (*step)(struct rf_load_thread *thread);
    bool unpaced;
    uint8_t *buffer;
    uint64_t at;     /* byte in the buffer */
    uint64_t sum;    /* of what was read, which has to go somewhere */
    void *on_device; /* rf_memory_ops.load_create()'s; NULL: none */
    struct rf_datalink_end *ends; /* its connections, which it owns */
    struct pollfd *polled;        /* for each of them */
    uint32_t n_ends;
    _Atomic uint64_t bytes; /* that count */
    enum rf_status status;
    struct rf_err err;
    pthread_t id;
};

struct rf_rank_load {
    const struct rf_memory_ops *memory; /* of `on_device` */
    struct rf_arena arena;              /* all buffers in host memory */
    uint64_t block_bytes;
    uint64_t buffer_bytes; /* of a thread, a multiple of a block, or 0 */
    int64_t block_ns;      /* of a thread at the stated rate; 0: not paced */
    atomic_bool stop;
    uint32_t n_threads, n_running;
    struct rf_load_thread *threads;
};

/* A load of threads that each have a buffer, and nothing to do yet. Of its
 * blocks `cores` threads do as many as its rate says. */
enum rf_status rf_rank_load_new(const struct rf_load_spec *spec,
                                uint32_t n_threads, uint64_t block_bytes,
                                uint64_t buffer_bytes,
                                struct rf_rank_load **out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_rank_load_destroy(struct rf_rank_load *load); /* stopped, or NULL */

/* Starts the threads. On failure some may run: stop it. */
enum rf_status rf_rank_load_start(struct rf_rank_load *load,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Ends the threads that run, each within a block. Fails as the first that lost
 * a connection. */
enum rf_status rf_rank_load_stop(struct rf_rank_load *load,
                                 struct rf_err *err) RF_MUST_CHECK;

/* What has been read or sent since it was created; from any thread. */
uint64_t rf_rank_load_bytes(const struct rf_rank_load *load);

/* A paced thread that is late, because it slept too long or something held it
 * up, reads faster until it has caught up with this much time; the rest is
 * lost. */
#define RF_LOAD_CATCH_UP_NS INT64_C(1000000)

/* When a block of a paced thread is due, after one that was due at `due_ns` and
 * begins now; a thread reads a block every `block_ns`. Pure. */
int64_t rf_rank_load_due(int64_t due_ns, int64_t now_ns, int64_t block_ns);

#endif

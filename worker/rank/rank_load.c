/*
 * See rank_load.h. Only counters and `stop` are shared between threads; the
 * rank reads the counters when a window begins and ends, so a block that is
 * under way then counts for the window in which it ends.
 */
#include "worker/rank/rank_load.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "worker/content/memory_host.h"

#define CACHE_TIMES 3
#define LEAST_BUFFER_BYTES (UINT64_C(64) << 20)
#define LONGEST_SLEEP_NS (10 * RF_NS_PER_MS) /* until it looks at `stop` */
#define WORDS (RF_LOAD_BLOCK_BYTES / sizeof(uint64_t))
#define LANES 8 /* sums that do not wait for each other */

struct thread {
    const struct rf_rank_load *load;
    const uint64_t *buffer;
    _Atomic uint64_t bytes; /* read */
    uint64_t sum;           /* of what was read, which has to go somewhere */
    pthread_t id;
};

struct rf_rank_load {
    struct rf_arena arena; /* all buffers */
    uint64_t buffer_bytes; /* a multiple of a block */
    int64_t block_ns;      /* of a thread at the stated rate; 0: not paced */
    atomic_bool stop;
    uint32_t n_threads, n_running;
    struct thread *threads;
};

static uint64_t buffer_bytes(uint64_t n_threads)
{
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE); /* 0, -1: unknown */
    const uint64_t bytes =
        CACHE_TIMES * (uint64_t)RF_MAX(cache, 0L) / n_threads;
    return RF_MAX(bytes, LEAST_BUFFER_BYTES) / RF_LOAD_BLOCK_BYTES *
           RF_LOAD_BLOCK_BYTES;
}

enum rf_status rf_rank_load_create(const struct rf_load_spec *spec,
                                   uint32_t n_ranks, struct rf_rank_load **out,
                                   struct rf_err *err)
{
    struct rf_rank_load *load = rf_xcalloc(1, sizeof(*load));
    enum rf_status status;
    load->n_threads = spec->cores;
    load->buffer_bytes = buffer_bytes((uint64_t)n_ranks * spec->cores);
    if (spec->memory_gbytes_per_s > 0) {
        load->block_ns = llround((double)RF_LOAD_BLOCK_BYTES * spec->cores /
                                 spec->memory_gbytes_per_s);
    }
    status = rf_memory_host.alloc(spec->cores * load->buffer_bytes,
                                  &load->arena, err);
    if (status != RF_OK) {
        rf_err_wrap(err, "buffers of \"load\"");
        free(load);
        return status;
    }
    load->threads = rf_xcalloc(spec->cores, sizeof(*load->threads));
    for (uint32_t i = 0; i < load->n_threads; i++) {
        const uint8_t *base = load->arena.base;
        load->threads[i].load = load;
        load->threads[i].buffer = (const void *)(base + i * load->buffer_bytes);
    }
    *out = load;
    return RF_OK;
}

void rf_rank_load_destroy(struct rf_rank_load *load)
{
    if (load != NULL) {
        rf_memory_host.free(&load->arena);
        free(load->threads);
        free(load);
    }
}

static uint64_t read_block(const uint64_t *at)
{
    uint64_t sums[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < WORDS; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            sums[lane] += at[i + lane];
        }
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        sum += sums[lane];
    }
    return sum;
}

int64_t rf_rank_load_due(int64_t due_ns, int64_t now_ns, int64_t block_ns)
{
    return RF_MAX(due_ns, now_ns - RF_LOAD_CATCH_UP_NS) + block_ns;
}

/* Waits until the next block of a paced thread is due, for a while at most;
 * false: it is not yet. */
static bool is_due(const struct rf_rank_load *load, int64_t *due_ns)
{
    int64_t now;
    if (load->block_ns == 0) {
        return true;
    }
    now = rf_now_ns();
    if (*due_ns > now) {
        rf_sleep_until_ns(RF_MIN(*due_ns, now + LONGEST_SLEEP_NS));
        return false;
    }
    *due_ns = rf_rank_load_due(*due_ns, now, load->block_ns);
    return true;
}

static void *read_memory(void *data)
{
    struct thread *thread = data;
    const struct rf_rank_load *load = thread->load;
    const uint64_t *at = thread->buffer,
                   *end = at + load->buffer_bytes / sizeof(*at);
    int64_t due_ns = rf_now_ns();
    while (!atomic_load_explicit(&load->stop, memory_order_relaxed)) {
        if (!is_due(load, &due_ns)) {
            continue;
        }
        thread->sum += read_block(at);
        at = at + WORDS < end ? at + WORDS : thread->buffer;
        atomic_fetch_add_explicit(&thread->bytes, RF_LOAD_BLOCK_BYTES,
                                  memory_order_relaxed);
    }
    return NULL;
}

enum rf_status rf_rank_load_start(struct rf_rank_load *load, struct rf_err *err)
{
    atomic_store(&load->stop, false);
    for (load->n_running = 0; load->n_running < load->n_threads;
         load->n_running++) {
        struct thread *thread = &load->threads[load->n_running];
        const int failed =
            pthread_create(&thread->id, NULL, read_memory, thread);
        if (failed != 0) {
            return rf_err_errno(err, RF_ERR_IO, failed,
                                "cannot start a thread of \"load\"%s",
                                rf_spawn_limits(failed));
        }
    }
    return RF_OK;
}

void rf_rank_load_stop(struct rf_rank_load *load)
{
    atomic_store(&load->stop, true);
    for (uint32_t i = 0; i < load->n_running; i++) {
        pthread_join(load->threads[i].id, NULL);
    }
    load->n_running = 0;
}

uint64_t rf_rank_load_bytes(const struct rf_rank_load *load)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < load->n_threads; i++) {
        bytes +=
            atomic_load_explicit(&load->threads[i].bytes, memory_order_relaxed);
    }
    return bytes;
}

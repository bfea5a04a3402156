/*
 * See rank_load.h. Only counters and `stop` are shared between threads; the
 * rank reads the counters when a window begins and ends, so a block that is
 * under way then counts for the window in which it ends.
 */
#include "worker/rank/rank_load.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "worker/content/memory_host.h"

#define LONGEST_SLEEP_NS (10 * RF_NS_PER_MS) /* until it looks at `stop` */

enum rf_status rf_rank_load_new(const struct rf_load_spec *spec,
                                uint32_t n_threads, uint64_t block_bytes,
                                uint64_t buffer_bytes,
                                struct rf_rank_load **out, struct rf_err *err)
{
    struct rf_rank_load *load = rf_xcalloc(1, sizeof(*load));
    const enum rf_status status =
        rf_memory_host.alloc(n_threads * buffer_bytes, &load->arena, err);
    if (status != RF_OK) {
        rf_err_wrap(err, "buffers of \"load\"");
        free(load);
        return status;
    }
    load->block_bytes = block_bytes;
    load->buffer_bytes = buffer_bytes;
    if (spec->gbytes_per_s > 0) {
        load->block_ns =
            llround((double)block_bytes * spec->cores / spec->gbytes_per_s);
    }
    load->n_threads = n_threads;
    load->threads = rf_xcalloc(n_threads, sizeof(*load->threads));
    for (uint32_t i = 0; i < n_threads; i++) {
        load->threads[i].load = load;
        load->threads[i].buffer =
            (uint8_t *)load->arena.base + i * buffer_bytes;
    }
    *out = load;
    return RF_OK;
}

void rf_rank_load_destroy(struct rf_rank_load *load)
{
    if (load == NULL) {
        return;
    }
    for (uint32_t i = 0; i < load->n_threads; i++) {
        for (uint32_t e = 0; e < load->threads[i].n_ends; e++) {
            close(load->threads[i].ends[e].fd);
        }
        free(load->threads[i].ends);
        free(load->threads[i].polled);
        if (load->threads[i].on_device != NULL) {
            load->memory->load_destroy(load->threads[i].on_device);
        }
    }
    rf_memory_host.free(&load->arena);
    free(load->threads);
    free(load);
}

int64_t rf_rank_load_due(int64_t due_ns, int64_t now_ns, int64_t block_ns)
{
    return RF_MAX(due_ns, now_ns - RF_LOAD_CATCH_UP_NS) + block_ns;
}

/* Waits until the next block of a paced thread is due, for a while at most;
 * false: it is not yet. */
static bool is_due(const struct rf_load_thread *thread, int64_t *due_ns)
{
    const int64_t block_ns = thread->unpaced ? 0 : thread->load->block_ns;
    int64_t now;
    if (block_ns == 0) {
        return true;
    }
    now = rf_now_ns();
    if (*due_ns > now) {
        rf_sleep_until_ns(RF_MIN(*due_ns, now + LONGEST_SLEEP_NS));
        return false;
    }
    *due_ns = rf_rank_load_due(*due_ns, now, block_ns);
    return true;
}

static void *run_thread(void *data)
{
    struct rf_load_thread *thread = data;
    const atomic_bool *stop = &thread->load->stop;
    int64_t due_ns = rf_now_ns();
    while (!atomic_load_explicit(stop, memory_order_relaxed) &&
           thread->status == RF_OK) {
        if (is_due(thread, &due_ns)) {
            atomic_fetch_add_explicit(&thread->bytes, thread->step(thread),
                                      memory_order_relaxed);
        }
    }
    return NULL;
}

enum rf_status rf_rank_load_start(struct rf_rank_load *load, struct rf_err *err)
{
    atomic_store(&load->stop, false);
    for (load->n_running = 0; load->n_running < load->n_threads;
         load->n_running++) {
        struct rf_load_thread *thread = &load->threads[load->n_running];
        const int failed =
            thread->step == NULL
                ? 0
                : pthread_create(&thread->id, NULL, run_thread, thread);
        if (failed != 0) {
            return rf_err_errno(err, RF_ERR_IO, failed,
                                "cannot start a thread of \"load\"%s",
                                rf_spawn_limits(failed));
        }
    }
    return RF_OK;
}

enum rf_status rf_rank_load_stop(struct rf_rank_load *load, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    atomic_store(&load->stop, true);
    for (uint32_t i = 0; i < load->n_running; i++) {
        struct rf_load_thread *thread = &load->threads[i];
        if (thread->step == NULL) {
            continue;
        }
        pthread_join(thread->id, NULL);
        if (status == RF_OK && thread->status != RF_OK) {
            status = thread->status;
            *err = thread->err;
        }
    }
    load->n_running = 0;
    return status;
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

/*
 * A load that reads memory: each thread reads a buffer of its own from end to
 * end, again and again. In host memory all buffers of a node are together three
 * times as large as the last cache, so that what is read comes from memory, also
 * where two sockets share them.
 */
#include "worker/rank/load_memory.h"

#include <unistd.h>

#include "common/mem.h"

#define CACHE_TIMES 3
#define LEAST_BUFFER_BYTES (UINT64_C(64) << 20)
#define WORDS (RF_LOAD_BLOCK_BYTES / sizeof(uint64_t))
#define LANES 8 /* sums that do not wait for each other */

static uint64_t buffer_bytes(uint64_t n_threads)
{
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE); /* 0, -1: unknown */
    const uint64_t bytes =
        CACHE_TIMES * (uint64_t)RF_MAX(cache, 0L) / n_threads;
    return RF_MAX(bytes, LEAST_BUFFER_BYTES) / RF_LOAD_BLOCK_BYTES *
           RF_LOAD_BLOCK_BYTES;
}

static uint64_t read_block(struct rf_load_thread *thread)
{
    const uint64_t *at = (const void *)(thread->buffer + thread->at);
    uint64_t sums[LANES] = {0};
    for (size_t i = 0; i < WORDS; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            sums[lane] += at[i + lane];
        }
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        thread->sum += sums[lane];
    }
    thread->at =
        (thread->at + RF_LOAD_BLOCK_BYTES) % thread->load->buffer_bytes;
    return RF_LOAD_BLOCK_BYTES;
}

static enum rf_status read_host(const struct rf_load_spec *spec,
                                uint32_t n_ranks, struct rf_rank_load **out,
                                struct rf_err *err)
{
    RF_TRY(rf_rank_load_new(spec, spec->cores, RF_LOAD_BLOCK_BYTES,
                            buffer_bytes((uint64_t)n_ranks * spec->cores), out,
                            err));
    for (uint32_t i = 0; i < (*out)->n_threads; i++) {
        (*out)->threads[i].step = read_block;
    }
    return RF_OK;
}

static uint64_t copy_on_device(struct rf_load_thread *thread)
{
    const struct rf_rank_load *load = thread->load;
    bool ended = false;
    thread->status =
        load->memory->load_step(thread->on_device, &ended, &thread->err);
    return ended ? load->block_bytes : 0;
}

enum rf_status rf_rank_load_reads(const struct rf_load_spec *spec,
                                  const struct rf_memory_ops *memory,
                                  uint32_t n_ranks, struct rf_rank_load **out,
                                  struct rf_err *err)
{
    struct rf_rank_load *load;
    enum rf_status status = RF_OK;
    if (memory->load_create == NULL) {
        return read_host(spec, n_ranks, out, err);
    }
    RF_TRY(
        rf_rank_load_new(spec, spec->cores, memory->load_bytes, 0, &load, err));
    load->memory = memory;
    for (uint32_t i = 0; i < load->n_threads && status == RF_OK; i++) {
        load->threads[i].step = copy_on_device;
        status = memory->load_create(&load->threads[i].on_device, err);
    }
    if (status != RF_OK) {
        rf_rank_load_destroy(load);
        return status;
    }
    *out = load;
    return RF_OK;
}

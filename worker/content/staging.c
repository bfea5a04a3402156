/* Buffers between files and arenas. See staging.h. */
#include "worker/content/staging.h"

#include "common/mem.h"

unsigned rf_read_threads(const struct rf_plan *plan)
{
    return plan->model->files != NULL ? RF_READ_THREADS : 1;
}

enum rf_status rf_staging_create(const struct rf_memory_ops *memory,
                                 const struct rf_block *blocks, size_t n,
                                 struct rf_staging *out, struct rf_err *err)
{
    struct rf_staging staging = {.memory = memory};
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < n; i++) {
        staging.each = RF_MAX(staging.each, blocks[i].bytes);
    }
    if (!memory->in_place && n > 0) {
        status = memory->buffer_alloc(RF_READ_THREADS * staging.each,
                                      &staging.buffers, err);
    }
    if (status == RF_OK) {
        *out = staging;
    }
    return status;
}

void rf_staging_free(struct rf_staging *staging)
{
    if (staging->buffers != NULL) {
        staging->memory->buffer_free(staging->buffers);
        staging->buffers = NULL;
    }
}

uint8_t *rf_staging_buffer(const struct rf_staging *staging, size_t i)
{
    return staging->buffers != NULL
               ? (uint8_t *)staging->buffers + i * staging->each
               : NULL;
}

/* Bytes that follow each other in the arena and in the buffer. */
static enum rf_status copy(const struct rf_staging *staging, enum rf_staged way,
                           const struct rf_arena *arena,
                           struct rf_byte_span span, uint8_t *buffer,
                           struct rf_err *err)
{
    const uint64_t bytes = span.end - span.start;
    if (bytes == 0) {
        return RF_OK;
    }
    return way == RF_STAGE_IN
               ? staging->memory->write(arena, span.start, bytes, buffer, err)
               : staging->memory->read(arena, span.start, bytes, buffer, err);
}

enum rf_status rf_staging_copy(const struct rf_staging *staging,
                               enum rf_staged way, const struct rf_plan *plan,
                               const struct rf_piece *piece,
                               const struct rf_block *block,
                               const struct rf_place *place, uint8_t *buffer,
                               struct rf_err *err)
{
    const struct rf_arena arena = {.base = place->base, .fd = -1};
    enum rf_status status = RF_OK;
    struct rf_byte_span span = {0, 0};
    struct rf_run_walk walk;
    struct rf_stretch run;
    uint64_t offset;
    rf_block_walk(block, &plan->model->families[piece->family], piece,
                  place->stride, &walk, &offset);
    while (status == RF_OK && rf_runs_next(&walk, &run)) {
        const uint64_t at = offset + run.offset;
        if (at != span.end) {
            status = copy(staging, way, &arena, span, buffer, err);
            buffer += span.end - span.start;
            span.start = at;
        }
        span.end = at + run.elements * block->item;
    }
    return status != RF_OK ? status
                           : copy(staging, way, &arena, span, buffer, err);
}

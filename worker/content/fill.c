/*
 * Filling. See fill.h.
 *
 * Blocks are read in batches of one per thread. In place every batch is all of
 * them; with buffers the data thread, the only one that may use the device,
 * copies them to it after each.
 */
#include "worker/content/fill.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/parallel.h"
#include "worker/content/content.h"
#include "worker/content/staging.h"

struct filling {
    const struct rf_fill_job *job;
    const struct rf_rank_layout *layout;
    const struct rf_block *blocks; /* the batch's first */
    struct rf_staging staging;
    struct rf_content *contents[RF_READ_THREADS];
};

static struct rf_place place_of(const struct filling *filling,
                                const struct rf_piece *piece)
{
    return rf_place_of(filling->job->arena, NULL, NULL, piece);
}

static void note_done(const struct filling *filling, uint64_t bytes)
{
    if (filling->job->reading != NULL) {
        atomic_fetch_add(&filling->job->reading->done_bytes, bytes);
    }
}

/* Block `i` of the batch, into its place or buffer number i. */
static enum rf_status fill_block(size_t i, unsigned thread, void *data,
                                 struct rf_err *err)
{
    const struct filling *filling = data;
    const struct rf_block *block = &filling->blocks[i];
    const struct rf_piece *piece = &filling->layout->pieces[block->piece];
    const struct rf_family *family =
        &filling->job->plan->model->families[piece->family];
    const struct rf_place place = place_of(filling, piece);
    const uint64_t end = rf_block_end(block, family);
    uint8_t *buffer = rf_staging_buffer(&filling->staging, i);
    enum rf_status status = RF_OK;
    struct rf_run_walk walk;
    struct rf_stretch run;
    uint64_t offset;
    rf_block_walk(block, family, piece, place.stride, &walk, &offset);
    while (status == RF_OK && rf_runs_next(&walk, &run)) {
        const struct rf_content_span span = {piece->family, run.layer,
                                             run.expert,    run.element,
                                             run.elements,  end};
        uint8_t *to = buffer != NULL
                          ? buffer
                          : (uint8_t *)place.base + offset + run.offset;
        status = rf_content_read(filling->contents[thread], &span, to, err);
        buffer += buffer != NULL ? run.elements * block->item : 0;
    }
    if (status == RF_OK) {
        note_done(filling, block->bytes);
    }
    return status;
}

static enum rf_status copy_batch(const struct filling *filling, size_t n,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < n; i++) {
        const struct rf_block *block = &filling->blocks[i];
        const struct rf_piece *piece = &filling->layout->pieces[block->piece];
        const struct rf_place place = place_of(filling, piece);
        status = rf_staging_copy(&filling->staging, RF_STAGE_IN,
                                 filling->job->plan, piece, block, &place,
                                 rf_staging_buffer(&filling->staging, i), err);
    }
    return status;
}

static enum rf_status fill_blocks(struct filling *filling, size_t n,
                                  struct rf_err *err)
{
    const bool staged = filling->staging.buffers != NULL;
    const struct rf_reading *reading = filling->job->reading;
    enum rf_status status = RF_OK;
    struct rf_parallel parallel = {
        .threads = rf_read_threads(filling->job->plan),
        .work = fill_block,
        .data = filling,
        .abort = reading != NULL ? reading->abort : NULL};
    while (status == RF_OK && n > 0) {
        parallel.jobs = staged ? RF_MIN(n, (size_t)RF_READ_THREADS) : n;
        status = rf_parallel_run(&parallel, err);
        if (status == RF_OK && staged) {
            status = copy_batch(filling, parallel.jobs, err);
        }
        filling->blocks += parallel.jobs;
        n -= parallel.jobs;
    }
    return status;
}

static enum rf_status open_contents(struct filling *filling, struct rf_err *err)
{
    const struct rf_fill_job *job = filling->job;
    enum rf_status status = RF_OK;
    for (unsigned t = 0; status == RF_OK && t < rf_read_threads(job->plan);
         t++) {
        status = rf_content_create(
            job->plan, job->side, job->iteration,
            job->reading != NULL ? &job->reading->read_bytes : NULL,
            &filling->contents[t], err);
    }
    return status;
}

static void expect(struct rf_reading *reading, const struct rf_block *blocks,
                   size_t n)
{
    uint64_t bytes = 0;
    if (reading == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bytes += blocks[i].bytes;
    }
    atomic_store(&reading->read_bytes, 0);
    atomic_store(&reading->done_bytes, 0);
    atomic_store(&reading->of_bytes, bytes);
}

enum rf_status rf_fill(const struct rf_fill_job *job, struct rf_err *err)
{
    size_t n;
    struct rf_block *blocks =
        rf_blocks_of(job->plan, job->side, job->rank, RF_READ_BLOCK_BYTES, &n);
    struct filling filling = {
        .job = job,
        .layout = rf_plan_layout(job->plan, job->side, job->rank),
        .blocks = blocks};
    enum rf_status status = open_contents(&filling, err);
    RF_THEN(status,
            rf_staging_create(job->memory, blocks, n, &filling.staging, err));
    if (status == RF_OK) {
        expect(job->reading, blocks, n);
        status = fill_blocks(&filling, n, err);
    }
    rf_staging_free(&filling.staging);
    for (unsigned t = 0; t < RF_READ_THREADS; t++) {
        rf_content_destroy(filling.contents[t]);
    }
    free(blocks);
    return status;
}

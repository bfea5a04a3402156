/* Filling. See fill.h. */
#include "worker/content/fill.h"

#include <stdlib.h>

#include "worker/content/staging.h"

struct filling {
    const struct rf_content_job *job;
    struct rf_reading *reading; /* may be NULL */
    struct rf_content *contents[RF_READ_THREADS];
};

static enum rf_status fill_run(const struct rf_staged_run *run, unsigned thread,
                               void *data, struct rf_err *err)
{
    const struct filling *filling = data;
    RF_TRY(
        rf_content_read(filling->contents[thread], &run->span, run->at, err));
    if (filling->reading != NULL) {
        atomic_fetch_add(&filling->reading->done_bytes, run->bytes);
    }
    return RF_OK;
}

static enum rf_status open_contents(struct filling *filling, struct rf_err *err)
{
    const struct rf_content_job *job = filling->job;
    enum rf_status status = RF_OK;
    for (unsigned t = 0; status == RF_OK && t < rf_read_threads(job->plan);
         t++) {
        status = rf_content_create(
            job,
            filling->reading != NULL ? &filling->reading->read_bytes : NULL,
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

static enum rf_status fill_staged(const struct rf_content_job *job,
                                  const struct rf_memory_ops *memory,
                                  struct rf_reading *reading,
                                  struct rf_err *err)
{
    struct filling filling = {.job = job, .reading = reading};
    const struct rf_staging staging = {.job = job,
                                       .memory = memory,
                                       .way = RF_STAGE_IN,
                                       .threads = rf_read_threads(job->plan),
                                       .abort = reading != NULL ? reading->abort
                                                                : NULL,
                                       .work = fill_run,
                                       .data = &filling};
    size_t n;
    struct rf_block *blocks = rf_blocks_of(job, &n);
    enum rf_status status = open_contents(&filling, err);
    if (status == RF_OK) {
        expect(reading, blocks, n);
        status = rf_staging_run(&staging, blocks, n, err);
    }
    for (unsigned t = 0; t < RF_READ_THREADS; t++) {
        rf_content_destroy(filling.contents[t]);
    }
    free(blocks);
    return status;
}

enum rf_status rf_fill(const struct rf_content_job *job,
                       const struct rf_memory_ops *memory,
                       struct rf_reading *reading, struct rf_err *err)
{
    const bool by_kernels = memory->fill != NULL && rf_content_is_pattern(job);
    RF_TRY(by_kernels ? memory->fill(job, err)
                      : fill_staged(job, memory, reading, err));
    return rf_poison_padding(memory, job, err);
}

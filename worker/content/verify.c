/*
 * Verification. See verify.h.
 *
 * What each run should hold is made in a buffer that stays in the first caches
 * and compared; only a difference is looked at byte by byte. Each thread has
 * findings of its own, which are joined at the end, so that the first mismatch
 * is the same whichever thread came across it.
 */
#include "worker/content/verify.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/parallel.h"
#include "worker/content/content.h"
#include "worker/content/staging.h"

/* Of one thread. */
struct findings {
    const struct rf_verify_job *job;
    struct rf_content *content;
    struct rf_verify_result result;
    uint64_t first_element; /* of result's first mismatch */
    uint8_t *expected;      /* RF_CONTENT_CHUNK elements */
};

struct verification {
    const struct rf_verify_job *job;
    const struct rf_rank_layout *layout;
    const struct rf_block *blocks; /* the batch's first */
    struct rf_staging staging;
    struct findings findings[RF_READ_THREADS];
};

/* Whether the mismatch `a` of an element comes before that of `b`. */
static bool is_earlier(const struct rf_content_span *a,
                       const struct findings *b)
{
    const struct rf_verify_result *r = &b->result;
    if (r->mismatched_bytes == 0 || a->family != r->family) {
        return r->mismatched_bytes == 0 || a->family < r->family;
    }
    if (a->layer_index != r->layer_index) {
        return a->layer_index < r->layer_index;
    }
    if (a->expert != r->expert) {
        return a->expert < r->expert;
    }
    return a->first < b->first_element;
}

static void note_mismatches(struct findings *v,
                            const struct rf_content_span *span, uint32_t item,
                            const uint8_t *found)
{
    struct rf_verify_result *result = &v->result;
    struct rf_content_span wrong = *span;
    uint64_t bad = 0, first = span->count;
    for (uint64_t i = 0; i < span->count * item; i++) {
        if (found[i] != v->expected[i]) {
            first = RF_MIN(first, i / item);
            bad++;
        }
    }
    wrong.first += first;
    if (is_earlier(&wrong, v)) {
        v->first_element = wrong.first;
        result->family = wrong.family;
        result->layer_index = wrong.layer_index;
        result->expert = wrong.expert;
        result->item_bytes = item;
        rf_runs_index(&v->job->plan->model->families[wrong.family], wrong.first,
                      result->index);
        memcpy(result->expected, v->expected + first * item, item);
        memcpy(result->found, found + first * item, item);
    }
    result->mismatched_bytes += bad;
}

/* `whole` is the run; `end` where those of its block end. */
static enum rf_status verify_run(struct findings *v,
                                 const struct rf_content_span *whole,
                                 uint32_t item, const uint8_t *found,
                                 struct rf_err *err)
{
    struct rf_content_span span = *whole;
    for (uint64_t left = whole->count; left > 0; left -= span.count) {
        span.count = RF_MIN(left, RF_CONTENT_CHUNK);
        RF_TRY(rf_content_read(v->content, &span, v->expected, err));
        if (memcmp(found, v->expected, span.count * item) != 0) {
            note_mismatches(v, &span, item, found);
        }
        span.first += span.count;
        found += span.count * item;
    }
    v->result.checked_bytes += whole->count * item;
    return RF_OK;
}

static struct rf_place place_of(const struct rf_verify_job *job,
                                const struct rf_piece *piece)
{
    return rf_place_of(job->arena, job->base_of, job->data, piece);
}

/* Block `i` of the batch, in its place or in buffer number i. */
static enum rf_status verify_block(size_t i, unsigned thread, void *data,
                                   struct rf_err *err)
{
    struct verification *v = data;
    const struct rf_block *block = &v->blocks[i];
    const struct rf_piece *piece = &v->layout->pieces[block->piece];
    const struct rf_family *family =
        &v->job->plan->model->families[piece->family];
    const struct rf_place place = place_of(v->job, piece);
    const uint8_t *buffer = rf_staging_buffer(&v->staging, i);
    const uint64_t end = rf_block_end(block, family);
    enum rf_status status = RF_OK;
    struct rf_run_walk walk;
    struct rf_stretch run;
    uint64_t offset;
    rf_block_walk(block, family, piece, place.stride, &walk, &offset);
    while (status == RF_OK && rf_runs_next(&walk, &run)) {
        const struct rf_content_span span = {piece->family, run.layer,
                                             run.expert,    run.element,
                                             run.elements,  end};
        const uint8_t *found =
            buffer != NULL ? buffer
                           : (uint8_t *)place.base + offset + run.offset;
        status =
            verify_run(&v->findings[thread], &span, block->item, found, err);
        buffer += buffer != NULL ? run.elements * block->item : 0;
    }
    return status;
}

static enum rf_status copy_batch(const struct verification *v, size_t n,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < n; i++) {
        const struct rf_block *block = &v->blocks[i];
        const struct rf_piece *piece = &v->layout->pieces[block->piece];
        const struct rf_place place = place_of(v->job, piece);
        status = rf_staging_copy(&v->staging, RF_STAGE_OUT, v->job->plan, piece,
                                 block, &place,
                                 rf_staging_buffer(&v->staging, i), err);
    }
    return status;
}

static enum rf_status verify_blocks(struct verification *v, size_t n,
                                    const atomic_bool *abort,
                                    struct rf_err *err)
{
    const bool staged = v->staging.buffers != NULL;
    enum rf_status status = RF_OK;
    struct rf_parallel parallel = {.threads = rf_read_threads(v->job->plan),
                                   .work = verify_block,
                                   .data = v,
                                   .abort = abort};
    while (status == RF_OK && n > 0) {
        parallel.jobs = staged ? RF_MIN(n, (size_t)RF_READ_THREADS) : n;
        status = staged ? copy_batch(v, parallel.jobs, err) : RF_OK;
        RF_THEN(status, rf_parallel_run(&parallel, err));
        v->blocks += parallel.jobs;
        n -= parallel.jobs;
    }
    return status;
}

/* A method that wrote there has written where it must not. */
static enum rf_status verify_padding(const struct rf_verify_job *job,
                                     const struct rf_memory_ops *memory,
                                     struct rf_verify_result *out,
                                     struct rf_err *err)
{
    struct rf_byte_span *spans = NULL;
    size_t n = 0;
    enum rf_status status =
        rf_runs_padding(job->plan, job->side, job->rank, &spans, &n, err);
    for (size_t i = 0; i < n; i++) {
        RF_THEN(status, rf_verify_poison(memory, job, spans[i].start,
                                         spans[i].end, out, err));
    }
    free(spans);
    return status;
}

static void join_findings(const struct verification *v,
                          struct rf_verify_result *out)
{
    struct findings all = {.job = v->job};
    for (unsigned t = 0; t < RF_READ_THREADS; t++) {
        const struct findings *one = &v->findings[t];
        const struct rf_content_span at = {one->result.family,
                                           one->result.layer_index,
                                           one->result.expert,
                                           one->first_element,
                                           1,
                                           0};
        const uint64_t checked =
            all.result.checked_bytes + one->result.checked_bytes;
        const uint64_t bad =
            all.result.mismatched_bytes + one->result.mismatched_bytes;
        if (one->result.mismatched_bytes > 0 && is_earlier(&at, &all)) {
            all.result = one->result;
            all.first_element = one->first_element;
        }
        all.result.checked_bytes = checked;
        all.result.mismatched_bytes = bad;
    }
    *out = all.result;
}

static enum rf_status open_findings(struct verification *v, struct rf_err *err)
{
    const struct rf_verify_job *job = v->job;
    enum rf_status status = RF_OK;
    for (unsigned t = 0; status == RF_OK && t < rf_read_threads(job->plan);
         t++) {
        v->findings[t].job = job;
        v->findings[t].expected = rf_xmalloc(8 * RF_CONTENT_CHUNK);
        status = rf_content_create(job->plan, job->side, job->iteration, NULL,
                                   &v->findings[t].content, err);
    }
    return status;
}

enum rf_status rf_verify(const struct rf_verify_job *job,
                         const struct rf_memory_ops *memory,
                         const atomic_bool *abort, struct rf_verify_result *out,
                         struct rf_err *err)
{
    size_t n;
    struct rf_block *blocks =
        rf_blocks_of(job->plan, job->side, job->rank, RF_READ_BLOCK_BYTES, &n);
    struct verification v = {
        .job = job,
        .layout = rf_plan_layout(job->plan, job->side, job->rank),
        .blocks = blocks};
    struct rf_verify_result result;
    enum rf_status status = open_findings(&v, err);
    RF_THEN(status, rf_staging_create(memory, blocks, n, &v.staging, err));
    RF_THEN(status, verify_blocks(&v, n, abort, err));
    if (status == RF_OK) {
        join_findings(&v, &result);
        status = verify_padding(job, memory, &result, err);
    }
    if (status == RF_OK) {
        *out = result;
    }
    rf_staging_free(&v.staging);
    for (unsigned t = 0; t < RF_READ_THREADS; t++) {
        rf_content_destroy(v.findings[t].content);
        free(v.findings[t].expected);
    }
    free(blocks);
    return status;
}

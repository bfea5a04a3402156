/*
 * Verification. See verify.h.
 *
 * Expected content is made in a buffer that stays in the first caches and
 * compared; only a difference is examined byte by byte. Each thread has its own
 * findings, joined at the end, so that the first mismatch does not depend on
 * which thread found it.
 */
#include "worker/content/verify.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/method/runs.h"
#include "worker/content/staging.h"

/* Results of one thread. */
struct findings {
    const struct rf_content_job *job;
    struct rf_content *content;
    struct rf_verify_result result;
    uint64_t first_element; /* of result's first mismatch */
    uint8_t *expected;      /* RF_CONTENT_CHUNK elements */
};

struct verification {
    const struct rf_content_job *job;
    struct findings findings[RF_READ_THREADS];
};

/* Whether the mismatch of element `a` comes before that of `b`. */
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
        const struct rf_family family = rf_content_family(v->job, wrong.family);
        v->first_element = wrong.first;
        result->family = wrong.family;
        result->layer_index = wrong.layer_index;
        result->expert = wrong.expert;
        result->item_bytes = item;
        rf_runs_index(&family, wrong.first, result->index);
        memcpy(result->expected, v->expected + first * item, item);
        memcpy(result->found, found + first * item, item);
    }
    result->mismatched_bytes += bad;
}

static enum rf_status verify_run(const struct rf_staged_run *run,
                                 unsigned thread, void *data,
                                 struct rf_err *err)
{
    struct verification *verification = data;
    struct findings *v = &verification->findings[thread];
    struct rf_content_span span = run->span;
    const uint8_t *found = run->at;
    for (uint64_t left = run->span.count; left > 0; left -= span.count) {
        span.count = RF_MIN(left, RF_CONTENT_CHUNK);
        RF_TRY(rf_content_read(v->content, &span, v->expected, err));
        if (memcmp(found, v->expected, span.count * run->item) != 0) {
            note_mismatches(v, &span, run->item, found);
        }
        span.first += span.count;
        found += span.count * run->item;
    }
    v->result.checked_bytes += run->bytes;
    return RF_OK;
}

static void join_findings(const struct verification *v,
                          struct rf_verify_result *out)
{
    struct findings all = {.job = v->job};
    for (unsigned t = 0; t < RF_READ_THREADS; t++) {
        const struct findings *one = &v->findings[t];
        const struct rf_content_span at = {.family = one->result.family,
                                           .layer_index =
                                               one->result.layer_index,
                                           .expert = one->result.expert,
                                           .first = one->first_element,
                                           .count = 1};
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
    const struct rf_content_job *job = v->job;
    enum rf_status status = RF_OK;
    for (unsigned t = 0; status == RF_OK && t < rf_read_threads(job->plan);
         t++) {
        v->findings[t].job = job;
        v->findings[t].expected = rf_xmalloc(8 * RF_CONTENT_CHUNK);
        status = rf_content_create(job, NULL, &v->findings[t].content, err);
    }
    return status;
}

static enum rf_status verify_staged(const struct rf_content_job *job,
                                    const struct rf_memory_ops *memory,
                                    const atomic_bool *abort,
                                    struct rf_verify_result *out,
                                    struct rf_err *err)
{
    struct verification v = {.job = job};
    const struct rf_staging staging = {.job = job,
                                       .memory = memory,
                                       .way = RF_STAGE_OUT,
                                       .threads = rf_read_threads(job->plan),
                                       .abort = abort,
                                       .work = verify_run,
                                       .data = &v};
    size_t n;
    struct rf_block *blocks = rf_blocks_of(job, &n);
    enum rf_status status = open_findings(&v, err);
    RF_THEN(status, rf_staging_run(&staging, blocks, n, err));
    if (status == RF_OK) {
        join_findings(&v, out);
    }
    for (unsigned t = 0; t < RF_READ_THREADS; t++) {
        rf_content_destroy(v.findings[t].content);
        free(v.findings[t].expected);
    }
    free(blocks);
    return status;
}

enum rf_status rf_verify(const struct rf_content_job *job,
                         const struct rf_memory_ops *memory,
                         const atomic_bool *abort, struct rf_verify_result *out,
                         struct rf_err *err)
{
    const bool by_kernels =
        memory->verify != NULL && rf_content_is_pattern(job);
    struct rf_verify_result result = {0};
    enum rf_status status =
        by_kernels ? memory->verify(job, &result, err)
                   : verify_staged(job, memory, abort, &result, err);
    RF_THEN(status, rf_verify_padding(memory, job, &result, err));
    if (status == RF_OK) {
        *out = result;
    }
    return status;
}

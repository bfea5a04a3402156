/* Shared by all kinds of memory. See memory.h. */
#include "transport/method/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "transport/method/runs.h"

/* Bytes per copy from or to a device. */
#define CHUNK (UINT64_C(4) << 20)

const struct rf_rank_layout *rf_content_layout(const struct rf_content_job *job)
{
    return job->results != NULL
               ? &job->results->result
               : rf_plan_layout(job->plan, job->side, job->rank);
}

struct rf_family rf_content_family(const struct rf_content_job *job,
                                   uint32_t number)
{
    struct rf_family family;
    if (job->results != NULL) {
        return rf_plan_converted(job->plan, job->rank)->model.families[number];
    }
    family = job->plan->model->families[number];
    family.dtype = rf_plan_form(job->plan, job->side, number).dtype;
    return family;
}

struct rf_place rf_place_of(const struct rf_content_job *job,
                            const struct rf_piece *piece)
{
    struct rf_place place = {.base = NULL};
    memcpy(place.stride, piece->stride, sizeof(place.stride));
    if (job->base_of != NULL) {
        place.base =
            (void *)(uintptr_t)job->base_of(piece, place.stride, job->data);
    }
    if (place.base == NULL) {
        memcpy(place.stride, piece->stride, sizeof(place.stride));
        place.base = (uint8_t *)job->arena->base + piece->offset;
    }
    return place;
}

static void compare(const uint8_t *found, uint64_t at, uint64_t bytes,
                    uint8_t poison, struct rf_verify_result *out)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (found[i] == poison || out->mismatched_bytes++ > 0) {
            continue;
        }
        out->family = RF_NONE;
        out->index[0] = at + i;
        out->item_bytes = 1;
        out->expected[0] = poison;
        out->found[0] = found[i];
    }
}

enum rf_status rf_verify_poison(const struct rf_memory_ops *memory,
                                const struct rf_content_job *job, uint64_t from,
                                uint64_t to, struct rf_verify_result *out,
                                struct rf_err *err)
{
    const uint64_t most = RF_MIN(to - from, CHUNK);
    uint8_t *copy = rf_xmalloc(most);
    enum rf_status status = RF_OK;
    for (uint64_t at = from, n; status == RF_OK && at < to; at += n) {
        n = RF_MIN(to - at, most);
        status = memory->read(job->arena, at, n, copy, err);
        if (status == RF_OK) {
            compare(copy, at, n, rf_poison_byte(job->iteration), out);
        }
    }
    free(copy);
    return status;
}

/* The bytes of the job's arena that no piece covers. */
static enum rf_status list_padding(const struct rf_content_job *job,
                                   struct rf_byte_span **spans, size_t *n,
                                   struct rf_err *err)
{
    const struct rf_converted *converted =
        rf_plan_converted(job->plan, job->rank);
    const uint32_t n_families = job->results != NULL
                                    ? converted->model.n_families
                                    : job->plan->model->n_families;
    struct rf_family *families = rf_xcalloc(n_families, sizeof(*families));
    enum rf_status status;
    for (uint32_t f = 0; f < n_families; f++) {
        families[f] = rf_content_family(job, f);
    }
    status = rf_runs_padding(rf_content_layout(job), families,
                             job->arena->bytes, spans, n, err);
    free(families);
    return status;
}

enum rf_status rf_poison_padding(const struct rf_memory_ops *memory,
                                 const struct rf_content_job *job,
                                 struct rf_err *err)
{
    struct rf_byte_span *spans = NULL;
    size_t n = 0;
    uint64_t most = 0;
    uint8_t *poison;
    enum rf_status status = list_padding(job, &spans, &n, err);
    for (size_t i = 0; i < n; i++) {
        most = RF_MAX(most, spans[i].end - spans[i].start);
    }
    most = RF_MIN(most, CHUNK);
    poison = rf_xmalloc(most);
    memset(poison, rf_poison_byte(job->iteration), most);
    for (size_t i = 0; i < n; i++) {
        for (uint64_t at = spans[i].start; at < spans[i].end; at += most) {
            RF_THEN(status, memory->write(job->arena, at,
                                          RF_MIN(spans[i].end - at, most),
                                          poison, err));
        }
    }
    free(poison);
    free(spans);
    return status;
}

/* No method may write there. */
enum rf_status rf_verify_padding(const struct rf_memory_ops *memory,
                                 const struct rf_content_job *job,
                                 struct rf_verify_result *out,
                                 struct rf_err *err)
{
    struct rf_byte_span *spans = NULL;
    size_t n = 0;
    enum rf_status status = list_padding(job, &spans, &n, err);
    for (size_t i = 0; i < n; i++) {
        RF_THEN(status, rf_verify_poison(memory, job, spans[i].start,
                                         spans[i].end, out, err));
    }
    free(spans);
    return status;
}

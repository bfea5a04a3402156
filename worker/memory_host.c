/*
 * Host memory: allocation, fill, poison, verify. See transport/memory.h.
 *
 * An arena is a memfd mapped shared and touched whole at allocation, so that
 * page faults never fall into a timed region. Verification makes what each run
 * should hold in a buffer that stays in the first caches and compares; only a
 * difference is looked at byte by byte.
 */
#include "worker/memory_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "common/pattern.h"
#include "worker/content.h"
#include "worker/quantize.h"
#include "worker/runs.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static enum rf_status no_room(uint64_t bytes, struct rf_err *err)
{
    char wanted[32], available[32];
    return rf_err_set(
        err, RF_ERR_NOMEM, "wanted %s of host memory, %s available",
        rf_format_bytes(bytes, wanted, sizeof(wanted)),
        rf_format_bytes(rf_memory_available(), available, sizeof(available)));
}

/* Touches every page; kernels before 5.14 need it done by hand. */
static int populate(void *base, uint64_t bytes)
{
    if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) {
        return 0;
    }
    if (errno != EINVAL) {
        return -1;
    }
    for (uint64_t at = 0; at < bytes; at += 4096) {
        ((volatile uint8_t *)base)[at] = 0;
    }
    return 0;
}

static enum rf_status host_alloc(uint64_t bytes, struct rf_arena *out,
                                 struct rf_err *err)
{
    struct rf_arena arena = {.bytes = bytes, .fd = -1};
    enum rf_status status;
    if (bytes == 0) {
        *out = arena;
        return RF_OK;
    }
    if (bytes > (uint64_t)INT64_MAX || bytes > rf_memory_available()) {
        return no_room(bytes, err);
    }
    arena.fd = memfd_create("refit-arena", MFD_CLOEXEC);
    if (arena.fd < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "memfd_create");
    }
    if (ftruncate(arena.fd, (off_t)bytes) != 0) {
        status = errno == ENOSPC || errno == ENOMEM
                     ? no_room(bytes, err)
                     : rf_err_errno(err, RF_ERR_IO, errno,
                                    "size of an arena of %llu bytes",
                                    (unsigned long long)bytes);
        goto err_close;
    }
    arena.base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, 0);
    if (arena.base == MAP_FAILED) {
        status = errno == ENOMEM ? no_room(bytes, err)
                                 : rf_err_errno(err, RF_ERR_IO, errno, "mmap");
        goto err_close;
    }
    if (populate(arena.base, bytes) != 0) {
        status = no_room(bytes, err);
        goto err_unmap;
    }
    *out = arena;
    return RF_OK;
err_unmap:
    munmap(arena.base, bytes);
err_close:
    close(arena.fd);
    return status;
}

static void host_free(struct rf_arena *arena)
{
    if (arena->base != NULL) {
        munmap(arena->base, arena->bytes);
        close(arena->fd);
    }
    *arena = (struct rf_arena){.fd = -1};
}

static enum rf_status host_fill(const struct rf_plan *plan, enum rf_side side,
                                uint32_t rank, uint64_t iteration,
                                struct rf_arena *arena, struct rf_err *err)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, side, rank);
    struct rf_content *content = NULL;
    enum rf_status status =
        rf_content_create(plan, side, iteration, &content, err);
    for (size_t i = 0; status == RF_OK && i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        struct rf_run_walk walk;
        struct rf_stretch run;
        rf_runs_init(&walk, &plan->model->families[piece->family], &piece->box,
                     piece->stride,
                     rf_plan_item_bytes(plan, side, piece->family));
        while (status == RF_OK && rf_runs_next(&walk, &run)) {
            const struct rf_content_span span = {piece->family, run.layer,
                                                 run.expert, run.element,
                                                 run.elements};
            status = rf_content_read(
                content, &span,
                (uint8_t *)arena->base + piece->offset + run.offset, err);
        }
    }
    rf_content_destroy(content);
    return status;
}

static enum rf_status host_poison(uint64_t iteration, struct rf_arena *arena,
                                  struct rf_err *err)
{
    (void)err;
    if (arena->bytes > 0) {
        memset(arena->base, rf_poison_byte(iteration), arena->bytes);
    }
    return RF_OK;
}

struct verification {
    const struct rf_verify_job *job;
    struct rf_content *content;
    struct rf_verify_result *result;
    uint64_t first_element; /* of result's first mismatch */
    uint8_t *expected;      /* RF_CONTENT_CHUNK elements */
    uint32_t item;          /* bytes of an element of the piece under way */
};

/* Whether the first element of `span` comes before the first mismatch known so
 * far. */
static bool is_earlier(const struct verification *v,
                       const struct rf_content_span *span)
{
    const struct rf_verify_result *r = v->result;
    if (r->mismatched_bytes == 0 || span->family != r->family) {
        return r->mismatched_bytes == 0 || span->family < r->family;
    }
    if (span->layer_index != r->layer_index) {
        return span->layer_index < r->layer_index;
    }
    if (span->expert != r->expert) {
        return span->expert < r->expert;
    }
    return span->first < v->first_element;
}

static void note_mismatches(struct verification *v,
                            const struct rf_content_span *span,
                            const uint8_t *found)
{
    struct rf_verify_result *result = v->result;
    struct rf_content_span wrong = *span;
    const uint32_t item = v->item;
    uint64_t bad = 0, first = span->count;
    for (uint64_t i = 0; i < span->count * item; i++) {
        if (found[i] != v->expected[i]) {
            first = RF_MIN(first, i / item);
            bad++;
        }
    }
    wrong.first += first;
    if (is_earlier(v, &wrong)) {
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

static enum rf_status verify_run(struct verification *v, uint32_t family,
                                 const struct rf_stretch *run,
                                 const uint8_t *found, struct rf_err *err)
{
    struct rf_content_span span = {family, run->layer, run->expert,
                                   run->element, 0};
    for (uint64_t left = run->elements; left > 0; left -= span.count) {
        enum rf_status status;
        span.count = RF_MIN(left, RF_CONTENT_CHUNK);
        status = rf_content_read(v->content, &span, v->expected, err);
        if (status != RF_OK) {
            return status;
        }
        if (memcmp(found, v->expected, span.count * v->item) != 0) {
            note_mismatches(v, &span, found);
        }
        span.first += span.count;
        found += span.count * v->item;
    }
    v->result->checked_bytes += run->elements * v->item;
    return RF_OK;
}

/* Where the piece really lives, with its strides. */
static const uint8_t *base_of(const struct rf_verify_job *job,
                              const struct rf_piece *piece,
                              uint64_t stride[RF_BOX_DIMS])
{
    const void *base = NULL;
    memcpy(stride, piece->stride, sizeof(piece->stride));
    if (job->base_of != NULL) {
        base = job->base_of(piece, stride, job->data);
    }
    if (base == NULL) {
        memcpy(stride, piece->stride, sizeof(piece->stride));
        base = (const uint8_t *)job->arena->base + piece->offset;
    }
    return base;
}

static enum rf_status verify_piece(struct verification *v,
                                   const struct rf_piece *piece,
                                   struct rf_err *err)
{
    const struct rf_plan *plan = v->job->plan;
    uint64_t stride[RF_BOX_DIMS];
    const uint8_t *base = base_of(v->job, piece, stride);
    struct rf_run_walk walk;
    struct rf_stretch run;
    enum rf_status status = RF_OK;
    v->item = rf_plan_item_bytes(plan, v->job->side, piece->family);
    rf_runs_init(&walk, &plan->model->families[piece->family], &piece->box,
                 stride, v->item);
    while (status == RF_OK && rf_runs_next(&walk, &run)) {
        status = verify_run(v, piece->family, &run, base + run.offset, err);
    }
    return status;
}

/* Padding must still hold the poison: a method that wrote there has written
 * where it must not. It counts as mismatched, never as checked. */
static enum rf_status verify_padding(struct verification *v, struct rf_err *err)
{
    const struct rf_verify_job *job = v->job;
    const uint8_t *base = job->arena->base;
    const uint8_t poison = rf_poison_byte(job->iteration);
    struct rf_span *spans = NULL;
    size_t n = 0;
    enum rf_status status =
        rf_runs_padding(job->plan, job->side, job->rank, &spans, &n, err);
    for (size_t i = 0; status == RF_OK && i < n; i++) {
        for (uint64_t at = spans[i].start; at < spans[i].end; at++) {
            if (base[at] == poison) {
                continue;
            }
            if (v->result->mismatched_bytes++ == 0) {
                v->result->family = RF_NONE;
                v->result->index[0] = at;
                v->result->item_bytes = 1;
                v->result->expected[0] = poison;
                v->result->found[0] = base[at];
            }
        }
    }
    free(spans);
    return status;
}

static enum rf_status host_verify(const struct rf_verify_job *job,
                                  struct rf_verify_result *out,
                                  struct rf_err *err)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(job->plan, job->side, job->rank);
    struct rf_verify_result result = {0};
    struct verification v = {.job = job, .result = &result};
    enum rf_status status = rf_content_create(job->plan, job->side,
                                              job->iteration, &v.content, err);
    if (status != RF_OK) {
        return status;
    }
    v.expected = rf_xmalloc(8 * RF_CONTENT_CHUNK);
    for (size_t i = 0; status == RF_OK && i < layout->n_pieces; i++) {
        status = verify_piece(&v, &layout->pieces[i], err);
    }
    if (status == RF_OK) {
        status = verify_padding(&v, err);
    }
    if (status == RF_OK) {
        *out = result;
    }
    free(v.expected);
    rf_content_destroy(v.content);
    return status;
}

static enum rf_status host_flip(struct rf_arena *arena, uint64_t offset,
                                struct rf_err *err)
{
    if (offset >= arena->bytes) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "byte %llu lies outside the arena",
                          (unsigned long long)offset);
    }
    ((uint8_t *)arena->base)[offset] ^= 0xFF;
    return RF_OK;
}

static enum rf_status host_read(const struct rf_arena *arena, uint64_t offset,
                                uint64_t bytes, void *dst, struct rf_err *err)
{
    (void)err;
    memcpy(dst, (const uint8_t *)arena->base + offset, bytes);
    return RF_OK;
}

static void host_usage(uint64_t *used, uint64_t *available)
{
    *used = rf_memory_private();
    *available = rf_memory_available();
}

const struct rf_memory_ops rf_memory_host = {
    .name = "host",
    .alloc = host_alloc,
    .free = host_free,
    .fill = host_fill,
    .poison = host_poison,
    .verify = host_verify,
    .flip = host_flip,
    .read = host_read,
    .quantizer_create = rf_quantizer_create,
    .quantizer_run = rf_quantizer_run,
    .quantizer_destroy = rf_quantizer_destroy,
    .usage = host_usage,
};

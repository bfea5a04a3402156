/* Comparison of checkpoints, a kind of tensors per job. See compare.h. */
#include "checkpoint/compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/headers.h"
#include "checkpoint/slices.h"
#include "common/mem.h"
#include "common/parallel.h"

#define CHUNK_BYTES ((uint64_t)1 << 20)

struct comparison {
    json_t *before, *after; /* like rf_model.files */
    struct rf_checkpoint_changes *out;
};

/* Two open folders, and room for a chunk of each. */
struct readers {
    struct rf_checkpoint *before, *after;
    uint8_t *old, *new;
};

static int by_kind(const void *a, const void *b)
{
    return strcmp(((const struct rf_kind_changes *)a)->kind,
                  ((const struct rf_kind_changes *)b)->kind);
}

/* One for each kind. */
static void list_kinds(const json_t *tensors, struct rf_checkpoint_changes *out)
{
    const size_t most = json_object_size(tensors);
    const char *name;
    json_t *tensor;
    size_t n = 0;
    out->kinds = rf_xcalloc(most + 1, sizeof(*out->kinds));
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, tensor) {
        out->kinds[out->n++].kind = rf_checkpoint_kind(name);
    }
    qsort(out->kinds, out->n, sizeof(*out->kinds), by_kind);
    for (size_t i = 0; i < out->n; i++) {
        if (n > 0 && strcmp(out->kinds[n - 1].kind, out->kinds[i].kind) == 0) {
            free(out->kinds[i].kind);
        } else {
            out->kinds[n++] = out->kinds[i];
        }
    }
    out->n = n;
}

static uint64_t elements_of(const json_t *tensor)
{
    const json_t *extent;
    uint64_t elements = 1;
    size_t i;
    json_array_foreach (json_object_get(tensor, "shape"), i, extent) {
        elements *= (uint64_t)json_integer_value(extent);
    }
    return elements;
}

/* A type that is no dtype of models has been refused with the headers. */
static uint32_t width_of(const json_t *tensor)
{
    enum rf_dtype dtype = RF_U8;
    const char *name = json_string_value(json_object_get(tensor, "dtype"));
    return rf_dtype_parse(name, &dtype) ? rf_dtype_bytes(dtype) : 1;
}

static enum rf_status add_tensor(const struct readers *readers,
                                 const char *name, const json_t *tensor,
                                 struct rf_changes *changes, struct rf_err *err)
{
    const uint32_t width = width_of(tensor);
    struct rf_checkpoint_slice slice = {.end = elements_of(tensor) * width};
    RF_TRY(rf_checkpoint_slices_select(readers->before, name, err));
    RF_TRY(rf_checkpoint_slices_select(readers->after, name, err));
    rf_changes_begin(changes);
    for (; slice.at < slice.end; slice.at += slice.bytes) {
        slice.bytes = RF_MIN(slice.end - slice.at, CHUNK_BYTES);
        RF_TRY(rf_checkpoint_slices_read(readers->before, &slice, readers->old,
                                         err));
        RF_TRY(rf_checkpoint_slices_read(readers->after, &slice, readers->new,
                                         err));
        rf_changes_add(changes, readers->old, readers->new, slice.bytes / width,
                       width);
    }
    rf_changes_end(changes);
    return RF_OK;
}

static enum rf_status open_readers(const struct comparison *comparison,
                                   struct readers *out, struct rf_err *err)
{
    *out = (struct readers){.old = rf_xmalloc(CHUNK_BYTES),
                            .new = rf_xmalloc(CHUNK_BYTES)};
    RF_TRY(rf_checkpoint_slices_create(comparison->before, NULL, &out->before,
                                       err));
    return rf_checkpoint_slices_create(comparison->after, NULL, &out->after,
                                       err);
}

static void close_readers(struct readers *readers)
{
    rf_checkpoint_slices_destroy(readers->before);
    rf_checkpoint_slices_destroy(readers->after);
    free(readers->old);
    free(readers->new);
}

/* A job of rf_parallel: one kind. */
static enum rf_status compare_kind(size_t job, unsigned thread, void *data,
                                   struct rf_err *err)
{
    const struct comparison *comparison = data;
    struct rf_kind_changes *of = &comparison->out->kinds[job];
    json_t *tensors = json_object_get(comparison->before, "tensors"), *tensor;
    struct readers readers;
    const char *name;
    enum rf_status status = open_readers(comparison, &readers, err);
    (void)thread;
    json_object_foreach (tensors, name, tensor) {
        char *kind = rf_checkpoint_kind(name);
        if (status == RF_OK && strcmp(kind, of->kind) == 0) {
            status = add_tensor(&readers, name, tensor, &of->changes, err);
        }
        free(kind);
    }
    close_readers(&readers);
    return status;
}

enum rf_status rf_checkpoint_compare(const char *before, const char *after,
                                     struct rf_checkpoint_changes *out,
                                     struct rf_err *err)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct comparison comparison = {.out = out};
    struct rf_parallel parallel = {
        .threads = (unsigned)RF_MIN(RF_MAX(processors, 1), RF_PARALLEL_MAX),
        .work = compare_kind,
        .data = &comparison};
    enum rf_status status =
        rf_checkpoint_files_read(before, NULL, &comparison.before, err);
    RF_THEN(status, rf_checkpoint_files_read(after, comparison.before,
                                             &comparison.after, err));
    if (status == RF_OK) {
        list_kinds(json_object_get(comparison.before, "tensors"), out);
        parallel.jobs = out->n;
        status = rf_parallel_run(&parallel, err);
    }
    json_decref(comparison.before);
    json_decref(comparison.after);
    return status;
}

void rf_checkpoint_changes_free(struct rf_checkpoint_changes *changes)
{
    for (size_t i = 0; i < changes->n; i++) {
        rf_changes_free(&changes->kinds[i].changes);
        free(changes->kinds[i].kind);
    }
    free(changes->kinds);
}

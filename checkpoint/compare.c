/* Comparison of checkpoints, a tensor per job. See compare.h. */
#include "checkpoint/compare.h"

#include <pthread.h>
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
    struct tensor *tensors;
    struct readers *readers; /* of each thread */
    struct rf_checkpoint_changes *out;
    pthread_mutex_t lock; /* of out's changes */
};

struct tensor {
    const char *name;
    uint32_t width;
    enum rf_changes_order order;
    uint64_t bytes;
    size_t kind; /* in out->kinds */
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
static void list_kinds(json_t *tensors, struct rf_checkpoint_changes *out)
{
    const char *name;
    json_t *tensor;
    size_t n = 0;
    out->kinds = rf_xcalloc(json_object_size(tensors) + 1, sizeof(*out->kinds));
    json_object_foreach (tensors, name, tensor) {
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

/* By the name of a dtype in headers. */
static enum rf_changes_order order_of(const char *dtype)
{
    if (dtype[0] == 'I') {
        return RF_ORDER_SIGNED;
    }
    return dtype[0] == 'U' || strcmp(dtype, "BOOL") == 0 ? RF_ORDER_UNSIGNED
                                                         : RF_ORDER_FLOAT;
}

/* A dtype that models do not have counts as bytes. */
static struct tensor describe(const char *name, const json_t *tensor,
                              const struct rf_checkpoint_changes *all)
{
    const char *type = json_string_value(json_object_get(tensor, "dtype"));
    char *kind = rf_checkpoint_kind(name);
    const struct rf_kind_changes key = {.kind = kind};
    const struct rf_kind_changes *found =
        bsearch(&key, all->kinds, all->n, sizeof(key), by_kind);
    enum rf_dtype dtype = RF_U8;
    struct tensor out = {.name = name, .order = RF_ORDER_UNSIGNED};
    const json_t *extent;
    size_t i;
    if (rf_dtype_parse(type, &dtype)) {
        out.order = order_of(type);
    }
    out.width = rf_dtype_bytes(dtype);
    out.bytes = out.width;
    json_array_foreach (json_object_get(tensor, "shape"), i, extent) {
        out.bytes *= (uint64_t)json_integer_value(extent);
    }
    out.kind = (size_t)(found - all->kinds);
    free(kind);
    return out;
}

static enum rf_status add_tensor(const struct readers *readers,
                                 const struct tensor *tensor,
                                 struct rf_changes *changes, struct rf_err *err)
{
    struct rf_checkpoint_slice slice = {.end = tensor->bytes};
    RF_TRY(rf_checkpoint_slices_select(readers->before, tensor->name, err));
    RF_TRY(rf_checkpoint_slices_select(readers->after, tensor->name, err));
    rf_changes_begin(changes);
    for (; slice.at < slice.end; slice.at += slice.bytes) {
        slice.bytes = RF_MIN(slice.end - slice.at, CHUNK_BYTES);
        RF_TRY(rf_checkpoint_slices_read(readers->before, &slice, readers->old,
                                         err));
        RF_TRY(rf_checkpoint_slices_read(readers->after, &slice, readers->new,
                                         err));
        rf_changes_add(changes, readers->old, readers->new,
                       slice.bytes / tensor->width, tensor->width,
                       tensor->order);
    }
    rf_changes_end(changes);
    return RF_OK;
}

static enum rf_status open_readers(const struct comparison *comparison,
                                   struct readers *out, struct rf_err *err)
{
    out->old = rf_xmalloc(CHUNK_BYTES);
    out->new = rf_xmalloc(CHUNK_BYTES);
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

/* A job of rf_parallel: one tensor. */
static enum rf_status compare_tensor(size_t job, unsigned thread, void *data,
                                     struct rf_err *err)
{
    struct comparison *comparison = data;
    const struct tensor *tensor = &comparison->tensors[job];
    struct rf_changes changes = {0};
    const enum rf_status status =
        add_tensor(&comparison->readers[thread], tensor, &changes, err);
    if (status == RF_OK) {
        pthread_mutex_lock(&comparison->lock);
        rf_changes_sum(&comparison->out->kinds[tensor->kind].changes, &changes);
        pthread_mutex_unlock(&comparison->lock);
    }
    rf_changes_free(&changes);
    return status;
}

static enum rf_status compare_all(struct comparison *comparison,
                                  struct rf_err *err)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    json_t *tensors = json_object_get(comparison->before, "tensors"), *tensor;
    struct readers readers[RF_PARALLEL_MAX] = {{NULL}};
    struct rf_parallel parallel = {
        .threads = (unsigned)RF_MIN(RF_MAX(processors, 1), RF_PARALLEL_MAX),
        .work = compare_tensor,
        .data = comparison};
    enum rf_status status = RF_OK;
    const char *name;
    list_kinds(tensors, comparison->out);
    comparison->readers = readers;
    comparison->tensors =
        rf_xcalloc(json_object_size(tensors) + 1, sizeof(*comparison->tensors));
    json_object_foreach (tensors, name, tensor) {
        comparison->tensors[parallel.jobs++] =
            describe(name, tensor, comparison->out);
    }
    for (unsigned t = 0; status == RF_OK && t < parallel.threads; t++) {
        status = open_readers(comparison, &readers[t], err);
    }
    RF_THEN(status, rf_parallel_run(&parallel, err));
    for (unsigned t = 0; t < RF_PARALLEL_MAX; t++) {
        close_readers(&readers[t]);
    }
    for (size_t i = 0; i < comparison->out->n; i++) {
        rf_changes_settle(&comparison->out->kinds[i].changes);
    }
    free(comparison->tensors);
    return status;
}

enum rf_status rf_checkpoint_compare(const char *before, const char *after,
                                     struct rf_checkpoint_changes *out,
                                     struct rf_err *err)
{
    struct comparison comparison = {.out = out,
                                    .lock = PTHREAD_MUTEX_INITIALIZER};
    enum rf_status status =
        rf_checkpoint_files_read(before, NULL, &comparison.before, err);
    RF_THEN(status, rf_checkpoint_files_read(after, comparison.before,
                                             &comparison.after, err));
    RF_THEN(status, compare_all(&comparison, err));
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

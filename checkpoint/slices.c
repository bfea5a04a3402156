/*
 * Slices of checkpoint files. See slices.h.
 *
 * Files are opened at first use and stay open: a rank uses few of them. The
 * window holds bytes of the selected tensor; a request inside it is a memory
 * copy. Reads are plain pread(): docs/PERFORMANCE.md, "Reading a checkpoint",
 * compares other methods.
 */
#include "checkpoint/slices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

#define WINDOW_BYTES ((uint64_t)1 << 20)
/* From this size on, a system call costs less than a copy out of the window. */
#define DIRECT_BYTES ((uint64_t)64 << 10)

struct open_file {
    char *name;
    int fd;
};

struct tensor_source {
    const char *tensor, *file;
    int fd;
    uint64_t offset; /* of the tensor in the file */
};

struct rf_checkpoint {
    const char *folder;
    const json_t *tensors, *twins;
    struct open_file *files;
    size_t n_files, capacity;
    atomic_ullong *read_bytes;
    struct tensor_source own;  /* the selected tensor */
    struct tensor_source twin; /* must have its bytes; tensor NULL: no twin */
    uint8_t *window;
    uint64_t window_at, window_bytes; /* within the tensor; 0 bytes: empty */
};

enum rf_status rf_checkpoint_slices_create(const json_t *files,
                                           atomic_ullong *read_bytes,
                                           struct rf_checkpoint **out,
                                           struct rf_err *err)
{
    const char *folder = json_string_value(json_object_get(files, "folder"));
    const json_t *tensors = json_object_get(files, "tensors");
    struct rf_checkpoint *checkpoint;
    if (folder == NULL || !json_is_object(tensors)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "the checkpoint's folder or tensors are missing");
    }
    checkpoint = rf_xcalloc(1, sizeof(*checkpoint));
    checkpoint->folder = folder;
    checkpoint->tensors = tensors;
    checkpoint->twins = json_object_get(files, "twins");
    checkpoint->window = rf_xmalloc(WINDOW_BYTES);
    checkpoint->read_bytes = read_bytes;
    *out = checkpoint;
    return RF_OK;
}

void rf_checkpoint_slices_destroy(struct rf_checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return;
    }
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        close(checkpoint->files[i].fd);
        free(checkpoint->files[i].name);
    }
    free(checkpoint->files);
    free(checkpoint->window);
    free(checkpoint);
}

static enum rf_status open_file(struct rf_checkpoint *checkpoint,
                                const char *name, int *out, struct rf_err *err)
{
    char *path;
    int fd;
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        if (strcmp(checkpoint->files[i].name, name) == 0) {
            *out = checkpoint->files[i].fd;
            return RF_OK;
        }
    }
    path = rf_xasprintf("%s/%s", checkpoint->folder, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        enum rf_status status =
            rf_err_errno(err, RF_ERR_IO, errno, "%s: cannot open", path);
        free(path);
        return status;
    }
    free(path);
    RF_PUSH(checkpoint->files, checkpoint->n_files, checkpoint->capacity,
            ((struct open_file){rf_xstrdup(name), fd}));
    *out = fd;
    return RF_OK;
}

static enum rf_status find_source(struct rf_checkpoint *checkpoint,
                                  const char *tensor, struct tensor_source *out,
                                  struct rf_err *err)
{
    const json_t *entry = json_object_get(checkpoint->tensors, tensor);
    const char *file = json_string_value(json_object_get(entry, "file"));
    json_int_t offset = json_integer_value(json_object_get(entry, "offset"));
    int fd = -1;
    if (file == NULL || offset < 0) {
        return rf_err_set(err, RF_ERR_CONFIG, "the checkpoint has no tensor %s",
                          tensor);
    }
    RF_TRY(rf_err_within(open_file(checkpoint, file, &fd, err), err,
                         "tensor %s", tensor));
    *out = (struct tensor_source){
        json_object_iter_key(json_object_iter_at(
            (json_t *)(uintptr_t)checkpoint->tensors, tensor)),
        file, fd, (uint64_t)offset};
    return RF_OK;
}

enum rf_status rf_checkpoint_slices_select(struct rf_checkpoint *checkpoint,
                                           const char *tensor,
                                           struct rf_err *err)
{
    const char *twin =
        json_string_value(json_object_get(checkpoint->twins, tensor));
    struct tensor_source own, other = {.tensor = NULL};
    RF_TRY(find_source(checkpoint, tensor, &own, err));
    if (twin != NULL) {
        RF_TRY(find_source(checkpoint, twin, &other, err));
    }
    checkpoint->own = own;
    checkpoint->twin = other;
    checkpoint->window_bytes = 0;
    return RF_OK;
}

static enum rf_status read_source(const struct rf_checkpoint *checkpoint,
                                  const struct tensor_source *source,
                                  uint64_t at, uint64_t bytes, void *dst,
                                  struct rf_err *err)
{
    uint8_t *to = dst;
    const uint64_t whole = bytes;
    at += source->offset;
    while (bytes > 0) {
        ssize_t got = pread(source->fd, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            rf_err_errno(err, RF_ERR_IO, errno, "tensor %s: %s/%s: read",
                         source->tensor, checkpoint->folder, source->file);
            return RF_ERR_IO;
        }
        if (got == 0) {
            return rf_err_set(err, RF_ERR_IO,
                              "tensor %s: %s/%s: truncated at byte %llu",
                              source->tensor, checkpoint->folder, source->file,
                              (unsigned long long)at);
        }
        to += got;
        at += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    if (checkpoint->read_bytes != NULL) {
        atomic_fetch_add(checkpoint->read_bytes, whole);
    }
    return RF_OK;
}

/* Compares the bytes read from `at` on with those of the twin. */
static enum rf_status compare_twin(const struct rf_checkpoint *checkpoint,
                                   uint64_t at, uint64_t bytes,
                                   const uint8_t *have, struct rf_err *err)
{
    uint8_t *part = rf_xmalloc(WINDOW_BYTES);
    enum rf_status status = RF_OK;
    for (uint64_t done = 0, n; done < bytes && status == RF_OK; done += n) {
        n = RF_MIN(WINDOW_BYTES, bytes - done);
        status =
            read_source(checkpoint, &checkpoint->twin, at + done, n, part, err);
        if (status == RF_OK && memcmp(part, have + done, n) != 0) {
            status = rf_err_set(
                err, RF_ERR_CONFIG,
                "%s: %s differs from %s (in bytes %llu to %llu) although "
                "config.json sets \"tie_word_embeddings\"; set it to false if "
                "the model has a separate output head, or delete the tensor",
                checkpoint->folder, checkpoint->twin.tensor,
                checkpoint->own.tensor, (unsigned long long)(at + done),
                (unsigned long long)(at + done + n));
        }
    }
    free(part);
    return status;
}

static enum rf_status read_file(const struct rf_checkpoint *checkpoint,
                                uint64_t at, uint64_t bytes, void *dst,
                                struct rf_err *err)
{
    RF_TRY(read_source(checkpoint, &checkpoint->own, at, bytes, dst, err));
    return checkpoint->twin.tensor != NULL
               ? compare_twin(checkpoint, at, bytes, dst, err)
               : RF_OK;
}

/* Moves the window so that it holds the slice. */
static enum rf_status move_window(struct rf_checkpoint *checkpoint,
                                  const struct rf_checkpoint_slice *slice,
                                  struct rf_err *err)
{
    const uint64_t bytes = RF_MIN(WINDOW_BYTES, slice->end - slice->at);
    if (slice->at >= checkpoint->window_at &&
        slice->at + slice->bytes <=
            checkpoint->window_at + checkpoint->window_bytes) {
        return RF_OK;
    }
    checkpoint->window_bytes = 0; /* invalid if the read fails */
    RF_TRY(read_file(checkpoint, slice->at, bytes, checkpoint->window, err));
    checkpoint->window_at = slice->at;
    checkpoint->window_bytes = bytes;
    return RF_OK;
}

enum rf_status
rf_checkpoint_slices_read(struct rf_checkpoint *checkpoint,
                          const struct rf_checkpoint_slice *slice, void *dst,
                          struct rf_err *err)
{
    if (slice->bytes >= DIRECT_BYTES) {
        return read_file(checkpoint, slice->at, slice->bytes, dst, err);
    }
    RF_TRY(move_window(checkpoint, slice, err));
    memcpy(dst, checkpoint->window + (slice->at - checkpoint->window_at),
           slice->bytes);
    return RF_OK;
}

/*
 * Slices of checkpoint files. See checkpoint.h.
 *
 * Files are opened at first use and stay open: a rank touches few of them. The
 * window holds bytes of one file; a request inside it is a memory copy, a
 * request larger than it goes straight to the destination.
 */
#include "worker/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

#define WINDOW_BYTES ((uint64_t)4 << 20)

struct open_file {
    char *name;
    int fd;
};

struct rf_checkpoint {
    const char *folder;
    const json_t *tensors;
    struct open_file *files;
    size_t n_files, capacity;
    uint8_t *window;
    int window_fd;
    uint64_t window_start, window_bytes;
};

enum rf_status rf_checkpoint_create(const json_t *files,
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
    checkpoint->window = rf_xmalloc(WINDOW_BYTES);
    checkpoint->window_fd = -1;
    *out = checkpoint;
    return RF_OK;
}

void rf_checkpoint_destroy(struct rf_checkpoint *checkpoint)
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

static enum rf_status read_whole(int fd, const char *file, uint64_t at,
                                 uint64_t bytes, void *dst, struct rf_err *err)
{
    uint8_t *to = dst;
    while (bytes > 0) {
        ssize_t got = pread(fd, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return rf_err_errno(err, RF_ERR_IO, errno, "%s: read", file);
        }
        if (got == 0) {
            return rf_err_set(err, RF_ERR_IO,
                              "%s: ends at byte %llu, more was expected", file,
                              (unsigned long long)at);
        }
        to += got;
        at += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return RF_OK;
}

/* Through the window, which is moved where it does not hold the slice. */
static enum rf_status read_window(struct rf_checkpoint *checkpoint, int fd,
                                  const char *file, uint64_t start,
                                  const struct rf_checkpoint_slice *slice,
                                  struct rf_err *err)
{
    enum rf_status status;
    if (fd == checkpoint->window_fd && start >= checkpoint->window_start &&
        start + slice->bytes <=
            checkpoint->window_start + checkpoint->window_bytes) {
        return RF_OK;
    }
    checkpoint->window_fd = -1; /* not valid if the read fails */
    checkpoint->window_start = start;
    checkpoint->window_bytes =
        RF_MIN(WINDOW_BYTES, slice->tensor_bytes - slice->at);
    status = read_whole(fd, file, start, checkpoint->window_bytes,
                        checkpoint->window, err);
    if (status == RF_OK) {
        checkpoint->window_fd = fd;
    }
    return status;
}

enum rf_status rf_checkpoint_read(struct rf_checkpoint *checkpoint,
                                  const struct rf_checkpoint_slice *slice,
                                  void *dst, struct rf_err *err)
{
    const json_t *entry = json_object_get(checkpoint->tensors, slice->tensor);
    const char *file = json_string_value(json_object_get(entry, "file"));
    json_int_t offset = json_integer_value(json_object_get(entry, "offset"));
    uint64_t start = (uint64_t)offset + slice->at;
    enum rf_status status;
    int fd = -1;
    if (file == NULL || offset < 0) {
        return rf_err_set(err, RF_ERR_CONFIG, "the checkpoint has no tensor %s",
                          slice->tensor);
    }
    status = open_file(checkpoint, file, &fd, err);
    if (status == RF_OK && slice->bytes >= WINDOW_BYTES) {
        status = read_whole(fd, file, start, slice->bytes, dst, err);
    } else if (status == RF_OK) {
        status = read_window(checkpoint, fd, file, start, slice, err);
        if (status == RF_OK) {
            memcpy(dst, checkpoint->window + (start - checkpoint->window_start),
                   slice->bytes);
        }
    }
    if (status != RF_OK) {
        rf_err_wrap(err, "tensor %s", slice->tensor);
    }
    return status;
}

/* Writing files whole. See store.h. */
#include "common/store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(fd, data, size);
        if (put < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -1;
        }
        data += put;
        size -= (size_t)put;
    }
    return 0;
}

static int open_named(const char *temporary)
{
    return open(temporary,
                O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
}

/* A file without a name in `folder`, or one called `temporary`. */
static int open_new(const char *folder, const char *temporary, bool *named)
{
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    *named = false;
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ||
                   errno == EINVAL)) {
        *named = true;
        fd = open_named(temporary);
    }
    return fd;
}

/* Gives a file without a name one: `path` itself if that is free. */
static int give_name(int fd, const char *path, const char *temporary,
                     bool *named)
{
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
        return 0;
    }
    if (errno != EEXIST) {
        return -1;
    }
    (void)unlink(temporary); /* of a process that was killed */
    if (linkat(AT_FDCWD, self, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) != 0) {
        return -1;
    }
    *named = true;
    return 0;
}

static enum rf_status write_file(int fd, const char *path, const void *data,
                                 size_t size, struct rf_err *err)
{
    return write_all(fd, data, size) == 0 && fsync(fd) == 0
               ? RF_OK
               : rf_err_errno(err, RF_ERR_IO, errno, "%s: write", path);
}

static enum rf_status store_in(const char *folder, const char *path,
                               const char *temporary, const void *data,
                               size_t size, struct rf_err *err)
{
    enum rf_status status;
    bool named;
    int fd = open_new(folder, temporary, &named);
    if (fd < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    status = write_file(fd, path, data, size, err);
    if (status == RF_OK && !named &&
        give_name(fd, path, temporary, &named) != 0) {
        /* Without /proc no file gets a name later: one that has it at once. */
        close(fd);
        fd = open_named(temporary);
        if (fd < 0) {
            return rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
        }
        named = true;
        status = write_file(fd, path, data, size, err);
    }
    if (status == RF_OK && named && rename(temporary, path) != 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s: rename", path);
    }
    if (close(fd) != 0 && status == RF_OK) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s: close", path);
    }
    if (status != RF_OK && named) {
        unlink(temporary);
    }
    return status;
}

enum rf_status rf_store(const char *path, const void *data, size_t size,
                        struct rf_err *err)
{
    char *temporary = rf_xasprintf("%s.tmp", path);
    char *copy = rf_xstrdup(path);
    const char *folder = dirname(copy);
    enum rf_status status = store_in(folder, path, temporary, data, size, err);
    if (status == RF_OK) {
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            fsync(fd); /* the file is safe; some file systems refuse this */
            close(fd);
        }
    }
    free(copy);
    free(temporary);
    return status;
}

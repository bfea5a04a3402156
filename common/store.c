/*
 * Writes files atomically. See store.h.
 *
 * A regular file is replaced at the end of its symbolic links, so that the
 * links stay. Any other file stays in place and is written to. So is a target
 * of /proc/PID/fd, even a regular file: it is a process's open file, such as
 * standard output, and replacing it would take it away.
 */
#include "common/store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/folders.h"
#include "common/log.h"
#include "common/mem.h"

#define MAX_LINKS 40 /* as in the kernel */

int rf_write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t put = write(fd, at, size);
        if (put >= 0) {
            at += put;
            size -= (size_t)put;
        } else if (errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

/* --- Replacing a file ----------------------------------------------------- */

/* A name in an open folder, so that nobody can swap the folder meanwhile. */
struct place {
    int folder;
    char *name, *temporary;
    const char *path; /* of the file, for messages */
};

static enum rf_status no_place(const struct place *place, struct rf_err *err)
{
    return rf_err_errno(err, RF_ERR_IO, errno, "%s", place->path);
}

/* Splits `path` into its folder and its last name. */
static char *split(const char *path, char **name)
{
    const char *slash = strrchr(path, '/');
    *name = rf_xstrdup(slash != NULL ? slash + 1 : path);
    return slash == NULL   ? rf_xstrdup(".")
           : slash == path ? rf_xstrdup("/")
                           : rf_xasprintf("%.*s", (int)(slash - path), path);
}

/* Opens a folder. The last `own` levels are made if missing and must not be
 * links. -1 (errno) on failure. */
static int open_folder(const char *path, unsigned own)
{
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    char *name, *above;
    int upper, fd = -1, failed = 0;
    if (own == 0) {
        return open(path, flags);
    }
    above = split(path, &name);
    upper = open_folder(above, own - 1);
    if (upper >= 0) {
        (void)mkdirat(upper, name, RF_FOLDERS_MODE);
        fd = openat(upper, name, flags | O_NOFOLLOW);
        failed = errno;
        close(upper);
        errno = failed;
    }
    free(above);
    free(name);
    return fd;
}

static enum rf_status open_place(const char *path, unsigned own,
                                 struct place *out, struct rf_err *err)
{
    char *folder = split(path, &out->name);
    out->path = path;
    out->temporary = rf_xasprintf("%s.tmp", out->name);
    out->folder = open_folder(folder, own);
    free(folder);
    return out->folder >= 0 ? RF_OK : no_place(out, err);
}

static void close_place(struct place *place)
{
    rf_fd_close(&place->folder);
    free(place->name);
    free(place->temporary);
}

/* Replaces a leftover of a killed process. */
static int open_named(const struct place *place)
{
    (void)unlinkat(place->folder, place->temporary, 0);
    return openat(place->folder, place->temporary,
                  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
}

/* Opens a file without a name, or with the temporary one. */
static int open_new(const struct place *place, bool *named)
{
    int fd = openat(place->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    *named = false;
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ||
                   errno == EINVAL)) {
        *named = true;
        fd = open_named(place);
    }
    return fd;
}

/* Names a file that has none: its final name if that is free. */
static int give_name(int fd, const struct place *place, bool *named)
{
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, place->folder, place->name, AT_SYMLINK_FOLLOW) ==
        0) {
        return 0;
    }
    if (errno != EEXIST) {
        return -1;
    }
    (void)unlinkat(place->folder, place->temporary, 0);
    if (linkat(AT_FDCWD, self, place->folder, place->temporary,
               AT_SYMLINK_FOLLOW) != 0) {
        return -1;
    }
    *named = true;
    return 0;
}

static enum rf_status write_file(int fd, const char *path, const void *data,
                                 size_t size, struct rf_err *err)
{
    return rf_write_all(fd, data, size) == 0 && fsync(fd) == 0
               ? RF_OK
               : rf_err_errno(err, RF_ERR_IO, errno, "%s: write", path);
}

static enum rf_status store_at(const struct place *place, const void *data,
                               size_t size, struct rf_err *err)
{
    enum rf_status status;
    bool named;
    int fd = open_new(place, &named);
    if (fd < 0) {
        return no_place(place, err);
    }
    status = write_file(fd, place->path, data, size, err);
    if (status == RF_OK && !named && give_name(fd, place, &named) != 0) {
        /* Without /proc a file cannot be named later, so name it at once. */
        close(fd);
        fd = open_named(place);
        if (fd < 0) {
            return no_place(place, err);
        }
        named = true;
        status = write_file(fd, place->path, data, size, err);
    }
    if (status == RF_OK && named &&
        renameat(place->folder, place->temporary, place->folder, place->name) !=
            0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s: rename", place->path);
    }
    if (close(fd) != 0 && status == RF_OK) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s: close", place->path);
    }
    if (status != RF_OK && named) {
        unlinkat(place->folder, place->temporary, 0);
    }
    return status;
}

enum rf_status rf_store_own(const char *path, unsigned own_folders,
                            const void *data, size_t size, struct rf_err *err)
{
    struct place place;
    enum rf_status status = open_place(path, own_folders, &place, err);
    RF_THEN(status, store_at(&place, data, size, err));
    if (status == RF_OK) {
        int fd = openat(place.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            fsync(fd); /* the file is safe; some file systems refuse this */
            close(fd);
        }
    }
    close_place(&place);
    return status;
}

/* --- Writing to what is there --------------------------------------------- */

/* Turns a lost reader into an error of write() in this thread, whatever the
 * program does with SIGPIPE. */
static int write_to_reader(int fd, const char *data, size_t size)
{
    const struct timespec no_time = {0};
    sigset_t pipe_only, before, pending;
    int failed;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    sigpending(&pending);
    failed = rf_write_all(fd, data, size) == 0 ? 0 : errno;
    if (failed == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        (void)sigtimedwait(&pipe_only, NULL, &no_time);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return failed == 0 ? 0 : -1;
}

/* Like open(), but warns before waiting for a FIFO's reader. */
static int open_through(const char *path)
{
    const int flags = O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC;
    struct stat file;
    int fd = open(path, flags | O_NONBLOCK);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, flags);
        return fd;
    }
    if (errno != ENXIO || stat(path, &file) != 0 || !S_ISFIFO(file.st_mode)) {
        return -1;
    }
    rf_warn("%s: waiting for a reader", path);
    do {
        fd = open(path, flags);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static enum rf_status write_through(const char *path, const void *data,
                                    size_t size, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    int fd = open_through(path);
    if (fd < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    if (write_to_reader(fd, data, size) != 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s: write", path);
    }
    if (close(fd) != 0 && status == RF_OK) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s: close", path);
    }
    return status;
}

static enum rf_status write_to_output(const void *data, size_t size,
                                      struct rf_err *err)
{
    return fflush(stdout) == 0 &&
                   write_to_reader(STDOUT_FILENO, data, size) == 0
               ? RF_OK
               : rf_err_errno(err, RF_ERR_IO, errno, "standard output: write");
}

static bool is_in_proc(const char *path)
{
    char *copy = rf_xstrdup(path);
    struct statfs system;
    bool is = statfs(dirname(copy), &system) == 0 &&
              system.f_type == PROC_SUPER_MAGIC;
    free(copy);
    return is;
}

/* Takes `path`, a link to `to`; returns the path of the target. */
static char *follow(char *path, const char *to)
{
    char *next = to[0] == '/' ? rf_xstrdup(to)
                              : rf_xasprintf("%s/%s", dirname(path), to);
    free(path);
    return next;
}

/* Resolves the links of `path`; the file need not exist. NULL (errno) when the
 * links form a loop. *through: write to it instead of replacing it. */
static char *find_target(const char *path, bool *through)
{
    char *at = rf_xstrdup(path), to[PATH_MAX];
    struct stat file;
    *through = stat(path, &file) == 0 && !S_ISREG(file.st_mode);
    for (int links = 0; !*through; links++) {
        ssize_t size = readlink(at, to, sizeof(to) - 1);
        if (size < 0) {
            break; /* not a link */
        }
        if (links == MAX_LINKS) {
            free(at);
            errno = ELOOP;
            return NULL;
        }
        to[size] = '\0';
        *through = is_in_proc(at);
        at = *through ? at : follow(at, to);
    }
    return at;
}

enum rf_status rf_store(const char *path, const void *data, size_t size,
                        struct rf_err *err)
{
    bool through;
    char *target;
    enum rf_status status;
    if (strcmp(path, "-") == 0) {
        return write_to_output(data, size, err);
    }
    target = find_target(path, &through);
    if (target == NULL) {
        return rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    status = through ? write_through(target, data, size, err)
                     : rf_store_own(target, 0, data, size, err);
    free(target);
    return status;
}

static enum rf_status check_replacing(const char *path, struct rf_err *err)
{
    struct place place;
    enum rf_status status = open_place(path, 0, &place, err);
    bool named;
    int fd = status == RF_OK ? open_new(&place, &named) : -1;
    if (fd >= 0) {
        close(fd);
        if (named) {
            unlinkat(place.folder, place.temporary, 0);
        }
    } else if (status == RF_OK) {
        status = no_place(&place, err);
    }
    close_place(&place);
    return status;
}

bool rf_is_file(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

enum rf_status rf_store_check(const char *path, struct rf_err *err)
{
    struct stat file;
    bool through;
    char *target;
    enum rf_status status;
    if (strcmp(path, "-") == 0) {
        return RF_OK;
    }
    if (stat(path, &file) == 0 && S_ISDIR(file.st_mode)) {
        return rf_err_errno(err, RF_ERR_IO, EISDIR, "%s", path);
    }
    target = find_target(path, &through);
    if (target == NULL) {
        return rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    status = through ? RF_OK : check_replacing(target, err);
    free(target);
    return status;
}

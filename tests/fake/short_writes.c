/*
 * A disk that writes only half of the bytes given to pwrite(), for LD_PRELOAD.
 * The file that SHORT_WRITES names gets a line for each call: process, "write"
 * or "sync", path.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *what, int fd)
{
    const char *log = getenv("SHORT_WRITES");
    char link[32], path[PATH_MAX] = "";
    int to = log != NULL
                 ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                 : -1;
    if (to >= 0) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        (void)!readlink(link, path, sizeof(path) - 1);
        dprintf(to, "%d %s %s\n", (int)getpid(), what, path);
        close(to);
    }
}

int fsync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    if (real == NULL) {
        errno = ENOSYS;
        return -1;
    }
    note("sync", fd);
    return real(fd);
}

/* Which of the two a program calls depends on the size of its off_t. */
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    if (real == NULL) {
        errno = ENOSYS;
        return -1;
    }
    note("write", fd);
    return real(fd, from, (size + 1) / 2, at);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    return pwrite64(fd, from, size, at);
}

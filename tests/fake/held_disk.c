/*
 * A disk that hangs, for LD_PRELOAD: while the file that HELD_DISK names
 * exists, fsync() and pread() make "<that file>.reached" and do not return.
 * HELD_SYNC likewise for fsync() alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_while_held(const char *variable)
{
    const char *hold = getenv(variable);
    if (hold != NULL && access(hold, F_OK) == 0) {
        char reached[PATH_MAX];
        snprintf(reached, sizeof(reached), "%s.reached", hold);
        close(open(reached, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        while (access(hold, F_OK) == 0) {
            usleep(10000);
        }
    }
}

int fsync(int fd)
{
    int (*real)(int);
    wait_while_held("HELD_DISK");
    wait_while_held("HELD_SYNC");
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    if (real == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return real(fd);
}

/* Which of the two a program calls depends on the size of its off_t. */
ssize_t pread64(int fd, void *out, size_t size, off64_t at)
{
    ssize_t (*real)(int, void *, size_t, off64_t);
    wait_while_held("HELD_DISK");
    *(void **)&real = dlsym(RTLD_NEXT, "pread64");
    if (real == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return real(fd, out, size, at);
}

ssize_t pread(int fd, void *out, size_t size, off_t at)
{
    return pread64(fd, out, size, at);
}

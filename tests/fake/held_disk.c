/*
 * A disk that hangs, for LD_PRELOAD: while the file that HELD_DISK names
 * exists, fsync() makes "<that file>.reached" and does not return.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int fsync(int fd)
{
    const char *hold = getenv("HELD_DISK");
    int (*real)(int);
    if (hold != NULL && access(hold, F_OK) == 0) {
        char reached[PATH_MAX];
        snprintf(reached, sizeof(reached), "%s.reached", hold);
        close(open(reached, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        while (access(hold, F_OK) == 0) {
            usleep(10000);
        }
    }
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    if (real == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return real(fd);
}

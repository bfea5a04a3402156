/*
 * For LD_PRELOAD: fsync() and fdatasync() that do what the file named by
 * RF_FAULT_FSYNC says: "fail" makes them fail with EIO, "hang" has them wait
 * until the file is gone, noting so in control/hung beside it; without the file
 * they do their work.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 50000

/* What the file says now: 'f', 'h', or 0 where there is none. */
static char wanted(void)
{
    const char *path = getenv("RF_FAULT_FSYNC");
    char word = 0;
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && read(fd, &word, 1) != 1) {
        word = 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return word;
}

static void note_hang(void)
{
    char path[4096];
    const char *file = getenv("RF_FAULT_FSYNC");
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    FILE *note;
    if (slash == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%.*s/control/hung", (int)(slash - file),
             file);
    note = fopen(path, "we");
    if (note != NULL) {
        fputs("hung\n", note);
        fclose(note);
    }
}

static int sync_as_told(const char *name, int fd)
{
    int (*real)(int);
    void *symbol = dlsym(RTLD_NEXT, name);
    char word = wanted();
    memcpy(&real, &symbol, sizeof(real));
    if (word == 'f') {
        errno = EIO;
        return -1;
    }
    if (word == 'h') {
        note_hang();
        while (wanted() == 'h') {
            usleep(POLL_US);
        }
    }
    return real(fd);
}

int fsync(int fd)
{
    return sync_as_told("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_as_told("fdatasync", fd);
}

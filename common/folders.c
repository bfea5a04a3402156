/* Making and removing levels of a path. See folders.h. */
#include "common/folders.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"

/* The end of the level that begins at `at`, or after the slashes there. */
static size_t level_end(const char *path, size_t at)
{
    at += strspn(path + at, "/");
    return at + strcspn(path + at, "/");
}

static void remove_levels(const char *path, size_t old, size_t end)
{
    char *at = rf_xasprintf("%.*s", (int)end, path);
    while (end > old && rmdir(at) == 0) {
        while (end > 0 && at[end - 1] != '/') {
            end--;
        }
        while (end > 0 && at[end - 1] == '/') {
            end--;
        }
        at[end] = '\0';
    }
    free(at);
}

int rf_folders_make(const char *path, size_t *old)
{
    size_t before = 0, kept = 0;
    bool made = false;
    while (path[before] != '\0') {
        const size_t end = level_end(path, before);
        char *level = rf_xasprintf("%.*s", (int)end, path);
        const int failed = mkdir(level, RF_FOLDERS_MODE) == 0 ? 0 : errno;
        free(level);
        if (failed == 0 && !made) {
            made = true;
            kept = before;
        } else if (failed != 0 && failed != EEXIST) {
            remove_levels(path, made ? kept : before, before);
            errno = failed;
            return -1;
        }
        before = end;
    }
    *old = made ? kept : before;
    return 0;
}

void rf_folders_remove(const char *path, size_t old)
{
    size_t end = strlen(path);
    while (end > old && path[end - 1] == '/') {
        end--;
    }
    remove_levels(path, old, end);
}

void rf_folders_whose(const char *path, char out[RF_FOLDERS_WHOSE_SIZE])
{
    struct stat found;
    int error = errno;
    out[0] = '\0';
    if (lstat(path, &found) == 0) {
        snprintf(out, RF_FOLDERS_WHOSE_SIZE,
                 " (of uid %u, mode %04o; this is uid %u)",
                 (unsigned)found.st_uid, (unsigned)found.st_mode & 07777u,
                 (unsigned)geteuid());
    }
    errno = error;
}

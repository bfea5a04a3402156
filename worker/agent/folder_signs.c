/*
 * Signs: refit-TOKEN-NODE in each folder. TOKEN belongs to the launch, so that
 * runs never interfere. See folder_signs.h. An unusable folder is reported with
 * the reason and is no error here: the coordinator refuses the scenarios that
 * need it.
 *
 * Names are looked up one by one, not listed: a network file system may answer
 * a listing from its cache, but not a name that it has never seen.
 */
#include "worker/agent/folder_signs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/folders.h"
#include "common/log.h"
#include "common/mem.h"
#include "transport/disk/disk_names.h"

#define PATH_BYTES 4096

static bool path_of(const struct rf_msg_boot *boot, const char *folder,
                    uint32_t node, char out[PATH_BYTES])
{
    int n = snprintf(out, PATH_BYTES, "%s/refit-%s-%" PRIu32, folder,
                     boot->shared->token, node);
    return n > 0 && n < PATH_BYTES;
}

/* 0 or an errno. */
static int leave_one(const struct rf_msg_boot *boot, const char *folder)
{
    static const uint8_t no_key[RF_DATA_KEY_BYTES];
    char path[PATH_BYTES], label[RF_DISK_LABEL_SIZE];
    int fd;
    if (!path_of(boot, folder, boot->node, path)) {
        return ENAMETOOLONG;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    /* On a full disk it stays empty, which is enough for a sign. */
    if (rf_disk_label(no_key, getpid(), label) &&
        write(fd, label, strlen(label)) < 0) {
        rf_debug("%s is empty: %s", path, strerror(errno));
    }
    close(fd);
    return 0;
}

static char *refused(const char *what, const char *path, int error)
{
    char whose[RF_FOLDERS_WHOSE_SIZE] = "";
    if (error == EACCES) {
        rf_folders_whose(path, whose);
    }
    return rf_xasprintf("%s%s%s", what, strerror(error), whose);
}

/* `read`: nodes read each other's files there, which have the mode of signs. */
static void look(const struct rf_msg_boot *boot, const char *folder, bool read,
                 struct rf_msg_folder *out)
{
    struct rf_integers *seen = &out->sees;
    char path[PATH_BYTES];
    seen->list = rf_xcalloc(boot->shared->nodes, sizeof(*seen->list));
    for (uint32_t node = 0; node < boot->shared->nodes; node++) {
        if (node == boot->node || !path_of(boot, folder, node, path) ||
            access(path, F_OK) != 0) {
            continue;
        }
        seen->list[seen->n++] = node;
        /* It may be gone by now. */
        if (read && out->error == NULL && access(path, R_OK) != 0 &&
            errno == EACCES) {
            out->error = refused("files of other nodes: ", path, errno);
        }
    }
}

/* Frees even an empty list: the survey's is allocated. */
static void forget_folders(struct rf_msg_hello *hello)
{
    while (hello->n_folders > 0) {
        rf_schema_free(&rf_msg_folder_schema,
                       &hello->folders[--hello->n_folders]);
    }
    free(hello->folders);
}

void rf_folder_signs_leave(const struct rf_msg_boot *boot,
                           struct rf_msg_hello *hello, size_t *old)
{
    const size_t n = boot->shared != NULL ? boot->shared->folders.n : 0;
    const char *exported = n > 0 ? boot->shared->exported : NULL;
    forget_folders(hello);
    hello->folders = rf_xcalloc(n, sizeof(*hello->folders));
    for (; hello->n_folders < n; hello->n_folders++) {
        struct rf_msg_folder *out = &hello->folders[hello->n_folders];
        const char *folder = boot->shared->folders.list[hello->n_folders];
        const bool make = exported != NULL && strcmp(folder, exported) == 0;
        int failed = make && rf_folders_make(folder, old) != 0 ? errno : 0;
        rf_disk_sweep(folder, boot->shared->token, NULL, 0);
        failed = failed != 0 ? failed : leave_one(boot, folder);
        rf_schema_init(&rf_msg_folder_schema, out);
        out->path = rf_xstrdup(folder);
        out->error = failed != 0 ? refused("", folder, failed) : NULL;
        look(boot, folder, !make, out);
    }
}

void rf_folder_signs_remove(const struct rf_msg_boot *boot, bool all)
{
    for (size_t i = 0; boot->shared != NULL && i < boot->shared->folders.n;
         i++) {
        for (uint32_t node = 0; node < boot->shared->nodes; node++) {
            char path[PATH_BYTES];
            if ((all || node == boot->node) &&
                path_of(boot, boot->shared->folders.list[i], node, path)) {
                unlink(path);
            }
        }
    }
}

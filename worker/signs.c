/*
 * Signs: refit-TOKEN-NODE in each folder, with a token of the launch, so that
 * runs never meet. See signs.h. A folder that cannot be used is told with the
 * reason and does no harm: the coordinator refuses the scenarios that want it.
 *
 * Names are looked up one by one and not listed: a network file system may
 * answer a listing from its cache, but not a name that it has never seen.
 */
#include "worker/signs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

#define PATH_BYTES 4096

static bool path_of(const struct rf_boot *boot, const char *folder,
                    uint32_t node, char out[PATH_BYTES])
{
    int n = snprintf(out, PATH_BYTES, "%s/refit-%s-%" PRIu32, folder,
                     boot->shared_token, node);
    return n > 0 && n < PATH_BYTES;
}

/* 0 or an errno. */
static int leave_one(const struct rf_boot *boot, const char *folder)
{
    char path[PATH_BYTES];
    int fd;
    if (!path_of(boot, folder, (uint32_t)boot->node, path)) {
        return ENAMETOOLONG;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

static json_t *look(const struct rf_boot *boot, const char *folder)
{
    char path[PATH_BYTES];
    json_t *seen = json_array();
    for (uint32_t node = 0; node < boot->shared_nodes; node++) {
        if ((json_int_t)node != boot->node &&
            path_of(boot, folder, node, path) && access(path, F_OK) == 0) {
            json_array_append_new(seen, json_integer(node));
        }
    }
    return seen;
}

json_t *rf_signs_leave(const struct rf_boot *boot)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(boot->shared_folders); i++) {
        json_t *folder = json_array_get(boot->shared_folders, i);
        int failed = leave_one(boot, json_string_value(folder));
        const char *why = strerror(failed);
        json_array_append_new(
            list, json_pack("{s:O, s:o, s:o}", "path", folder, "error",
                            failed != 0 ? rf_text_json(why, strlen(why))
                                        : json_null(),
                            "sees", look(boot, json_string_value(folder))));
    }
    return list;
}

void rf_signs_remove(const struct rf_boot *boot, bool all)
{
    for (size_t i = 0; i < json_array_size(boot->shared_folders); i++) {
        const char *folder =
            json_string_value(json_array_get(boot->shared_folders, i));
        for (uint32_t node = 0; node < boot->shared_nodes; node++) {
            char path[PATH_BYTES];
            if ((all || (json_int_t)node == boot->node) &&
                path_of(boot, folder, node, path)) {
                unlink(path);
            }
        }
    }
}

/* See result_folder.h. */
#include "coordinator/store/result_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/folders.h"
#include "common/mem.h"

/* "20260102T030405Z". */
static void stamp_now(char out[24])
{
    char stamp[24];
    size_t n = 0;
    rf_utc_stamp(stamp, sizeof(stamp));
    for (const char *c = stamp; *c != '\0'; c++) {
        if (*c != '-' && *c != ':') {
            out[n++] = *c;
        }
    }
    out[n] = '\0';
}

/* A new <time>-<name> in `out`. */
static enum rf_status make_in(const char *out, const char *name, char **folder,
                              struct rf_err *err)
{
    char stamp[24];
    stamp_now(stamp);
    for (int i = 1; i < 1000; i++) {
        char *path = i == 1 ? rf_xasprintf("%s/%s-%s", out, stamp, name)
                            : rf_xasprintf("%s/%s-%s-%d", out, stamp, name, i);
        int error;
        if (mkdir(path, RF_FOLDERS_MODE) == 0) {
            *folder = path;
            return RF_OK;
        }
        error = errno;
        free(path);
        if (error != EEXIST) {
            return rf_err_errno(err, RF_ERR_CONFIG, error,
                                "results folder in %s", out);
        }
    }
    return rf_err_set(
        err, RF_ERR_CONFIG,
        "results folder in %s: all names for this second are in use; try again",
        out);
}

enum rf_status rf_result_folder_make(const char *out, const char *name,
                                     size_t *old, char **folder,
                                     struct rf_err *err)
{
    enum rf_status status;
    size_t before;
    if (rf_folders_make(out, &before) != 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno,
                            "cannot create results folder %s", out);
    }
    status = make_in(out, name, folder, err);
    if (status != RF_OK) {
        rf_folders_remove(out, before);
        return status;
    }
    *old = before;
    return RF_OK;
}

/* Reading result folders back: for report, compare and predict. */
#ifndef RF_COORDINATOR_RESULT_FILES_H
#define RF_COORDINATOR_RESULT_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

struct rf_result_file {
    char *path;
    char *name; /* scenario's */
    char *run;  /* its folder's name, or path where two have one name */
    dev_t device;
    ino_t inode;
    json_t *result;
};

struct rf_result_set {
    /* Folders in the order given, scenarios in that of their run.json. */
    struct rf_result_file *files;
    size_t n, cap;
    size_t n_repeated; /* files that were given again, left out */
};

/*
 * Adds every scenario of `folder`: a run's folder (it has a run.json), or one
 * that holds run folders, of which all are taken, each once. Files whose
 * schema_version is newer than this program's are refused, other JSON files
 * ignored.
 */
enum rf_status rf_result_set_add(struct rf_result_set *set, const char *folder,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether the results are of more than one run. */
bool rf_result_set_has_runs(const struct rf_result_set *set);
void rf_result_set_free(struct rf_result_set *set);

#endif

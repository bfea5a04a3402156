/* Reading result folders back: for report, compare and predict. */
#ifndef RF_COORDINATOR_RECORDS_RESULT_FILES_H
#define RF_COORDINATOR_RECORDS_RESULT_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

struct rf_result_file {
    char *path;
    char *name;   /* scenario's, as one line of clean text; so is `run` */
    char *folder; /* of its run: the real path */
    char *run;    /* its folder's name, with folders above it where several
                     have that name */
    json_t *result;
    json_t *pooled; /* NULL, or the runs that `result` was made of (pool.h) */
};

struct rf_file_id {
    dev_t device;
    ino_t inode;
};

struct rf_result_set {
    /* Folders in the order given, scenarios in that of their run.json. */
    struct rf_result_file *files;
    size_t n, cap;
    size_t n_repeated; /* files that were given again, left out */
    size_t n_bad;      /* files that are missing or cannot be what they are
                          called; each has been warned of and left out */
    struct rf_file_id *seen; /* also bad ones */
    size_t n_seen, cap_seen;
};

/*
 * Adds every scenario of `folder`: a run's folder (it has a run.json), or one
 * that holds run folders, of which all are taken, each once. Files *.json
 * beside run.json that are no whole record, cannot be read, are of a newer
 * schema_version, copies or two of one scenario are left out with a warning
 * each. Fails when nothing is in it.
 */
enum rf_status rf_result_set_add(struct rf_result_set *set, const char *folder,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Adds one document that has been read from `path`, FOLDER/NAME.json. Takes it.
 * One that is no whole record of a scenario is an error, a text of one line. */
enum rf_status rf_result_set_take(struct rf_result_set *set, const char *path,
                                  json_t *document,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Refuses what is no whole record of a scenario, or of a newer schema_version.
 */
enum rf_status rf_result_check(const json_t *result, const char *path,
                               struct rf_err *err) RF_MUST_CHECK;

/* What a file of a set owns. */
void rf_result_file_free(struct rf_result_file *file);

/* Whether the results are of more than one run. */
bool rf_result_set_has_runs(const struct rf_result_set *set);
void rf_result_set_free(struct rf_result_set *set);

#endif

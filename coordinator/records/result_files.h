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
    char *name;   /* scenario's, one line of clean text, as is `run` */
    char *folder; /* real path of its run's folder */
    char *run;    /* its folder's name, with parent folders if several share
                     the name */
    json_t *result;
    json_t *pooled; /* NULL, or the runs pooled into `result` (pool.h) */
};

struct rf_file_id {
    dev_t device;
    ino_t inode;
};

struct rf_result_set {
    /* Folders in the order given, scenarios in that of run.json. */
    struct rf_result_file *files;
    size_t n, cap;
    size_t n_repeated; /* files given twice, left out */
    size_t n_bad;      /* missing or invalid files, left out with a warning
                          each */
    struct rf_file_id *seen; /* includes bad files */
    size_t n_seen, cap_seen;
};

/*
 * Adds every scenario of `path`: a run's folder (it has a run.json), one that
 * holds run folders, which are all added, each once, or the file of one
 * scenario. Leaves out, with a warning each, *.json files beside run.json that
 * are incomplete or unreadable, have a newer schema_version, are copies, or
 * share a scenario. Fails if the folder has no results, or the file is no
 * record.
 */
enum rf_status rf_result_set_add(struct rf_result_set *set, const char *path,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Adds one document read from `path`, FOLDER/NAME.json. Takes it. An incomplete
 * record is an error; the message is one line. */
enum rf_status rf_result_set_take(struct rf_result_set *set, const char *path,
                                  json_t *document,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Refuses an incomplete record, or one with a newer schema_version. */
enum rf_status rf_result_check(const json_t *result, const char *path,
                               struct rf_err *err) RF_MUST_CHECK;

/* Frees the contents of a set's file. */
void rf_result_file_free(struct rf_result_file *file);

/* Whether the results come from more than one run. */
bool rf_result_set_has_runs(const struct rf_result_set *set);

/* What tells result `i` from the others in other programs' formats: its
 * scenario, with the run and "/" before it if there are several runs. A new
 * reference. */
json_t *rf_result_set_title(const struct rf_result_set *set, size_t i);
void rf_result_set_free(struct rf_result_set *set);

#endif

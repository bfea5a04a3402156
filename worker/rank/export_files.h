/*
 * The files of an export in their folder: the first inference rank's work
 * before and after all have written. Until renamed, files have the names of
 * transport/disk/disk_names.h, by which the agent, or the next run on the node,
 * removes leftovers of failed processes.
 */
#ifndef RF_WORKER_RANK_EXPORT_FILES_H
#define RF_WORKER_RANK_EXPORT_FILES_H

#include <jansson.h>

#include "planner/plan/export.h"
#include "transport/disk/disk_names.h"

struct rf_export_files {
    const char *folder;
    const struct rf_export *export;
    const struct rf_plan *plan;
    const json_t *model; /* of START */
    char label[RF_DISK_LABEL_SIZE];
};

/* Temporary path of file number `i`. */
enum rf_status rf_export_files_path(const struct rf_export_files *files,
                                    uint32_t i, char out[RF_DISK_PATH_SIZE],
                                    struct rf_err *err) RF_MUST_CHECK;

/* Creates the files with their headers. Fails, and creates none, if the folder
 * has a model that is no former export. */
enum rf_status rf_export_files_make(const struct rf_export_files *files,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Gives the files their final names, replacing a former export, and adds the
 * index and configuration. A conflicting file that has appeared since is an
 * error. */
enum rf_status rf_export_files_name(const struct rf_export_files *files,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

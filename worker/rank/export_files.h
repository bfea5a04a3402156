/*
 * The files of an export in their folder: what the first inference rank does
 * before and after all have written. Until they have their names they are those
 * of transport/disk/disk_names.h, by which the agent, or the next run on the
 * node, removes what processes leave that failed.
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

/* The path of file number `i` until it has its name. */
enum rf_status rf_export_files_path(const struct rf_export_files *files,
                                    uint32_t i, char out[RF_DISK_PATH_SIZE],
                                    struct rf_err *err) RF_MUST_CHECK;

/* Makes the files with their headers, and nothing where the folder has a model
 * that is no former export. */
enum rf_status rf_export_files_make(const struct rf_export_files *files,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Gives the files their names, in place of a former export, and adds index and
 * configuration. What has come into the folder meanwhile is an error. */
enum rf_status rf_export_files_name(const struct rf_export_files *files,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * The artifact of a paper: a folder with results and all that others need to
 * check them and to run them again. docs/PAPER.md walks through it.
 */
#ifndef RF_COORDINATOR_ARTIFACT_ARTIFACT_H
#define RF_COORDINATOR_ARTIFACT_ARTIFACT_H

#include <jansson.h>

#include "common/err.h"
#include "coordinator/records/result_files.h"

/*
 * Writes the folder `path`: the run folders of the set, a cluster file for each
 * run, `schemas` ({name: schema}), environment.json, README.md with the
 * commands, appendix.tex, and SHA256SUMS. On failure nothing is left
 * (pack.h). Warns of records that cannot run again. RF_ERR_CONFIG if `path`
 * exists and is no empty folder, or a run cannot be packed; RF_ERR_IO if a file
 * cannot be read or written.
 */
enum rf_status rf_artifact_write(const struct rf_result_set *set,
                                 const json_t *schemas, const char *path,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif

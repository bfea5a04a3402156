/* A result folder of imported records. */
#ifndef RF_COORDINATOR_IMPORT_IMPORT_STORE_H
#define RF_COORDINATOR_IMPORT_IMPORT_STORE_H

#include <jansson.h>

#include "common/err.h"
#include "coordinator/store/result_json.h"

/*
 * Makes OUT/<UTC time>-<name> with a file for each of `records`, of which no two
 * have the same name, and run.json. The name is that of the file `path`. Of
 * `run`, maker and number count. The caller frees *folder. RF_ERR_CONFIG or
 * RF_ERR_IO; nothing is left then.
 */
enum rf_status rf_import_store(const char *out, const char *path,
                               const struct rf_result_run *run,
                               const json_t *records, char **folder,
                               struct rf_err *err) RF_MUST_CHECK;

#endif

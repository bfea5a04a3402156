/* Making a folder for results. */
#ifndef RF_COORDINATOR_STORE_RESULT_FOLDER_H
#define RF_COORDINATOR_STORE_RESULT_FOLDER_H

#include <stddef.h>

#include "common/err.h"

/*
 * Makes `out`, with its parents, if necessary, then a new OUT/<UTC time>-<name>
 * in it. The caller frees *folder; *old is the length of the part of `out` that
 * existed before, for rf_folders_remove(). RF_ERR_CONFIG if that cannot be
 * made; nothing is left then.
 */
enum rf_status rf_result_folder_make(const char *out, const char *name,
                                     size_t *old, char **folder,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

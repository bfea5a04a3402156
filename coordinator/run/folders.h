/*
 * Folders that all nodes have to share (method disk): which ones agents leave
 * signs in (BOOT's "shared"), and what they saw of each other (HELLO's
 * "folders"). Pure.
 */
#ifndef RF_COORDINATOR_RUN_FOLDERS_H
#define RF_COORDINATOR_RUN_FOLDERS_H

#include <jansson.h>

#include "coordinator/run/scenario.h"

/* BOOT's "shared" for the scenarios of `config`, or NULL: none needs a folder.
 * `token` is hexadecimal text of this launch. The caller owns it. */
json_t *rf_folders_wanted(const struct rf_config *config, const char *token);

/*
 * Whether the nodes of a case can use its folder and see in it what the others
 * write. RF_ERR_UNSUPPORTED with the hosts, the folder and what to do.
 * `hellos[i]` may be NULL; a node that says nothing of the folder is not
 * judged.
 */
enum rf_status rf_folders_check(const struct rf_scenario *scenario,
                                const json_t *const *hellos,
                                struct rf_err *err) RF_MUST_CHECK;

#endif

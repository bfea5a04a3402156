/*
 * Whether nodes share the folders of method disk and --export, judged by what
 * they saw of each other there (HELLO's "folders"). Pure.
 */
#ifndef RF_COORDINATOR_PREFLIGHT_FOLDERS_H
#define RF_COORDINATOR_PREFLIGHT_FOLDERS_H

#include <jansson.h>

#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/*
 * Whether the nodes of a scenario can use its folders and see each other's
 * files there. RF_ERR_UNSUPPORTED with the hosts, the folder and what to do.
 * `hellos[i]` may be NULL; a node that did not report the folder is not judged.
 */
enum rf_status rf_folders_check(const struct rf_scenario *scenario,
                                const struct rf_msg_hello *const *hellos,
                                struct rf_err *err) RF_MUST_CHECK;

#endif

/*
 * What a checkpoint's folder says of its tensors without their data: for
 * whoever has the folder, the coordinator or a node.
 */
#ifndef RF_CHECKPOINT_HEADERS_H
#define RF_CHECKPOINT_HEADERS_H

#include <jansson.h>

#include "common/err.h"

/*
 * Gives {"manifest": {name: {"shape", "dtype", "file", "offset"}}, "folder"}
 * and, where the folder has a config.json, that as "config": members of a
 * model's inline description (planner/model/model.h). May wait for a file
 * server. The result is the caller's. RF_ERR_CONFIG with all files that cannot
 * be read, or else all tensors that do not fit together or into the index.
 */
enum rf_status rf_checkpoint_headers_read(const char *folder, json_t **out,
                                          struct rf_err *err) RF_MUST_CHECK;

/* {file: digest} of what `headers`, as read above, say of each file and, as
 * "config.json", of the configuration. Those of the same files are the same on
 * every node, whatever the folder is called. A new reference. */
json_t *rf_checkpoint_headers_digests(const json_t *headers);

#endif

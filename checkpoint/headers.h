/*
 * Reads the description of a checkpoint's tensors from its folder, without
 * their data, on the coordinator or on a node.
 */
#ifndef RF_CHECKPOINT_HEADERS_H
#define RF_CHECKPOINT_HEADERS_H

#include <jansson.h>

#include "common/err.h"

/*
 * Returns {"manifest": {name: {"shape", "dtype", "file", "offset"}}, "folder"}
 * and, if the folder has a config.json, its content as "config": members of a
 * model's inline description (planner/model/model.h). May wait for a file
 * server. The caller owns the result. RF_ERR_CONFIG names all unreadable files,
 * or else all tensors that contradict each other or the index.
 */
enum rf_status rf_checkpoint_headers_read(const char *folder, json_t **out,
                                          struct rf_err *err) RF_MUST_CHECK;

/* {file: digest} over the facts about each file in `headers`, as read above,
 * and over the configuration, as "config.json". The same files give the same
 * digests on every node, under any folder name. A new reference. */
json_t *rf_checkpoint_headers_digests(const json_t *headers);

#endif

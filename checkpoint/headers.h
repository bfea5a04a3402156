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

/*
 * Reads the same folder for its data: *out is like rf_model.files (a new
 * reference), without twins. RF_ERR_CONFIG names the first tensor that it has
 * and `like`, an rf_model.files or NULL, lacks or has with another shape or
 * dtype, or the other way round.
 */
enum rf_status rf_checkpoint_files_read(const char *folder, const json_t *like,
                                        json_t **out,
                                        struct rf_err *err) RF_MUST_CHECK;

/* The name with one "#" for each number: the kind of tensor. The caller frees
 * it. */
char *rf_checkpoint_kind(const char *name);

/* {file: digest} over the facts about each file in `headers`, as read above,
 * and over the configuration, as "config.json". The same files give the same
 * digests on every node, under any folder name. A new reference. */
json_t *rf_checkpoint_headers_digests(const json_t *headers);

#endif

/*
 * The files that "model" of cluster.json names, read and put in place of their
 * paths, so that the description is complete in itself: the planner and every
 * rank work from the same text and no rank opens a configuration file.
 */
#ifndef RF_COORDINATOR_CONFIG_MODEL_FILE_H
#define RF_COORDINATOR_CONFIG_MODEL_FILE_H

#include <jansson.h>

#include "common/err.h"
#include "common/json.h"

/*
 * `node` is the "model" object. Gives the inline form that rf_model_from_json
 * takes: "config" and "manifest" paths become the objects in those files, the
 * folder of "checkpoint" becomes the manifest of its safetensors headers (no
 * tensor data is read). A folder that does not exist on this machine stays as
 * "checkpoint", with its absolute path, for rf_model_file_add_headers(). Paths
 * are relative to `folder`. The result is the caller's. RF_ERR_CONFIG with the
 * path and the reason.
 */
enum rf_status rf_model_file_inline(const struct rf_jnode *node,
                                    const char *folder, json_t **out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Replaces "checkpoint" of `model` by what a machine that has the folder read
 * there (checkpoint/headers.h). */
void rf_model_file_add_headers(json_t *model, json_t *headers);

/* Whether a model says itself what it is, by "config", "megatron" and so on. */
bool rf_model_file_has_source(const json_t *model);

#endif

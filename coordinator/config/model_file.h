/*
 * The files named by "model" of cluster.json, read and inserted in place of
 * their paths. The description is then self-contained: the planner and every
 * rank use the same text, and no rank opens a configuration file.
 */
#ifndef RF_COORDINATOR_CONFIG_MODEL_FILE_H
#define RF_COORDINATOR_CONFIG_MODEL_FILE_H

#include <jansson.h>

#include "common/err.h"
#include "common/json.h"

/*
 * `node` is the "model" object. Returns the inline form for rf_model_from_json:
 * "config" and "manifest" paths become the objects in those files, and the
 * folder of "checkpoint" becomes the manifest of its safetensors headers (no
 * tensor data is read). A folder missing on this machine stays as "checkpoint",
 * with its absolute path, for rf_model_file_add_headers(). Paths are relative
 * to `folder`. The caller owns the result. RF_ERR_CONFIG with the path and the
 * reason.
 */
enum rf_status rf_model_file_inline(const struct rf_jnode *node,
                                    const char *folder, json_t **out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Replaces "checkpoint" of `model` with the headers read on a machine that has
 * the folder (checkpoint/headers.h). */
void rf_model_file_add_headers(json_t *model, json_t *headers);

/* Whether a model has its own description: "config", "megatron" and so on. */
bool rf_model_file_has_source(const json_t *model);

/* The JSON Schema of "model" in a file: a new reference. */
json_t *rf_model_file_schema(void);

#endif

/* Models from a Hugging Face config.json. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_MODEL_CONFIG_H
#define RF_PLANNER_FAMILIES_MODEL_CONFIG_H

#include "common/json.h"
#include "planner/model/model.h"

struct rf_family_table;

/* The table for a description of that model type: its own "rules", else that of
 * the type or of its config's text_config. *out NULL: none. Borrows from
 * `node`; the caller destroys it. */
enum rf_status rf_model_open_table(const struct rf_jnode *node,
                                   const char *model_type,
                                   struct rf_family_table **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Fills an empty model. `node` is the whole inline description. */
enum rf_status rf_model_read_config(const struct rf_jnode *node,
                                    struct rf_model *model,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

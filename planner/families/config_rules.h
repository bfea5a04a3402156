/*
 * "rules": "config": rules from a Hugging Face config itself, its
 * base_model_tp_plan and base_model_ep_plan. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_CONFIG_RULES_H
#define RF_PLANNER_FAMILIES_CONFIG_RULES_H

#include "common/json.h"

/* A list of rules in the format of tables, owned by the caller. */
enum rf_status rf_model_config_rules(const struct rf_jnode *config,
                                     json_t **out,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

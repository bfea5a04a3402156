/* Words for kinds of layers. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_LAYER_WORDS_H
#define RF_PLANNER_FAMILIES_LAYER_WORDS_H

#include "planner/families/model_values.h"

/* Fails with the nearest known word if a list in the config of a built-in model
 * type, for example "layer_types", has one that Transformers does not know: no
 * condition of a table would hold for it. */
enum rf_status rf_layer_words_check(const struct rf_values *values,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif

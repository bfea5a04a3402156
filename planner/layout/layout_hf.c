/*
 * Hugging Face's layout, which has only the rules that all frameworks share:
 * tensors under their checkpoint names, unfused.
 */
#include "planner/layout/layout_section.h"

const struct rf_layout_ops rf_layout_hf = {
    .repeat_kv = true,
    .keep_stacked = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = rf_layout_make_params,
};

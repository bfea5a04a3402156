/* A rank's sections by the rules of all frameworks. Private to layout_*.c. */
#ifndef RF_PLANNER_LAYOUT_LAYOUT_SECTION_H
#define RF_PLANNER_LAYOUT_LAYOUT_SECTION_H

#include "planner/layout/layout_params.h"

/* Adds the parameter of a scheme, made of its members' sections. */
enum rf_status rf_layout_add_scheme(struct rf_layout_build *build,
                                    const struct rf_param_scheme *scheme,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Each scheme as one stacked parameter: `make` of hf, vllm and sglang. */
enum rf_status rf_layout_make_params(struct rf_layout_build *build,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

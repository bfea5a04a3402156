/* A rank's sections by the rules of all frameworks. Private to layout_*.c. */
#ifndef RF_PLANNER_LAYOUT_LAYOUT_SECTION_H
#define RF_PLANNER_LAYOUT_LAYOUT_SECTION_H

#include "planner/layout/layout_params.h"

/* The rank's section of a part of a family, as its role divides it
 * (planner/model/roles.h): experts over EP, the rest over TP or ETP, or whole.
 * Extents may be 0. */
enum rf_status rf_layout_section(const struct rf_layout_build *build,
                                 struct rf_param_member member,
                                 struct rf_section *out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Adds the parameter of a scheme, made of its members' sections. */
enum rf_status rf_layout_add_scheme(struct rf_layout_build *build,
                                    const struct rf_param_scheme *scheme,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Each scheme as one stacked parameter: `make` of hf, vllm and sglang. */
enum rf_status rf_layout_make_params(struct rf_layout_build *build,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif

/* The format that inference ranks hold: "quantize" of a scenario. */
#ifndef RF_PLANNER_SCENARIO_SPEC_QUANTIZE_H
#define RF_PLANNER_SCENARIO_SPEC_QUANTIZE_H

#include "planner/model/quant_format.h"
#include "planner/scenario/spec_fields.h"

/* Reads "quantize" of a scenario: a format's name, or an object that says also
 * where the conversion is made. *out is unchanged without the key. */
enum rf_status rf_quantize_spec_read(const struct rf_jnode *node,
                                     const struct rf_quant_format **out,
                                     struct rf_err *err) RF_MUST_CHECK;
json_t *rf_quantize_spec_write(const struct rf_quant_format *format);
json_t *rf_quantize_spec_schema(void);

#endif

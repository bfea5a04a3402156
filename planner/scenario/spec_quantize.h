/* The format that inference ranks hold, and who makes it: "quantize" of a
 * scenario. */
#ifndef RF_PLANNER_SCENARIO_SPEC_QUANTIZE_H
#define RF_PLANNER_SCENARIO_SPEC_QUANTIZE_H

#include "planner/model/quant_format.h"
#include "planner/scenario/spec_fields.h"

struct rf_quantize_spec {
    const struct rf_quant_format *format; /* NULL: nothing is converted */
    bool at_sender; /* before bytes move, else what has arrived */
    bool overlaps;  /* a group while others move */
    double eps;     /* least amax of a block of fp8; 0: RF_FP8_AMAX_FLOOR */
    bool divides;   /* fp8 blocks: x / s, else x · (1 / s) */
};

extern const struct rf_spec_field rf_quantize_fields[];

/* Reads "quantize" of a scenario: a format's name, or an object. *out is
 * unchanged without the key. */
enum rf_status rf_quantize_spec_read(const struct rf_jnode *node,
                                     struct rf_quantize_spec *out,
                                     const struct rf_spec_nodes *nodes,
                                     struct rf_err *err) RF_MUST_CHECK;
/* The object; a new reference, NULL if nothing is converted. */
json_t *rf_quantize_spec_write(const struct rf_quantize_spec *quantize,
                               const struct rf_spec_nodes *nodes);
json_t *rf_quantize_spec_schema(void);

#endif

/*
 * The model after "quantize": each converted matrix is replaced by the parts of
 * its format (planner/model/quant_format.h), which are families of their own.
 * All else is as before, with the same numbers. Pure.
 */
#ifndef RF_PLANNER_PLAN_CONVERTED_H
#define RF_PLANNER_PLAN_CONVERTED_H

#include "planner/layout/piece.h"
#include "planner/model/quant_format.h"

struct rf_converted {
    const struct rf_quant_format *format;
    const struct rf_model *before;
    struct rf_model model; /* borrows all but the list of families */
    /* Of each family: the one that it is, or is a part of, in the model before,
     * and which part. */
    struct rf_converted_from {
        uint32_t family, part;
    } * from;
    uint32_t *numbers; /* of families before, part by part */
    /* The first of the families before whose tensors of a layer and expert have
     * one scale with those of each, in formats with a scale of tensors. */
    uint32_t *joined;
};

/* Borrows `model`. */
struct rf_converted *rf_converted_make(const struct rf_model *model,
                                       const struct rf_quant_format *format);
void rf_converted_free(struct rf_converted *converted); /* NULL is fine */

/* The number of a part of a family that is converted, at least in some layers
 * or experts. */
uint32_t rf_converted_number(const struct rf_converted *converted,
                             uint32_t family, uint32_t part);

/* Bytes of an element, by family; freed with free(). */
uint32_t *rf_converted_items(const struct rf_converted *converted);

/* The box of a part of box `box` of a matrix. */
struct rf_box rf_converted_box(const struct rf_quant_part *part,
                               struct rf_box box);

#endif

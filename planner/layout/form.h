/*
 * Forms: how the elements of a tensor are represented, in a memory or between
 * ranks. Everything that turns elements into bytes asks here.
 */
#ifndef RF_PLANNER_LAYOUT_FORM_H
#define RF_PLANNER_LAYOUT_FORM_H

#include "planner/layout/piece.h"

struct rf_form {
    uint8_t dtype; /* enum rf_dtype */
};

/* Bytes of one element, and of all elements of a box. */
uint32_t rf_form_item(struct rf_form form);
uint64_t rf_form_bytes(struct rf_form form, const struct rf_box *box);

bool rf_form_equal(struct rf_form a, struct rf_form b);

/* The conversion between two forms, RF_CAST_NONE if they are equal.
 * mesh_rules.c refuses pairs without one. */
enum rf_cast rf_form_cast(struct rf_form from, struct rf_form to);

#endif

/*
 * Reference element casts on the processor, against which every method is
 * verified. Bit-exact: narrowing rounds to nearest even, widening loses
 * nothing. Separate from transport/codec/cast.h, which methods use, so that one
 * checks the other.
 */
#ifndef RF_WORKER_CONTENT_REFERENCE_CAST_H
#define RF_WORKER_CONTENT_REFERENCE_CAST_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/model/model.h"

/* Whether `from` can be cast to `to`; equal types always can. */
bool rf_reference_cast_supported(enum rf_dtype from, enum rf_dtype to);

/* Converts `count` elements; `src` and `dst` do not overlap and need no
 * alignment. The pair must be supported. */
void rf_reference_cast_elements(enum rf_dtype from, enum rf_dtype to,
                                const void *src, void *dst, size_t count);

#endif

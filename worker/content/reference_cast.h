/*
 * Element casts on the processor, the rule that verification holds every
 * method to. Exact to the bit: to narrower types round to nearest even, to
 * wider ones nothing is lost. Kept apart from transport/codec/cast.h, which
 * methods use, so that one is checked by the other.
 */
#ifndef RF_WORKER_CONTENT_REFERENCE_CAST_H
#define RF_WORKER_CONTENT_REFERENCE_CAST_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/model/model.h"

/* Whether elements of `from` can be made into `to`; equal types always can. */
bool rf_reference_cast_supported(enum rf_dtype from, enum rf_dtype to);

/* Converts `count` elements; `src` and `dst` do not overlap and need no
 * alignment. The pair must be supported. */
void rf_reference_cast_elements(enum rf_dtype from, enum rf_dtype to,
                                const void *src, void *dst, size_t count);

#endif

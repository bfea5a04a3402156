/*
 * Element casts of ops in host memory: round to nearest even, exact where the
 * wider type allows. Inputs need no alignment.
 */
#ifndef RF_TRANSPORT_CODEC_CAST_H
#define RF_TRANSPORT_CODEC_CAST_H

#include <stdint.h>

#include "planner/schedule/op.h"

/* Casts n elements from `src` to `dst`, which do not overlap. */
void rf_cast_items(enum rf_cast cast, void *dst, const void *src, uint64_t n);

#endif

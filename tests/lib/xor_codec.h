/* A codec whose items differ in size: groups of items, each a byte with their
 * number and then their bytes in the destination's form, all inverted. */
#ifndef RF_TESTS_LIB_XOR_CODEC_H
#define RF_TESTS_LIB_XOR_CODEC_H

#include "transport/codec/codec.h"

extern const struct rf_codec xor_codec;

#endif

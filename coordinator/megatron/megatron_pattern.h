/* The layers with experts, in the form of Megatron-LM's --moe-layer-freq. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_PATTERN_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_PATTERN_H

#include <jansson.h>

/*
 * "2": the integer. "([0]*3+[1]*2)*2": the list of integers that Python makes
 * of it, from brackets, parentheses, + and *. A new reference; NULL if the text
 * is neither, or the list is longer than any model.
 */
json_t *rf_megatron_pattern(const char *text);

#endif

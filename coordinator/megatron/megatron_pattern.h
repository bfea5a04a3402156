/* Which layers have experts, as Megatron-LM's --moe-layer-freq says it. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_PATTERN_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_PATTERN_H

#include <jansson.h>

/*
 * "2": the integer. "([0]*3+[1]*2)*2": the list that this is in Python, of
 * integers; brackets, parentheses, + and * are known. A new reference; NULL if
 * the text is neither, or the list longer than any model.
 */
json_t *rf_megatron_pattern(const char *text);

#endif

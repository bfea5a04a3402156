/* The values of Megatron-LM's flags. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_VALUES_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_VALUES_H

#include "coordinator/megatron/megatron_flags.h"

bool rf_megatron_has(const struct rf_megatron_args *args, const char *name);

/* The number or the word of a flag, or the fallback without it. */
json_int_t rf_megatron_number(const struct rf_megatron_args *args,
                              const char *name, json_int_t otherwise);
const char *rf_megatron_word(const struct rf_megatron_args *args,
                             const char *name, const char *otherwise);

/* A flag and the key for its value. */
struct rf_megatron_copied {
    const char *flag, *key;
    const char *needs; /* the flag that it depends on, or NULL */
};

/* Copies the given flags; those without effect become idle. */
void rf_megatron_copy(struct rf_megatron_args *args,
                      const struct rf_megatron_copied *list, size_t n,
                      json_t *out);

#endif

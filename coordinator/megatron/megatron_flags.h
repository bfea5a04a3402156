/*
 * The command line of Megatron-LM's refit benchmark, as accepted by
 * `refit-coord megatron`: flags that decide what moves, flags that do not, and
 * flags for a model or a mesh that this program does not describe.
 */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_FLAGS_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_FLAGS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* Both NULL for other commands. */
struct rf_megatron_args {
    json_t *values; /* object, by flag name without dashes: an integer, true,
                       a word, or a list of 0 and 1 for each layer */
    json_t *idle;   /* array: given flags that change nothing */
};

/*
 * Removes Megatron's flags and their values from argv[first...], in both forms,
 * "--flag value" and "--flag=value"; the rest, in order, is left for the
 * command's own options. The last of equal flags holds. RF_ERR_USAGE names the
 * flag. rf_megatron_args_free() frees `out`.
 */
enum rf_status rf_megatron_take(int *argc, char **argv, int first,
                                struct rf_megatron_args *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_megatron_args_free(struct rf_megatron_args *args);

/* Records a flag, without dashes, as one that changes nothing. */
void rf_megatron_is_idle(struct rf_megatron_args *args, const char *name);

/* The flag, without dashes, nearest to `word` ("--num-layer"); NULL: none is
 * near. */
const char *rf_megatron_nearest(const char *word);

#endif

/* Which environment variables matter to ranks. */
#ifndef RF_COMMON_VARIABLES_H
#define RF_COMMON_VARIABLES_H

#include <stdbool.h>

/* A constant instead of a run's random secret: never passed on. */
#define RF_VARIABLE_NCCL_ID "NCCL_COMM_ID"

/* Whether a variable affects ranks and their libraries: those of CUDA, NCCL,
 * NVSHMEM, UCX, glibc and this program. Ranks inherit them, results record
 * them. Excludes RF_VARIABLE_NCCL_ID. */
bool rf_variable_matters(const char *name);

/* Whether `name` is in a list that ends with NULL; an entry like "LC_" matches
 * every name with that prefix. */
bool rf_variable_in(const char *name, const char *const *names);

#endif

/* Which environment variables matter to ranks. */
#ifndef RF_COMMON_VARIABLES_H
#define RF_COMMON_VARIABLES_H

#include <stdbool.h>

/* A constant in place of the random secret of a run: never passed on. */
#define RF_VARIABLE_NCCL_ID "NCCL_COMM_ID"

/* Whether a variable sets what ranks and their libraries do: those of CUDA,
 * NCCL, NVSHMEM, UCX, glibc and this program. Ranks inherit them, results
 * record them. Not RF_VARIABLE_NCCL_ID. */
bool rf_variable_matters(const char *name);

/* Whether `name` is in a list that ends with NULL, where "LC_" stands for all
 * that begin with it. */
bool rf_variable_in(const char *name, const char *const *names);

#endif

/* See variables.h. */
#include "common/variables.h"

#include <stddef.h>
#include <string.h>

bool rf_variable_in(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        const size_t length = strlen(*names);
        const bool open_ended = (*names)[length - 1] == '_';
        if (open_ended ? strncmp(name, *names, length) == 0
                       : strcmp(name, *names) == 0) {
            return true;
        }
    }
    return false;
}

bool rf_variable_matters(const char *name)
{
    static const char *const names[] = {"CUDA_",          "NCCL_", "NVSHMEM_",
                                        "NVIDIA_",        "UCX_",  "REFIT_",
                                        "GLIBC_TUNABLES", NULL};
    return rf_variable_in(name, names) &&
           strcmp(name, RF_VARIABLE_NCCL_ID) != 0;
}

/* The table of launchers. */
#include "coordinator/cluster/launchers.h"

#include <string.h>

#include "common/mem.h"

static const struct rf_launcher_ops *const launchers[] = {
    &rf_launcher_ssh, &rf_launcher_local, &rf_launcher_manual,
    &rf_launcher_slurm};

const struct rf_launcher_ops *rf_launcher_find(const char *method)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(launchers); i++) {
        if (strcmp(launchers[i]->name, method) == 0) {
            return launchers[i];
        }
    }
    return NULL;
}

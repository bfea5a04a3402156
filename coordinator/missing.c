/* One line about nodes of which nothing was heard. See missing.h. More names
 * than it has room for are left out. */
#include "coordinator/missing.h"

#include <stdio.h>

#include "common/log.h"

void rf_missing_report(const struct rf_config *config, const struct rf_run *run,
                       const bool *joined)
{
    char hosts[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < config->n_nodes && used < sizeof(hosts); i++) {
        if (!joined[i] && rf_run_node_error(run, i) == NULL) {
            used += (size_t)snprintf(hosts + used, sizeof(hosts) - used, ", %s",
                                     config->node_names[i]);
        }
    }
    if (used > 0) {
        rf_error("not joined when the launch ended: %s", hosts + 2);
    }
}

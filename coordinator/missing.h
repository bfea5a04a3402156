/* Nodes that a launch has left out. */
#ifndef RF_COORDINATOR_MISSING_H
#define RF_COORDINATOR_MISSING_H

#include "coordinator/run.h"

/* Logs the names of nodes that neither have `joined` (by node) nor failed. */
void rf_missing_report(const struct rf_config *config, const struct rf_run *run,
                       const bool *joined);

#endif

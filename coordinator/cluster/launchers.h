/* The table of launchers. */
#ifndef RF_COORDINATOR_CLUSTER_LAUNCHERS_H
#define RF_COORDINATOR_CLUSTER_LAUNCHERS_H

#include "coordinator/launch/launch.h"

/* NULL: there is no launcher of that name. */
const struct rf_launcher_ops *rf_launcher_find(const char *method);

#endif

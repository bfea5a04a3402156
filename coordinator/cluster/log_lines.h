/* Output of agents and ranks as lines fit for display: cleaned, and without
 * secrets. */
#ifndef RF_COORDINATOR_CLUSTER_LOG_LINES_H
#define RF_COORDINATOR_CLUSTER_LOG_LINES_H

#include "transport/control/frame.h"

/* `rank` is RF_NONE for the agent. */
typedef void (*rf_log_line_fn)(uint32_t rank, const char *line, void *data);

/* Gives each non-empty line of a LOG frame to `take`. */
void rf_log_lines_of(const struct rf_frame *frame, rf_log_line_fn take,
                     void *data);
/* The same for one line of the agent. */
void rf_log_lines_one(const char *line, rf_log_line_fn take, void *data);

#endif

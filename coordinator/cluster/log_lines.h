/* What agents and ranks write, as lines that are fit to be shown: clean, and
 * without secrets. */
#ifndef RF_COORDINATOR_CLUSTER_LOG_LINES_H
#define RF_COORDINATOR_CLUSTER_LOG_LINES_H

#include "transport/control/frame.h"

/* `rank` is RF_NONE for the agent. */
typedef void (*rf_log_line_fn)(uint32_t rank, const char *line, void *data);

/* Gives each line of a LOG frame that is not empty to `take`. */
void rf_log_lines_of(const struct rf_frame *frame, rf_log_line_fn take,
                     void *data);
/* One line of the agent. */
void rf_log_lines_one(const char *line, rf_log_line_fn take, void *data);

#endif

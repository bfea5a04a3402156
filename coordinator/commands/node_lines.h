/* What nodes and their ranks write, as the user sees it: the first lines of
 * each, and how many more there were. -v shows all. */
#ifndef RF_COORDINATOR_COMMANDS_NODE_LINES_H
#define RF_COORDINATOR_COMMANDS_NODE_LINES_H

#include "coordinator/config/config.h"
#include "coordinator/scenario/attempt.h"

/* Shown of each rank in an attempt, and of each agent in the run. */
#define RF_NODE_LINES_SHOWN 50

struct rf_node_lines;

struct rf_node_lines *rf_node_lines_create(const struct rf_config *config);

/* A line of a rank, or with RF_NONE of the agent. */
void rf_node_lines_show(struct rf_node_lines *lines, uint32_t node,
                        uint32_t rank, const char *text);

/* An attempt begins: its ranks have not written anything. */
void rf_node_lines_begin(struct rf_node_lines *lines,
                         const struct rf_attempt *attempt);
/* It has ended. Says of each rank that wrote more how much that is, and which
 * log in `folder` has it. */
void rf_node_lines_end(const struct rf_node_lines *lines,
                       const struct rf_attempt *attempt, const char *folder);

/* Says the same of agents, which have no log. NULL is fine. */
void rf_node_lines_destroy(struct rf_node_lines *lines);

#endif

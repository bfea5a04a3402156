/* Output of nodes and ranks as shown to the user: the first lines, then the
 * number of further lines. -v shows all. */
#ifndef RF_COORDINATOR_COMMANDS_NODE_LINES_H
#define RF_COORDINATOR_COMMANDS_NODE_LINES_H

#include "coordinator/config/config.h"
#include "coordinator/scenario/attempt.h"

/* Lines shown per agent and run, and of all ranks per attempt: what one meets,
 * such as a full /dev/shm, most of them meet. */
#define RF_NODE_LINES_SHOWN 50
#define RF_NODE_LINES_OF_RANKS 20

struct rf_node_lines;

struct rf_node_lines *rf_node_lines_create(const struct rf_config *config);

/* A line from a rank, or, with RF_NONE, from the agent. */
void rf_node_lines_show(struct rf_node_lines *lines, uint32_t node,
                        uint32_t rank, const char *text);

/* An attempt begins: resets the line counts of ranks. */
void rf_node_lines_begin(struct rf_node_lines *lines,
                         const struct rf_attempt *attempt);
/* The attempt has ended, perhaps before it began. For each rank with hidden
 * lines, logs their number and the log in `folder` that has them. */
void rf_node_lines_end(struct rf_node_lines *lines,
                       const struct rf_attempt *attempt, const char *folder);

/* The same for agents, which have no log. NULL is fine. */
void rf_node_lines_destroy(struct rf_node_lines *lines);

#endif

/* All nodes reached, for commands that want to know something of them and run
 * nothing there. */
#ifndef RF_COORDINATOR_COMMANDS_REACH_NODES_H
#define RF_COORDINATOR_COMMANDS_REACH_NODES_H

#include "coordinator/advice/reach_pairs.h"
#include "coordinator/cluster/cluster.h"
#include "coordinator/preflight/inspect.h"
#include "coordinator/preflight/join.h"

#define RF_REACH_S 15 /* for nodes to reach each other; longer than they take */

struct rf_reach_nodes {
    /* Given, borrowed. */
    const struct rf_config *config;
    uint32_t limit_s;                     /* for joining; 0: as config says */
    struct rf_reach_pairs *pairs;         /* which nodes reach each other */
    struct rf_preflight_inspect *inspect; /* NULL: no headers are asked for */
    struct rf_findings *findings; /* gets an error for each node that has not
                                     joined or was lost */
    /* Found. */
    struct rf_preflight_join *join;
    struct rf_cluster_clock *clocks; /* by node */
    enum rf_verdict headers; /* of `inspect`; NEXT: all have answered it */
    int signal;              /* that ended it; 0: none */
};

/* Starts an agent on every node, waits until each has joined or is lost, asks
 * what `reach` says, and ends them; all on a loop of its own. A second signal
 * ends the process. */
enum rf_status rf_reach_nodes(struct rf_reach_nodes *reach,
                              struct rf_err *err) RF_MUST_CHECK;
/* Frees what was found. */
void rf_reach_nodes_free(struct rf_reach_nodes *reach);

#endif

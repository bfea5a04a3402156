/*
 * Physical lower bounds from link figures. Nothing here is a
 * constant of the code: figures are measured in the same run (link probe) or
 * given in cluster.json.
 */
#ifndef RF_PLANNER_PREDICT_BOUNDS_H
#define RF_PLANNER_PREDICT_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/schedule/schedule.h"

/* Figures of one node and of the links between nodes. GB/s = 1e9 bytes/s. */
struct rf_capacities {
    uint32_t n_nodes;
    bool devices; /* copies are in GPU memory, every rank in its own GPU's */
    /* per node: payload copied by all its ranks at once, and by one alone */
    double *copy_gbytes_per_s, *copy1_gbytes_per_s;
    /* per node: to and from all others at once; 0: not measured */
    double *out_gbytes_per_s, *in_gbytes_per_s;
    double *pair_gbytes_per_s; /* [from·n_nodes + to]; 0: not measured */
    double *pair_latency_us;   /* [from·n_nodes + to] */
    /* per rank: into its GPU from all others; NULL: not measured */
    double *peer_gbytes_per_s;
    /* Per rank: what it needs and no bytes move for, since the method leaves it
     * where the source has it; NULL: nothing. Bounds are those of the rest. */
    uint64_t *left_bytes;
    /* Given, never measured; 0: not given. Per node: each of its NICs, one way,
     * which wins over what pairs reach; ranks share them by slot. */
    double *nic_gbytes_per_s;
    uint32_t *nics;
    double port_gbytes_per_s; /* of a GPU to others of its node, one way */
};

struct rf_bound {
    double ms;
    char resource[96]; /* "memory of gpu-a", "link gpu-a out" */
};

/*
 * The least time in which any execution of the refit can finish: the largest
 * over all resources of bytes / capacity. Resources: each node's memory (what
 * its ranks need and one of them holds: read once, written for each), with
 * devices each rank's GPU and what comes into it, each node's link out and in
 * (inter-node bytes, each destination node's unique bytes counted once, since
 * strategies may fan out inside a node; capacity the better of the best pair's
 * goodput and of that with all others at once).
 * Formula and proof: docs/MEASURING.md.
 */
enum rf_status rf_bounds_any(const struct rf_plan *plan,
                             const struct rf_capacities *links,
                             const char *const *node_names,
                             struct rf_bound *out,
                             struct rf_err *err) RF_MUST_CHECK;

/*
 * The same for one schedule: what its own operations move through each node's
 * memory and links, which may be more than any strategy has to. Never less than
 * rf_bounds_any().
 */
enum rf_status rf_bounds_schedule(const struct rf_plan *plan,
                                  const struct rf_schedule *schedule,
                                  const struct rf_capacities *links,
                                  const char *const *node_names,
                                  struct rf_bound *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* What a node sends (`out`) or receives at most: all its NICs, or the best
 * goodput of any pair that it is in, or of all of them together. 0 when nothing
 * is known. */
double rf_capacities_capacity(const struct rf_capacities *links, uint32_t node,
                              bool out);
/* How many NICs a node has, 1 where nobody says. */
uint32_t rf_capacities_nics(const struct rf_capacities *links, uint32_t node);
/* What one of them sends (`out`) or receives at most; 0: not known. */
double rf_capacities_nic_capacity(const struct rf_capacities *links,
                                  uint32_t node, bool out);

void rf_capacities_init(struct rf_capacities *links, uint32_t n_nodes);
void rf_capacities_free(struct rf_capacities *links);

#endif

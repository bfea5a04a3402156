/*
 * Physical lower bounds from link figures. The figures are never constants of
 * the code: they are measured in the same run (link probe) or given in
 * cluster.json.
 */
#ifndef RF_PLANNER_PREDICT_BOUNDS_H
#define RF_PLANNER_PREDICT_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/schedule/schedule.h"

/* Figures of one node and of the links between nodes. GB/s = 1e9 bytes/s. */
struct rf_capacities {
    uint32_t n_nodes;
    bool devices; /* copies are in GPU memory, each rank's in its own GPU */
    bool sends_inside; /* ranks of a node send each other what an encoding makes
                          of weights (RF_COPIER_BOTH) */
    /* per node: payload copied by all its ranks at once, and by one alone */
    double *copy_gbytes_per_s, *copy1_gbytes_per_s;
    /* per node, with sends_inside: what its ranks copy to themselves, all at
     * once; 0: at the rates above */
    double *own_gbytes_per_s;
    /* per node: weights compared with their base by all its ranks at once */
    double *scan_gbytes_per_s;
    /* per node: weights converted to the scenario's format by all its ranks
     * that convert, at once; 0: not measured */
    double *convert_gbytes_per_s;
    /* per node: to and from all others at once; 0: not measured */
    double *out_gbytes_per_s, *in_gbytes_per_s;
    double *pair_gbytes_per_s; /* [from·n_nodes + to]; 0: not measured */
    double *pair_latency_us;   /* [from·n_nodes + to] */
    /* per rank: into its GPU from all others; NULL: not measured */
    double *peer_gbytes_per_s;
    /* Per rank: bytes that it needs but that do not move, since the method
     * leaves them at the source; NULL: none. The bounds cover the rest. */
    uint64_t *left_bytes;
    /* Given, never measured; 0: not given. Per node: each of its NICs, one
     * way; takes precedence over the figures of pairs. Ranks share the NICs by
     * slot. */
    double *nic_gbytes_per_s;
    uint32_t *nics;
    double port_gbytes_per_s; /* from a GPU to others of its node, one way */
};

struct rf_bound {
    double ms;
    char resource[96]; /* "memory of a", "link a out", "scan of a", "conversion
                          on a", "link a in and conversion" */
};

/*
 * The least time of any execution of the refit with that encoding, which may
 * differ from that of the plan's scenario: the largest bytes / capacity
 * over all resources. Resources: each node's memory (bytes that its ranks need
 * and one of them holds: read once, written for each), with devices each
 * rank's GPU and the bytes into it, each node's link out and in (inter-node
 * bytes; the unique bytes of each destination node count once, since
 * strategies may fan out inside a node; the capacity is the best pair's
 * goodput or that with all others at once, whichever is better). With an
 * encoding, each node's comparing of what its ranks hold takes the place of
 * memory, and links carry the least bytes of rf_update_least(). Conversions
 * ("quantize") are a resource of their nodes, and without "overlap" come before
 * or after the rest. Formula and proof: docs/MEASURING.md.
 */
enum rf_status
rf_bounds_any(const struct rf_plan *plan, enum rf_encoding encoding,
              const struct rf_capacities *links, const char *const *node_names,
              struct rf_bound *out, struct rf_err *err) RF_MUST_CHECK;

/*
 * The same for one schedule, which moves whole weights: its own operations'
 * bytes through each node's memory and links, which may exceed what any
 * strategy has to move. Never less than rf_bounds_any() of RF_ENCODING_DENSE.
 */
enum rf_status rf_bounds_schedule(const struct rf_plan *plan,
                                  const struct rf_schedule *schedule,
                                  const struct rf_capacities *links,
                                  const char *const *node_names,
                                  struct rf_bound *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The most that a node sends (`out`) or receives: all its NICs, or the best
 * goodput of any of its pairs, or that of all together. 0: unknown. */
double rf_capacities_capacity(const struct rf_capacities *links, uint32_t node,
                              bool out);
/* Number of NICs of a node, by default 1. */
uint32_t rf_capacities_nics(const struct rf_capacities *links, uint32_t node);
/* The most that one of them sends (`out`) or receives; 0: unknown. */
double rf_capacities_nic_capacity(const struct rf_capacities *links,
                                  uint32_t node, bool out);

void rf_capacities_init(struct rf_capacities *links, uint32_t n_nodes);
void rf_capacities_free(struct rf_capacities *links);

#endif

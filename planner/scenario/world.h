/*
 * The ranks of a scenario: the slot and node of each, and its place in each
 * mesh. Ranks are numbered in Megatron-LM's default order tp-cp-ep-dp-pp:
 * dense rank = tp + TP·(cp + CP·(dp + DP·pp)),
 * expert rank = etp + ETP·(ep + EP·(edp + EDP·pp)).
 */
#ifndef RF_PLANNER_SCENARIO_WORLD_H
#define RF_PLANNER_SCENARIO_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/scenario/spec.h"

#define RF_NONE UINT32_MAX

/* A rank's place in one side's mesh. */
struct rf_coord {
    uint32_t tp, cp, dp, pp;
    uint32_t etp, ep, edp;
};

struct rf_rank {
    uint32_t node; /* index into the cluster's nodes */
    uint32_t slot; /* slot of that node; two ranks share one only when colocated
                      processes are separate */
    uint32_t index[RF_SIDES]; /* rank inside that side's mesh, RF_NONE: none */
};

#define RF_WORLD_MAX_RANKS (UINT32_C(1) << 20)

struct rf_world {
    uint32_t n_ranks;
    struct rf_rank *ranks;   /* by world rank */
    uint32_t n_nodes;        /* in the cluster; 1 if none were given */
    uint32_t size[RF_SIDES]; /* ranks of each mesh */
    uint32_t edp[RF_SIDES];
    uint32_t *rank_of[RF_SIDES]; /* mesh index → world rank */
};

/*
 * Places both meshes on the cluster's slots and fills in `spec`'s dp sizes.
 * `slots[i]` is the number of slots of node i. n_nodes 0 (plan only) makes the
 * smallest world of both sides, on one imaginary node.
 *
 * Colocated: the sides share all slots (or those of the `nodes` that they name,
 * which must be the same); a side with an explicit dp uses the first ones.
 * World rank = slot number; with separate processes, the training mesh's ranks
 * come first, then those of the inference mesh. Disaggregated: a side with
 * `nodes` has those nodes to itself; the others take their smallest world from
 * the first free slots, training first. World ranks: the training mesh, then
 * the inference mesh.
 *
 * Impossible combinations are RF_ERR_CONFIG with the rule and the nearest sizes
 * that work. mesh_rules.h checks the rules that need the model.
 */
enum rf_status rf_world_place(struct rf_spec *spec, const uint32_t *slots,
                              uint32_t n_nodes, struct rf_world **out,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_world_destroy(struct rf_world *world);

/* Slots of the smallest world of these sizes: the least common multiple of both
 * sides' sizes if colocated, else their sum; 0 when larger than any world. */
uint64_t rf_world_smallest(const struct rf_spec *spec);

/* The coordinates of mesh rank `index` on a side of `size` ranks; see the
 * formulae above. */
struct rf_coord rf_coord_of(const struct rf_side_spec *side, uint32_t size,
                            uint32_t index);

/* Whether two world ranks are on the same slot of the same node. */
bool rf_same_slot(const struct rf_world *world, uint32_t a, uint32_t b);

/* Whether the scenario's "load" runs on the rank. */
bool rf_world_loads(const struct rf_world *world,
                    const struct rf_load_spec *load, uint32_t rank);

/* Of each rank, the one that it sends to as the scenario's "load" of the
 * network: that of the next node with such ranks that has the same number among
 * them, or the number modulo theirs. RF_NONE: it has no such load, or there is
 * no other node. Freed with free(). */
uint32_t *rf_world_load_peers(const struct rf_world *world,
                              const struct rf_load_spec *load);

/* Sets `err` to "SIDE: …" with RF_ERR_CONFIG; the caller names the scenario. */
enum rf_status rf_world_fail(enum rf_side side, struct rf_err *err,
                             const char *fmt, ...) RF_PRINTF(3, 4);

#endif

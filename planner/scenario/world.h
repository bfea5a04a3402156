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
    /* rank inside the training mesh, and among those of all pools, pool after
     * pool; RF_NONE: none */
    uint32_t index[RF_SIDES];
};

/* The mesh of a side of the scenario. */
struct rf_world_mesh {
    uint32_t first, size; /* its ranks have index first to first + size - 1 */
    uint32_t edp;
};

#define RF_WORLD_MAX_RANKS (UINT32_C(1) << 20)

struct rf_world {
    uint32_t n_ranks;
    struct rf_rank *ranks;       /* by world rank */
    uint32_t n_nodes;            /* in the cluster; 1 if none were given */
    uint32_t size[RF_SIDES];     /* training ranks; ranks of all pools */
    uint32_t *rank_of[RF_SIDES]; /* index → world rank */
    uint32_t n_meshes;
    struct rf_world_mesh mesh[RF_SIDES_MAX]; /* by side of the scenario */
};

/*
 * Places all meshes on the cluster's slots and fills in `spec`'s dp sizes.
 * `slots[i]` is the number of slots of node i. n_nodes 0 (plan only) makes the
 * smallest world of all sides, on one imaginary node.
 *
 * Colocated: training and the first pool share all slots that the other pools
 * leave (or those of the `nodes` that they name, which must be the same); a
 * side with an explicit dp uses the first ones. World rank = slot number; with
 * separate processes, the training mesh's ranks come first, then those of the
 * pool. Other pools, and disaggregated all sides: a side with `nodes` has those
 * nodes to itself; the others take their smallest world from the first free
 * slots, in their order. World ranks: the training mesh, then pool after pool.
 *
 * Impossible combinations are RF_ERR_CONFIG with the rule and the nearest sizes
 * that work. mesh_rules.h checks the rules that need the model.
 */
enum rf_status rf_world_place(struct rf_spec *spec, const uint32_t *slots,
                              uint32_t n_nodes, struct rf_world **out,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_world_destroy(struct rf_world *world);

/* Slots of the smallest world of these sizes: the sum of all sides' sizes,
 * where sides that share slots count as the least common multiple of theirs; 0
 * when larger than any world. */
uint64_t rf_world_smallest(const struct rf_spec *spec);

/* The coordinates of mesh rank `index` on a side of `size` ranks; see the
 * formulae above. */
struct rf_coord rf_coord_of(const struct rf_side_spec *side, uint32_t size,
                            uint32_t index);

/* The side of the scenario whose mesh has index `index` of a plan's side. */
enum rf_side rf_world_side(const struct rf_world *world, enum rf_side side,
                           uint32_t index);

/* The pool of a world rank: a side of the scenario, or RF_TRAIN if it is in
 * none. */
enum rf_side rf_world_pool(const struct rf_world *world, uint32_t rank);

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
enum rf_status rf_world_fail(const struct rf_spec *spec, enum rf_side side,
                             struct rf_err *err, const char *fmt, ...)
    RF_PRINTF(4, 5);

#endif

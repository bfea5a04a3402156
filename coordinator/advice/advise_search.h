/*
 * Searches the feasible pairs of a training and an inference mesh with a
 * scenario's numbers of ranks. Ranks them by the rules of thumb that they break
 * (mesh_advice.h) and by their predicted refit. Pure and deterministic.
 */
#ifndef RF_COORDINATOR_ADVICE_ADVISE_SEARCH_H
#define RF_COORDINATOR_ADVICE_ADVISE_SEARCH_H

#include "coordinator/advice/mesh_advice.h"
#include "planner/predict/choose_strategy.h"

/* A mesh of one side. */
struct rf_mesh {
    uint32_t tp, cp, pp, dp, ep, etp;
};

/* `broken` is a mask of rules, by index. */
struct rf_mesh_choice {
    struct rf_mesh train, infer;
    uint64_t broken;   /* bits of rules */
    unsigned weight;   /* sum over the broken rules */
    unsigned octaves;  /* distance of the parameters per GPU from the usual 4
                          billion, in octaves, rounded; 0 in host memory */
    double refit_ms;   /* predicted */
    char busiest[96];  /* see struct rf_simulated */
    double parameters; /* per GPU, as the guide counts */
    double training_gbytes, inference_gbytes; /* per GPU, estimated */
};

struct rf_advised {
    struct rf_mesh_choice *choices; /* best first */
    size_t n;
    size_t feasible[RF_SIDES]; /* number of meshes of each side */
    size_t refused;            /* tried pairs that the planner cannot refit */
    bool links_assumed;        /* any rate */
    struct rf_assumed assumed;
};

/*
 * Searches from a built scenario, keeping its mode, layouts, dtypes, method,
 * strategy and nodes. Layouts without tensor parallelism keep their mesh. Pairs
 * the meshes of each side that break the least, so that about `budget` ranks
 * are planned in all, or fewer if their refits have many operations; always
 * includes the scenario's own. Missing figures of `links` are assumed and set.
 * Caller frees `choices`.
 */
enum rf_status rf_advise_search(const struct rf_scenario *base,
                                const struct rf_timeline *timeline,
                                struct rf_capacities *links, uint64_t budget,
                                struct rf_advised *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* The rules' input for these sides. A slot counts as a GPU, whatever memory the
 * scenario's method uses. */
struct rf_mesh_advice_view rf_advise_view(const struct rf_scenario *base,
                                          const struct rf_timeline *timeline,
                                          const struct rf_side_spec *train,
                                          const struct rf_side_spec *infer);

/* Sorts best first: the least weight, the fewest octaves, the shortest refit in
 * steps of 1 %, then the smaller sizes in the order of struct rf_mesh, training
 * first. */
void rf_advise_rank(struct rf_mesh_choice *choices, size_t n);

/* The scenario's sides with these meshes; they borrow from the scenario. */
void rf_advise_sides(const struct rf_scenario *base,
                     const struct rf_mesh_choice *choice,
                     struct rf_side_spec *train, struct rf_side_spec *infer);

/* The scenario with these meshes, in the form of cluster.json. A new
 * reference. */
json_t *rf_advise_scenario_json(const struct rf_scenario *base,
                                const struct rf_mesh_choice *choice);

#endif

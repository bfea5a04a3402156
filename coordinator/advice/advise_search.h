/*
 * Which meshes to try: every feasible pair of a training and an inference mesh
 * on as many ranks as a scenario gives its sides, ranked by the rules of thumb
 * that it breaks (mesh_advice.h) and its predicted refit. Pure and
 * deterministic.
 */
#ifndef RF_COORDINATOR_ADVICE_ADVISE_SEARCH_H
#define RF_COORDINATOR_ADVICE_ADVISE_SEARCH_H

#include "coordinator/advice/mesh_advice.h"
#include "planner/predict/simulate.h"

/* A mesh of one side. */
struct rf_mesh {
    uint32_t tp, cp, pp, dp, ep, etp;
};

/* Rules are bits of a mask, by their index. */
struct rf_mesh_choice {
    struct rf_mesh train, infer;
    uint64_t broken;   /* rules */
    unsigned weight;   /* of all of them */
    unsigned octaves;  /* of the parameters per GPU from the usual 4 billion,
                          rounded; 0 in host memory */
    double refit_ms;   /* predicted */
    char busiest[96];  /* see struct rf_simulated */
    double parameters; /* per GPU, as the guide counts them */
    double training_gbytes, inference_gbytes; /* of a GPU, estimated */
};

struct rf_advised {
    struct rf_mesh_choice *choices; /* the best first */
    size_t n;
    size_t feasible[RF_SIDES]; /* meshes of each side */
    size_t refused; /* pairs that the planner cannot refit, of those tried */
    bool links_assumed;
};

/*
 * Searches from a scenario that has been built, which keeps its mode, layouts,
 * dtypes, method, strategy and nodes. Layouts without tensor parallelism keep
 * their mesh. Of each side the meshes that break least are paired, so many that
 * about `budget` ranks are planned in all, or fewer where their refits take
 * many operations; the scenario's own are always among them. The choices are
 * the caller's, free() them.
 */
enum rf_status rf_advise_search(const struct rf_scenario *base,
                                const struct rf_timeline *timeline,
                                uint64_t budget, struct rf_advised *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* What the rules look at with these sides. A slot counts as a GPU, whatever
 * memory the scenario's method takes. */
struct rf_mesh_advice_view rf_advise_view(const struct rf_scenario *base,
                                          const struct rf_timeline *timeline,
                                          const struct rf_side_spec *train,
                                          const struct rf_side_spec *infer);

/* Puts the best first: the least weight, the fewest octaves, the shortest
 * refit in steps of 1 %; then the smaller sizes in the order of struct rf_mesh,
 * training first. */
void rf_advise_rank(struct rf_mesh_choice *choices, size_t n);

/* The sides of the scenario with these meshes; what they point to is the
 * scenario's. */
void rf_advise_sides(const struct rf_scenario *base,
                     const struct rf_mesh_choice *choice,
                     struct rf_side_spec *train, struct rf_side_spec *infer);

/* The scenario with these meshes, as cluster.json has it. A new reference. */
json_t *rf_advise_scenario_json(const struct rf_scenario *base,
                                const struct rf_mesh_choice *choice);

#endif

/*
 * Rules of thumb about meshes, each with its source: `check` warns of them and
 * `advise` ranks by them. None is an error: the planner refuses a mesh that
 * cannot work. Pure.
 */
#ifndef RF_COORDINATOR_ADVICE_MESH_ADVICE_H
#define RF_COORDINATOR_ADVICE_MESH_ADVICE_H

#include "coordinator/advice/findings.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/scenario/scenario.h"

/* Input of a rule. */
struct rf_mesh_advice_view {
    const struct rf_side_spec *train, *infer;
    const struct rf_spec *spec; /* has the pools after `infer` */
    enum rf_side pool;          /* which of them `infer` is */
    uint32_t ranks;             /* of the training side */
    const struct rf_model *model;
    const struct rf_timeline *timeline;
    uint32_t node_slots; /* of the largest node; 0: no nodes */
    bool on_gpus;        /* weights in device memory */
};

struct rf_mesh_advice {
    const char *name;
    enum rf_advice_level level;
    unsigned weight; /* for breaking it, in `advise`; ours. 0: it does not
                        judge the mesh */
    /* Why the meshes break it, malloc'ed; NULL if they do not. */
    char *(*text)(const struct rf_mesh_advice_view *view);
    const char *source;
};

/* Least weight of a mesh that cannot train or serve the model. */
#define RF_MESH_UNFIT 100

size_t rf_mesh_advice_count(void);
const struct rf_mesh_advice *rf_mesh_advice(size_t index);

/* Why the meshes break rule `index`, malloc'ed; NULL if they do not. Of several
 * pools, it names the first that does. Explicit meshes (layout spec) have no
 * sizes to judge. */
char *rf_mesh_advice_text(size_t index, const struct rf_mesh_advice_view *view);

/* Fills in GPU facts that the rules need and the file lacks, the same for every
 * command. Returns the assumptions, malloc'ed; NULL: none. */
char *rf_mesh_advice_assume(struct rf_timeline *timeline);

/* The view of a scenario, borrowing from it. */
struct rf_mesh_advice_view
rf_mesh_advice_view_of(const struct rf_scenario *scenario,
                       const struct rf_timeline *timeline);

/* The guide's "parameters per GPU": all parameters over TP·PP for a dense
 * model, over ETP·EP for one with experts. With FSDP and its like, those of a
 * shard. */
double rf_mesh_advice_parameters(const struct rf_model *model,
                                 const struct rf_side_spec *train);
#define RF_MESH_USUAL_PARAMETERS 4e9

#endif

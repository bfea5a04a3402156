/*
 * Rules of thumb about meshes, each with its source: what `check` warns of and
 * `advise` ranks by. None is an error: a mesh that cannot work is refused by
 * the planner. Pure.
 */
#ifndef RF_COORDINATOR_ADVICE_MESH_ADVICE_H
#define RF_COORDINATOR_ADVICE_MESH_ADVICE_H

#include "coordinator/advice/findings.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/scenario/scenario.h"

/* What the rules look at. */
struct rf_mesh_advice_view {
    const struct rf_side_spec *train, *infer;
    uint32_t ranks; /* of the training side */
    const struct rf_model *model;
    const struct rf_timeline *timeline;
    uint32_t node_slots; /* of the largest node; 0: there are no nodes */
    bool on_gpus;        /* weights in device memory */
};

struct rf_mesh_advice {
    const char *name;
    enum rf_advice_level level;
    unsigned weight; /* of breaking it, for `advise`; ours. 0: it says nothing
                        of the mesh */
    /* Why the meshes break it, malloc'ed; NULL: they do not. */
    char *(*text)(const struct rf_mesh_advice_view *view);
    const char *source;
};

/* The least weight of a mesh that cannot train or serve the model. */
#define RF_MESH_UNFIT 100

size_t rf_mesh_advice_count(void);
const struct rf_mesh_advice *rf_mesh_advice(size_t index);

/* Why the meshes break rule `index`, malloc'ed; NULL: they do not. Explicit
 * meshes (layout spec) have no sizes to judge. */
char *rf_mesh_advice_text(size_t index, const struct rf_mesh_advice_view *view);

/* Puts in what the rules want to know of a GPU and the file does not say, the
 * same for every command. What was assumed, malloc'ed; NULL: nothing. */
char *rf_mesh_advice_assume(struct rf_timeline *timeline);

/* The view of a scenario; what it points to is borrowed. */
struct rf_mesh_advice_view
rf_mesh_advice_view_of(const struct rf_scenario *scenario,
                       const struct rf_timeline *timeline);

/* What the guide calls "parameters per GPU": of a dense model all over TP·PP,
 * of one with experts all over ETP·EP. With FSDP and its like, those of a
 * shard. */
double rf_mesh_advice_parameters(const struct rf_model *model,
                                 const struct rf_side_spec *train);
#define RF_MESH_USUAL_PARAMETERS 4e9

#endif

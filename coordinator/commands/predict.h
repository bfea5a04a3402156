/* Predicted times. The arithmetic is pure and in predict_figures.c, figures
 * from probes come from predict_probes.c, what was measured from
 * predict_measured.c; predict.c has the command. Formulae: docs/MEASURING.md,
 * "Predictions". */
#ifndef RF_COORDINATOR_COMMANDS_PREDICT_H
#define RF_COORDINATOR_COMMANDS_PREDICT_H

#include <stdbool.h>

#include "coordinator/config/links.h"
#include "coordinator/config/timeline.h"
#include "coordinator/results/result_files.h"
#include "coordinator/run/scenario.h"
#include "planner/cost.h"
#include "transport/method.h"

struct rf_prediction {
    double ms, bound_ms; /* bound 0: unknown */
    double step_s;       /* of the whole timeline */
    double share;        /* of the step that refits take */
};

/* Time on disk, both rates given: all unique bytes written, then what every
 * reader wants read, both over the rates of the file system as a whole. */
double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          uint64_t written_bytes, uint64_t read_bytes);

/*
 * Takes for each node and pair of nodes of `config` the best of the figures
 * that the probes of results have for it; `links` is initialised. Figures of
 * nodes are those of a kind of memory; pairs have some for host memory only.
 */
void rf_predict_links(const struct rf_result_set *set,
                      const struct rf_config *config,
                      enum rf_memory_kind memory, struct rf_links *links);

/* Whether a probe of one of the nodes is among the results. */
bool rf_predict_knows_nodes(const struct rf_result_set *set,
                            const struct rf_config *config);

/* What a prediction is made from. */
struct rf_predict_input {
    const struct rf_scenario *scenario;
    const char *method;             /* the scenario's or another */
    struct rf_link_figures figures; /* of the method, or of "links", */
    bool own;                       /* which of the two */
    struct rf_links links;          /* with the figures spread */
};

/* Why there can be no prediction: the model does not cover the scenario with
 * the method, or nodes and links that it uses have no figures. NULL when there
 * can be one, otherwise malloc'ed. */
char *rf_predict_gap(const struct rf_predict_input *input);

/*
 * The median of the last result that measured just this: a model of the same
 * size, the same plan, schedule and settings on the same nodes, whatever its
 * name. 0 where there is none; `why`, which must be NULL, then gets a malloc'ed
 * text if a result has the scenario's name and `method` is the scenario's: what
 * is different there.
 * `model` is rf_model_json()'s.
 */
double rf_predict_measured(const struct rf_result_set *set,
                           const struct rf_scenario *scenario,
                           const char *method, const json_t *model, char **why);

/* Adds the timeline to p->ms. */
void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p);

#endif

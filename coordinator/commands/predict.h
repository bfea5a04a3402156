/* Predicted times. The arithmetic is pure and in predict_figures.c, the search
 * for what was measured in predict_measured.c; predict.c has the command.
 * Formulae: docs/MEASURING.md, "Predictions". */
#ifndef RF_COORDINATOR_COMMANDS_PREDICT_H
#define RF_COORDINATOR_COMMANDS_PREDICT_H

#include <stdbool.h>

#include "coordinator/config/links.h"
#include "coordinator/config/timeline.h"
#include "coordinator/run/scenario.h"
#include "coordinator/results/result_files.h"
#include "planner/cost.h"

struct rf_prediction {
    double ms, bound_ms; /* bound 0: unknown */
    double step_s;       /* of the whole timeline */
    double share;        /* of the step that refits take */
};

/* Gives every node and pair of `links` the same figures, in place of those that
 * are there; what is not given stays. */
void rf_link_figures_spread(const struct rf_link_figures *figures,
                            struct rf_links *links);

/* Time on disk, both rates given: all unique bytes written, then what every
 * reader wants read, both over the rates of the file system as a whole. */
double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          uint64_t written_bytes, uint64_t read_bytes);

/*
 * Why there can be no prediction of a scenario with a method: the model does
 * not cover it, or nodes and links that it uses have no figures. NULL when
 * there can be one, otherwise malloc'ed. `own`: the figures are of this method
 * and not those of "links".
 */
char *rf_predict_gap(const struct rf_scenario *scenario, const char *method,
                     const struct rf_link_figures *figures, bool own,
                     const struct rf_links *links);

/*
 * The median of the last result that measured just this: a model of the same
 * size, the same plan, schedule and settings on the same nodes, whatever its
 * name. 0 where there is
 * none; `why`, which must be NULL, then gets a malloc'ed text if a result has
 * the scenario's name and `method` is the scenario's: what is different there.
 * `model` is rf_model_json()'s.
 */
double rf_predict_measured(const struct rf_result_set *set,
                           const struct rf_scenario *scenario,
                           const char *method, const json_t *model, char **why);

/* Adds the timeline to p->ms. */
void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p);

#endif

/* Predicted times. The arithmetic is pure and in predict_figures.c, the search
 * for what was measured in predict_measured.c; predict.c has the command.
 * Formulae: docs/MEASURING.md, "Predictions". */
#ifndef RF_COORDINATOR_COMMANDS_PREDICT_H
#define RF_COORDINATOR_COMMANDS_PREDICT_H

#include <stdbool.h>

#include "coordinator/run/scenario.h"
#include "coordinator/results/result_files.h"
#include "planner/cost.h"

/* "links" of cluster.json, or one entry of its "methods". 0: not given. */
struct rf_link_figures {
    double copy_gbytes_per_s;        /* payload, all ranks of a node at once */
    double single_copy_gbytes_per_s; /* one rank alone */
    double link_gbytes_per_s;        /* between two nodes, one way */
    double link_latency_us;
    double per_op_us; /* of each operation of the busiest rank */
    double setup_ms;  /* once a refit */
    double write_gbytes_per_s, read_gbytes_per_s; /* method disk */
};

/* "timeline": one step of RL training around the refits. */
struct rf_timeline {
    double rollout_s, train_s, other_s;
    double refits; /* a step, usually 1 */
    bool given;
};

struct rf_prediction {
    double ms, bound_ms; /* bound 0: unknown */
    double step_s;       /* of the whole timeline */
    double share;        /* of the step that refits take */
};

enum rf_status rf_link_figures_read(const struct rf_jnode *node,
                                    struct rf_link_figures *out,
                                    struct rf_err *err) RF_MUST_CHECK;
/* Whether "links" and "timeline" of cluster.json can be read. */
enum rf_status rf_predict_check(const struct rf_jnode *root,
                                struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_timeline_read(const struct rf_jnode *root,
                                struct rf_timeline *out,
                                struct rf_err *err) RF_MUST_CHECK;

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

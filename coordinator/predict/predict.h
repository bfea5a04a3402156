/*
 * Predicted times. Formulae: docs/MEASURING.md, "Predictions".
 *
 * predict_figures.c    the arithmetic, pure
 * predict_probes.c     the records of results, and figures from their probes
 * predict_speeds.c     which results count
 * predict_measured.c   measured times
 * predict_calibrate.c  calibration by these
 */
#ifndef RF_COORDINATOR_PREDICT_PREDICT_H
#define RF_COORDINATOR_PREDICT_PREDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "coordinator/config/links/links.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/records/result_files.h"
#include "coordinator/scenario/scenario.h"
#include "planner/predict/simulate.h"
#include "transport/info/method_info.h"

struct rf_prediction {
    double simulated_ms;
    enum rf_path path; /* of the simulation; nothing where there is none */
    double bound_ms;   /* 0: unknown */
    double ms;         /* simulated and calibrated */
    double fixed_ms, factor; /* of the calibration, 0 and 1 without */
    size_t n_results;        /* that it is from */
    double others_ms;        /* from all results but the row's own */
    double step_s;           /* of the whole timeline */
    double share;            /* of the step that refits take */
};

/* Bytes of all ranks that share a rate, and of the one that has most. */
struct rf_file_load {
    uint64_t all, most;
};

/* What goes through files. */
struct rf_file_loads {
    struct rf_file_load written, read; /* of all nodes */
    struct rf_file_load scattered;     /* see rf_disk_reads_scattered(); of the
                                          node that has most */
};

/* A rank writes once what of its training memory anybody reads, with what lies
 * between rows, and what is forwarded or cast there for each reader. It reads
 * what its ops take, short rows with what lies between them. */
void rf_predict_file_loads(const struct rf_world *world,
                           const struct rf_schedule *schedule,
                           struct rf_file_loads *out);

/* A copy reads memory and writes it; one from blocks that were read just
 * before, which a cache holds, only writes. */
#define RF_PREDICT_CACHED_COPY (1.0 / 2)

/* Time on disk, the rates of the file system as a whole given: everything is
 * written, then everything read, then what does not go straight into place
 * copied there if copying has a figure; each as fast as it goes for all ranks
 * and for the busiest rank alone. */
double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          const struct rf_file_loads *loads);

/* --- What results hold (predict_probes.c) ---------------------------------
 */

/* What has probes of its own: each repeat of a result, else all of it. NULL
 * after the last. Borrowed, as the others. */
const json_t *rf_predict_record(const json_t *result, size_t i);

/* The probe before a record, or the one after it, which is not made where there
 * are yardsticks. May be NULL. */
const json_t *rf_predict_probe(const json_t *record, bool after);

/* The node with a name in a probe; RF_NONE: not in the file. */
uint32_t rf_predict_node(const struct rf_config *config, const json_t *host);

/* How large the buffers were that its probes copied: what fits in a cache is
 * copied faster. 0: not said, as by older versions. */
uint64_t rf_predict_copy_bytes(const json_t *record);

/* The records of all results whose method keeps weights in a kind of memory,
 * one after the other. Starts at 0. */
struct rf_predict_walk {
    const struct rf_result_set *set;
    const enum rf_memory_kind *memory; /* NULL: any */
    size_t file, record;
};

/* NULL at the end. */
const json_t *rf_predict_next(struct rf_predict_walk *walk);

/* --- What probes say (predict_probes.c, predict_speeds.c) ------------------
 */

/* With buffers of one size. */
struct rf_predict_speed {
    uint64_t copy_bytes;
    double *copy_gbytes_per_s; /* by node; 0: not known, all are usual */
};

/*
 * How fast each node of a file usually copies: what most of its records are
 * near to. A machine may change: the processors of a virtual one are two
 * threads of a core for a time, and then two cores, which copy twice as fast.
 * Then its results are those of two machines, and only those of one say what
 * others will take.
 */
struct rf_predict_speeds {
    const struct rf_config *config; /* borrowed */
    struct rf_predict_speed *of;
    size_t n, cap;
    size_t n_unsettled; /* records where no speed is usual */
};

/* So many repeats and results with a probe of a node say what is usual. */
#define RF_PREDICT_SPEED_RECORDS 3
/* What is further off than by this factor is unusual. On a machine with two
 * speeds, 26 and 46 GB/s, probes of either lay within 15 % of these. */
#define RF_PREDICT_SPEED_WITHIN 1.25

/* From the results in one kind of memory. A speed is usual, with buffers of one
 * size, if more than half of the records are near to it, or a third of them and
 * no fewer than three. */
void rf_predict_speeds_init(const struct rf_result_set *set,
                            const struct rf_config *config,
                            enum rf_memory_kind memory,
                            struct rf_predict_speeds *speeds);
void rf_predict_speeds_free(struct rf_predict_speeds *speeds);

bool rf_predict_is_usual(const struct rf_predict_speeds *speeds,
                         uint64_t copy_bytes, uint32_t node,
                         double gbytes_per_s);

/* A node that did not copy as usual. */
struct rf_predict_other_speed {
    const char *node; /* NULL: none */
    double copy_gbytes_per_s, usual_gbytes_per_s;
};

/* Whether no probe of a record found a node faster or slower than usual; else
 * `other` gets one of these. */
bool rf_predict_was_usual(const struct rf_predict_speeds *speeds,
                          const json_t *record,
                          struct rf_predict_other_speed *other);

/*
 * Takes for each node and pair of nodes of the file the best of the figures
 * that the probes of results have for it; `links` is initialised. Figures of
 * nodes are those of the method's kind of memory, as far as they are usual,
 * with buffers of `copy_bytes`, or else of any size; pairs have some only if
 * its links are by TCP, as the probes are.
 */
void rf_predict_links(const struct rf_result_set *set,
                      const struct rf_predict_speeds *speeds,
                      const struct rf_method_info *method, uint64_t copy_bytes,
                      struct rf_capacities *links);

/* Whether a probe of one of the nodes is among the results. */
bool rf_predict_knows_nodes(const struct rf_result_set *set,
                            const struct rf_config *config);

/* What a prediction is made from. */
struct rf_predict_input {
    const struct rf_scenario *scenario;
    const char *method;             /* the scenario's or another */
    struct rf_link_figures figures; /* of the method, or of "links", */
    bool own;                       /* which of the two */
    struct rf_capacities links;     /* with the figures spread */
};

/* Why there can be no prediction: the model does not cover the scenario with
 * the method, or nodes and links that it uses have no figures. NULL when there
 * can be one, otherwise malloc'ed. */
char *rf_predict_gap(const struct rf_predict_input *input);

/* What results say of a prediction. */
struct rf_measured {
    double ms;                         /* 0: nothing */
    const struct rf_result_file *from; /* NULL: none */
    size_t n_left_out; /* repeats in which nodes did not copy as usual, of all
                          results of this refit */
    char *why;         /* malloc'ed: why there is nothing; NULL: not said */
};

/*
 * The median of the last result that measured just this: a model of the same
 * size, the same plan, schedule and settings on the same nodes, whatever its
 * name. Of its repeats only those count in which nodes copied as usual, and a
 * result without such is none; `speeds` NULL: all count. `out->why` is about
 * the last result that was not used for that, or that has the scenario's name
 * and differs, if `method` is the scenario's. `model` is rf_model_json()'s.
 * `reasons` has for each result of the set why it is not used, malloc'ed, or
 * NULL, and gets what is still to say; NULL: nobody asks.
 */
void rf_predict_measured(const struct rf_result_set *set,
                         const struct rf_predict_speeds *speeds,
                         const struct rf_scenario *scenario, const char *method,
                         const json_t *model, char **reasons,
                         struct rf_measured *out);

/* Adds the timeline to p->ms. */
void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p);

/* One scenario with one method. */
struct rf_predict_row {
    char *scenario;
    const struct rf_method_info *method;
    const char *strategy;
    char *gap; /* why there is no prediction, or NULL */
    struct rf_prediction p;
    struct rf_measured measured;
};

struct rf_predict_rows {
    struct rf_predict_row *rows;
    size_t n, capacity;
    size_t n_results;   /* that were given */
    json_t *not_used;   /* a text for each of them that no row has */
    size_t n_unsettled; /* repeats and results where no speed is usual */
};

/* For `not_used`: the reasons that rf_predict_measured() gave; of a result
 * without any, that the file has no such refit. Owned. */
json_t *rf_predict_not_used(const struct rf_result_set *set,
                            char *const *reasons,
                            const struct rf_predict_rows *rows);

/* How far predictions are off that know only the other results. */
struct rf_leave_one_out {
    size_t n;
    double median, worst; /* |predicted / measured - 1| */
    const struct rf_predict_row *worst_row;
};

/* So many results make a line, if the largest simulated time is so many times
 * the smallest. Where all are alike, their noise would decide its slope. */
#define RF_PREDICT_LINE_RESULTS 3
#define RF_PREDICT_LINE_SPAN 2

/*
 * Predicts fixed + factor x simulated from the results of the same method and
 * path, each counted once: a robust line through measured and simulated times
 * (rf_stats_line(), after Theil and Sen), from RF_PREDICT_LINE_RESULTS results
 * on that differ enough, if neither is negative. Otherwise nothing is fixed,
 * and the factor is the median of measured / simulated. Rows without such
 * results stay as simulated. None gets below its bound, unless a result of its
 * method and path did. Fills p.ms, p.fixed_ms, p.factor, p.n_results and
 * p.others_ms. Pure.
 */
void rf_predict_calibrate(struct rf_predict_rows *rows,
                          struct rf_leave_one_out *out);

/* `step`: whether there is a timeline. */
void rf_predict_print_table(const struct rf_predict_rows *rows,
                            const struct rf_leave_one_out *error, bool step,
                            FILE *to);
void rf_predict_print_json(const struct rf_predict_rows *rows,
                           const struct rf_leave_one_out *error, bool step,
                           FILE *to);

void rf_predict_rows_free(struct rf_predict_rows *rows);

#endif

/*
 * Predicted times. Formulae: docs/MEASURING.md, "Predictions".
 *
 * predict_figures.c    the arithmetic, pure
 * predict_probes.c     records of results, and figures from their probes
 * predict_speeds.c     which results count
 * predict_results.c    figures from result folders and "links"
 * predict_own.c        those that one result ran on
 * predict_measured.c   measured times
 * predict_calibrate.c  calibration by these
 * predict_crossover.c  where dense becomes faster than an encoding
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
    enum rf_path path;       /* of the simulation; unset without one */
    double bound_ms;         /* 0: unknown */
    double ms;               /* simulated and calibrated */
    double fixed_ms, factor; /* of the calibration; 0 and 1 without */
    size_t n_results;        /* used for it */
    double ratio;            /* their median measured / simulated time */
    double others_ms;        /* measured row: with its result's own figures,
                                from all other results */
    double step_s;           /* the whole timeline */
    double share;            /* of the step, taken by refits */
};

/* Bytes of all ranks that share a rate, and of the busiest rank. */
struct rf_file_load {
    uint64_t all, most;
};

/* Bytes that pass through files. */
struct rf_file_loads {
    struct rf_file_load written, read; /* by all nodes */
    struct rf_file_load scattered;     /* see rf_disk_reads_scattered(); on
                                          the busiest node */
};

/* A rank writes once the part of its training memory that any rank reads, gaps
 * between rows included, and, for each reader, what it forwards or casts there.
 * It reads the sources of its ops, those with short rows with the gaps between
 * them. */
void rf_predict_file_loads(const struct rf_world *world,
                           const struct rf_schedule *schedule,
                           struct rf_file_loads *out);

/* A copy reads and writes memory; a copy from blocks read just before, which
 * are in a cache, only writes. */
#define RF_PREDICT_CACHED_COPY (1.0 / 2)

/* Time on disk at the rates of the whole file system. Everything is written,
 * then everything is read, then data that did not go straight into place is
 * copied there, if copying has a figure. Each step takes the longer of the time
 * for all ranks together and for the busiest rank alone. */
double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          const struct rf_file_loads *loads);

/* --- Records of results (predict_probes.c) -------------------------------- */

/* The parts with probes: each repeat of a result, or the whole result. NULL
 * after the last. Borrowed, like the others. */
const json_t *rf_predict_record(const json_t *result, size_t i);

/* The probe before a record, or the one after it, which is absent if there are
 * yardsticks and no conversions. May be NULL. */
const json_t *rf_predict_probe(const json_t *record, bool after);

/* The node with that name; RF_NONE: not in the file. */
uint32_t rf_predict_node(const struct rf_config *config, const json_t *host);

/* Size of the buffers that the probes copied: a buffer that fits in a cache is
 * copied faster. 0: unknown, as from older versions. */
uint64_t rf_predict_copy_bytes(const json_t *record);

/* Walks the records of all results whose method keeps weights in a kind of
 * memory. Starts zeroed. */
struct rf_predict_walk {
    const struct rf_result_set *set;
    const enum rf_memory_kind *memory; /* NULL: any */
    size_t file, record;
};

/* NULL at the end. */
const json_t *rf_predict_next(struct rf_predict_walk *walk);

/* --- Figures of probes (predict_probes.c, predict_speeds.c) --------------- */

/* For one buffer size. */
struct rf_predict_speed {
    uint64_t copy_bytes;
    double *copy_gbytes_per_s; /* by node; 0: unknown, any speed is usual */
};

/*
 * Each node's usual copy rate: the one near to most of its records. A machine
 * may change: the processors of a virtual machine may be two threads of a core
 * for a time, then two cores, which copy twice as fast. Its results are then
 * those of two machines, and only those of one predict other results.
 */
struct rf_predict_speeds {
    const struct rf_config *config; /* borrowed */
    struct rf_predict_speed *of;
    size_t n, cap;
    size_t n_unsettled; /* records without a usual speed */
};

/* No speed of a node is usual with fewer repeats and results that have a probe
 * of it. */
#define RF_PREDICT_SPEED_RECORDS 3
/* A speed is unusual beyond this factor. On a machine with two speeds, 26 and
 * 46 GB/s, probes of either were within 15 % of these. */
#define RF_PREDICT_SPEED_WITHIN 1.25

/* From results in one kind of memory. A speed is usual, for one buffer size, if
 * it is near to more than half of the records, or to a third of them and at
 * least three. */
void rf_predict_speeds_init(const struct rf_result_set *set,
                            const struct rf_config *config,
                            enum rf_memory_kind memory,
                            struct rf_predict_speeds *speeds);
void rf_predict_speeds_free(struct rf_predict_speeds *speeds);

bool rf_predict_is_usual(const struct rf_predict_speeds *speeds,
                         uint64_t copy_bytes, uint32_t node,
                         double gbytes_per_s);

/* A node with an unusual speed. */
struct rf_predict_other_speed {
    const char *node; /* NULL: none */
    double copy_gbytes_per_s, usual_gbytes_per_s;
};

/* Whether no probe of a record found a node faster or slower than usual; if
 * not, `other` gets one such node. */
bool rf_predict_was_usual(const struct rf_predict_speeds *speeds,
                          const json_t *record,
                          struct rf_predict_other_speed *other);

/*
 * Sets the best probed figures of each node and pair of nodes in the file;
 * `links` is initialised. Figures of nodes are for the method's kind of memory,
 * only usual ones, with buffers of `copy_bytes`, or otherwise of any size.
 * Pairs have figures only if the method's links use TCP, as the probes do.
 */
void rf_predict_links(const struct rf_result_set *set,
                      const struct rf_predict_speeds *speeds,
                      const struct rf_method_info *method, uint64_t copy_bytes,
                      struct rf_capacities *links);

/* Sets the rates inside nodes of a method that uses sockets there: those in its
 * entry `given` of "links.methods" or else, since copies in memory say nothing
 * about them, the best of its yardsticks without such copies; 0: none. */
void rf_predict_sockets(const struct rf_result_set *set,
                        const struct rf_predict_speeds *speeds,
                        const struct rf_method_info *method,
                        const json_t *given, struct rf_capacities *links);

/* Sets the best rates of conversions in host memory, from results with the same
 * formats: those of probes in which the node copied at its usual speed or, of a
 * node without such a probe, any. */
void rf_predict_conversions(const struct rf_result_set *set,
                            const struct rf_predict_speeds *speeds,
                            const struct rf_spec *spec,
                            struct rf_capacities *links);

/* Whether the results have a probe of one of the file's nodes. */
bool rf_predict_knows_nodes(const struct rf_result_set *set,
                            const struct rf_config *config);

/* --- Result folders (predict_results.c) ----------------------------------- */

struct rf_predict_results {
    const struct rf_config *config; /* borrowed */
    struct rf_result_set set;
    struct rf_predict_speeds speeds[RF_MEMORY_KINDS];
};

/* Reads result folders. RF_ERR_CONFIG: none of these results has a figure of
 * the file's nodes, and the file has no "links". Free `out` in any case. */
enum rf_status rf_predict_results_read(const struct rf_config *config,
                                       const char *const *folders, size_t n,
                                       struct rf_predict_results *out,
                                       struct rf_err *err) RF_MUST_CHECK;
void rf_predict_results_free(struct rf_predict_results *results);

/* "links.methods"; value NULL: absent. */
struct rf_jnode rf_predict_methods(const struct rf_config *config);
/* Whether the file has figures of that method. */
bool rf_predict_has_own(const struct rf_config *config,
                        const struct rf_method_info *info);

/* Initialises `links` with the figures for a scenario with a method: those of
 * "links", then, unless the method has its own there, those of probes. What
 * ranks copy to themselves beside sockets is as fast as by method host. */
void rf_predict_results_links(const struct rf_predict_results *results,
                              const struct rf_scenario *scenario,
                              const struct rf_method_info *info,
                              struct rf_capacities *links);

/* Sets the rates of a scenario's conversions. */
void rf_predict_results_conversions(const struct rf_predict_results *results,
                                    const struct rf_scenario *scenario,
                                    const struct rf_method_info *info,
                                    struct rf_capacities *links);

/* Input of a prediction. */
struct rf_predict_input {
    const struct rf_scenario *scenario;
    const char *method;             /* the scenario's or another */
    struct rf_link_figures figures; /* the method's, or those of "links" */
    bool own;                       /* `figures` are the method's */
    bool named;                     /* results were */
    struct rf_capacities links;     /* with the figures applied */
};

/*
 * Sets `own` to the input of a prediction of what one result of the scenario
 * measured, by the figures that it ran on; `input` is that of the prediction.
 * Nodes: what the results measured. Links between nodes: the result's own
 * probes or, of other methods than TCP's and beside nominal figures, "links" of
 * its own file, or its yardsticks. Ports, files and costs: "links" of its file.
 * What none of these says is as in `input`, except links between nodes: false,
 * if the method uses some and nothing says their rate. Free own->links with
 * rf_capacities_free() in any case.
 */
bool rf_predict_own(const struct rf_predict_results *results,
                    const struct rf_result_file *file,
                    const struct rf_predict_input *input,
                    struct rf_predict_input *own);

/* Why there is no prediction: the model does not cover the scenario with the
 * method, or nodes and links that it uses have no figures. NULL if there is
 * one. Caller frees. */
char *rf_predict_gap(const struct rf_predict_input *input);

/* What a node compares of what stays inside it: auto compares no copies. */
uint64_t rf_predict_compared(const struct rf_schedule *schedule,
                             const struct rf_method_info *info,
                             enum rf_encoding encoding, uint32_t node);

/* Whether the schedule uses links between nodes that have no figure. */
bool rf_predict_lacks_links(const struct rf_schedule *schedule,
                            const struct rf_capacities *links);

/* What to know about a prediction that no result calibrates; NULL: nothing. */
const char *rf_predict_note(const struct rf_predict_input *input);

/* The simulation of an input, which must outlive it. */
struct rf_simulate_env rf_predict_env(const struct rf_predict_input *input);

/* The measured time for a prediction. */
struct rf_measured {
    double ms;                         /* 0: none */
    const struct rf_result_file *from; /* NULL: none */
    size_t n_left_out; /* repeats with nodes at unusual speeds, in all
                          results of this refit */
    char *why;         /* why there is none, or why it calibrates nothing, or
                          NULL. Caller frees */
};

/*
 * The median of the last result of the same refit: equal model size, plan,
 * schedule, settings and nodes, whatever its name. Only repeats with nodes at
 * their usual speeds count; a result without any is not used. `speeds` NULL:
 * all repeats count. `out->why` concerns the last result that was left out for
 * its speeds, or that has the scenario's name but differs, if `method` is the
 * scenario's. `model` is from rf_model_json(). `reasons` has an entry for each
 * result of the set: why it is not used, malloc'ed, or NULL; missing reasons
 * are filled in. `reasons` NULL: do not collect them.
 */
void rf_predict_measured(const struct rf_result_set *set,
                         const struct rf_predict_speeds *speeds,
                         const struct rf_scenario *scenario, const char *method,
                         const json_t *model, char **reasons,
                         struct rf_measured *out);

/* Adds the timeline to p->ms. */
void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p);

/* Where an encoding stops being faster than dense. */
struct rf_crossover {
    bool wanted;  /* no earlier row has it */
    double share; /* of changed elements: 0: nowhere faster, 1: everywhere */
    double link_gbytes_per_s; /* between nodes, the slowest; 0: none is used */
    double socket_gbytes_per_s; /* likewise, inside nodes */
    double scan_gbytes_per_s;   /* of the node that compares longest */
    uint32_t n_ranks;           /* of that node */
};

/* A scenario with a method. */
struct rf_predict_row {
    char *scenario;
    const struct rf_method_info *method;
    const char *strategy;
    enum rf_encoding encoding;
    size_t index; /* of the scenario in the file */
    struct rf_crossover crossover;
    char *gap;        /* why there is no prediction, or NULL */
    const char *note; /* see rf_predict_note() */
    struct rf_prediction p;
    struct rf_measured measured;
    /* With the figures that the result of `measured` ran on: simulated_ms,
     * path, bound_ms. simulated_ms 0: unknown; it calibrates nothing. */
    struct rf_prediction own;
};

struct rf_predict_rows {
    struct rf_predict_row *rows;
    size_t n, capacity;
    size_t n_results;   /* given */
    json_t *not_used;   /* a text for each result that no row uses */
    size_t n_unsettled; /* repeats and results without a usual speed */
};

/* For `not_used`: the reasons from rf_predict_measured(), or for a result
 * without one, that the file has no such refit. A new reference. */
json_t *rf_predict_not_used(const struct rf_result_set *set,
                            char *const *reasons,
                            const struct rf_predict_rows *rows);

/* Errors of predictions made from the other results only. */
struct rf_leave_one_out {
    size_t n;
    double median, worst; /* |predicted / measured - 1| */
    const struct rf_predict_row *worst_row;
};

/* Calibration fits a line only with at least this many results and at least
 * this ratio of the largest to the smallest simulated time. With similar times,
 * their noise would set its slope. */
#define RF_PREDICT_LINE_RESULTS 3
#define RF_PREDICT_LINE_SPAN 2

/*
 * Predicts fixed + factor x simulated from the results of the same method and
 * path, each counted once. Fits a robust line through their measured times and
 * those simulated with the figures that they ran on (row.own; rf_stats_line(),
 * after Theil and Sen) if there are at least RF_PREDICT_LINE_RESULTS that
 * differ enough, and neither coefficient is negative. Otherwise the fixed part
 * is 0, and the factor is the median of measured / simulated. Rows without such
 * results keep the simulated time. A prediction is not below its bound, unless
 * a result of its method and path was. Fills p.ms, p.fixed_ms, p.factor,
 * p.n_results, p.ratio and p.others_ms. Pure.
 */
void rf_predict_calibrate(struct rf_predict_rows *rows,
                          struct rf_leave_one_out *out);

/* Fills row->crossover, with the row's input and calibrated by `rows`, which
 * has it. */
enum rf_status rf_predict_crossover(const struct rf_predict_rows *rows,
                                    const struct rf_predict_input *input,
                                    struct rf_predict_row *row,
                                    struct rf_err *err) RF_MUST_CHECK;

/* A ratio beyond these says more of wrong figures, or of a busy machine, than
 * of a method. */
#define RF_PREDICT_RATIO_LEAST (1.0 / 2)
#define RF_PREDICT_RATIO_MOST 2

/* Warns of calibrations beyond these, and of results that calibrate nothing,
 * since it is unknown which links they ran on. */
void rf_predict_warn(const struct rf_predict_rows *rows);

/* Whether the same results calibrate two rows. */
bool rf_predict_alike(const struct rf_predict_row *a,
                      const struct rf_predict_row *b);

/* `step`: there is a timeline. */
void rf_predict_print_table(const struct rf_predict_rows *rows,
                            const struct rf_leave_one_out *error, bool step,
                            FILE *to);
void rf_predict_print_json(const struct rf_predict_rows *rows,
                           const struct rf_leave_one_out *error, bool step,
                           FILE *to);

void rf_predict_rows_free(struct rf_predict_rows *rows);

#endif

/* Private to results*.c: an open result folder. */
#ifndef RF_COORDINATOR_STORE_RESULTS_INTERNAL_H
#define RF_COORDINATOR_STORE_RESULTS_INTERNAL_H

#include "coordinator/store/results.h"

/* The file being stored. */
enum rf_results_file {
    RF_RESULTS_NONE,
    RF_RESULTS_RECORD,  /* a scenario's; then */
    RF_RESULTS_INDEX,   /* run.json; then */
    RF_RESULTS_SUMMARY, /* summary.csv; then */
    RF_RESULTS_LOG,     /* one per rank that has a log */
    RF_RESULTS_LAST,    /* run.json, from rf_results_finish() */
};

struct rf_results {
    struct rf_result_run run;
    bool resumed;
    char *folder;
    char *whole_folder; /* `folder`, absolute */
    char *parent;       /* folder of all runs; NULL when resumed */
    size_t old;         /* length of its part that existed before */
    char run_id[17];
    int lock;
    json_t *document; /* run.json */
    json_t *index;    /* its "scenarios", borrowed */
    json_t *before;   /* run.json before resuming; NULL for a new folder */
    uint32_t n_repeats;
    bool *complete;
    json_t *last;
    json_t *repeated; /* by scenario: record so far, with repeats */
    json_t *rows;     /* by scenario: record for summary.csv */
    json_t *shown;    /* likewise, for the table at the end */
    struct {
        struct rf_results_text {
            char *path, *text;
        } * list;
        size_t n, cap, at; /* `at`: the next to store */
    } logs;
    const struct rf_results_ops *ops;
    void *data;
    struct {
        enum rf_results_file file;
        char *path;
        const char *scenario; /* the record's; borrowed */
    } storing;
};

/* The path of a file in the folder. Caller frees. */
char *rf_results_path(const struct rf_results *results, const char *name,
                      const char *suffix);
/* A scenario's entry in `index`, appended if absent; borrowed. */
json_t *rf_results_entry(json_t *index, const char *name);
/* Drops logs not stored yet. */
void rf_results_drop_logs(struct rf_results *results);
/* Puts a scenario's record, without its samples, into `rows` or `shown`. */
void rf_results_keep_row(json_t *rows, const char *name, json_t *result);

#endif

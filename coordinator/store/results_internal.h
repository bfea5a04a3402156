/* Private to results*.c: a result folder that is open. */
#ifndef RF_COORDINATOR_STORE_RESULTS_INTERNAL_H
#define RF_COORDINATOR_STORE_RESULTS_INTERNAL_H

#include "coordinator/store/results.h"

/* The file that is being stored. */
enum rf_results_file {
    RF_RESULTS_NONE,
    RF_RESULTS_RECORD,  /* of a scenario; then */
    RF_RESULTS_INDEX,   /* run.json; then */
    RF_RESULTS_SUMMARY, /* summary.csv; then */
    RF_RESULTS_LOG,     /* one after another, of the ranks that have one */
    RF_RESULTS_LAST,    /* run.json, by rf_results_finish() */
};

struct rf_results {
    struct rf_result_run run;
    bool resumed;
    char *folder;
    char *whole_folder; /* the same, absolute */
    char *parent;       /* the folder of all runs, NULL when resumed; */
    size_t old;         /* what its first bytes name was there before */
    char run_id[17];
    int lock;
    json_t *document; /* run.json */
    json_t *index;    /* its "scenarios", borrowed */
    json_t *before;   /* run.json as it was, of a resumed folder */
    uint32_t n_repeats;
    bool *complete;
    json_t *last;
    json_t *repeated; /* by scenario: its record so far, with repeats */
    json_t *rows;     /* by scenario: its record for summary.csv */
    json_t *shown;    /* likewise for the table at the end */
    struct {
        struct rf_results_text {
            char *path, *text;
        } * list;
        size_t n, cap, at; /* `at`: the next to be stored */
    } logs;
    const struct rf_results_ops *ops;
    void *data;
    struct {
        enum rf_results_file file;
        char *path;
        const char *scenario; /* whose record it is, borrowed */
    } storing;
};

/* The path of a file of the folder, to be freed. */
char *rf_results_path(const struct rf_results *results, const char *name,
                      const char *suffix);
/* A scenario's entry in `index`, appended if there is none; borrowed. */
json_t *rf_results_entry(json_t *index, const char *name);
/* Forgets logs that are not stored yet. */
void rf_results_drop_logs(struct rf_results *results);
/* Puts a scenario's record, without its samples, into `rows` or `shown`. */
void rf_results_keep_row(json_t *rows, const char *name, json_t *result);

#endif

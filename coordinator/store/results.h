/*
 * The result folder of a run. Every file is written whole, each scenario's as
 * soon as it has ended. Texts are handed to the caller, who stores them on a
 * thread: a disk that hangs must not stop a run. run.json exists from the start
 * with status "running". A failed launch leaves nothing behind.
 */
#ifndef RF_COORDINATOR_STORE_RESULTS_H
#define RF_COORDINATOR_STORE_RESULTS_H

#include "coordinator/store/result_json.h"

#define RF_RESULTS_MOST_REPEATS 1000

struct rf_results;

struct rf_results_settings {
    const char *out;    /* gets the run's folder */
    const char *resume; /* the run's folder, to go on in; NULL: a new one */
    uint32_t n_repeats; /* of every scenario; 0: 1, or as many as the folder to
                           resume was begun with, and never less */
    struct rf_result_maker maker;
    bool logs; /* of all ranks */
};

/*
 * Makes OUT/<UTC time>-<name>/, with OUT's parents, and run.json in it, or
 * opens the folder to resume: `config` and model must be equal to its own.
 * One coordinator at a time may have a folder. What `settings` points to,
 * `config` and `model` are borrowed. A NULL `model` is set later. Errors are
 * RF_ERR_CONFIG when the folder cannot be made or opened, or does not fit, and
 * RF_ERR_IO when run.json cannot be read or stored.
 */
enum rf_status rf_results_open(const struct rf_results_settings *settings,
                               const struct rf_config *config,
                               const struct rf_model *model,
                               struct rf_results **out,
                               struct rf_err *err) RF_MUST_CHECK;

/* The model that rf_results_open() was not given, borrowed. RF_ERR_CONFIG where
 * a resumed folder has another. */
enum rf_status rf_results_set_model(struct rf_results *results,
                                    const struct rf_model *model,
                                    struct rf_err *err) RF_MUST_CHECK;

uint32_t rf_results_repeats(const struct rf_results *results);
/* What a resumed folder has complete: an entry per scenario for each repeat, as
 * rf_run_agenda_create() takes them. */
const bool *rf_results_complete(const struct rf_results *results);
/* Whether that is everything. */
bool rf_results_all_complete(const struct rf_results *results);
const char *rf_results_folder(const struct rf_results *results);
const char *rf_results_run_id(const struct rf_results *results);

/* A node has joined. */
void rf_results_node(struct rf_results *results, uint32_t node,
                     const struct rf_msg_hello *hello);

struct rf_results_ops {
    /* Begins to store `text` as `path`, both taken, as rf_store_own() does with
     * `n_folders`; where `text` is NULL, that of `record`
     * (records/record_text.h), which nobody changes. Then, never from inside,
     * rf_results_stored() is called. */
    void (*store)(char *path, char *text, json_t *record, unsigned n_folders,
                  void *data);
    /* An rf_results_store() or rf_results_finish() has ended; `why` is NULL
     * when all of its files are stored. */
    void (*done)(const struct rf_err *why, void *data);
};

/* To be called before anything is stored. */
void rf_results_serve(struct rf_results *results,
                      const struct rf_results_ops *ops, void *data);

/* The file that was handed to ops->store is stored, or `why` it is not. */
void rf_results_stored(struct rf_results *results, const struct rf_err *why);

/* Stores one attempt with the scenario's other repeats, and run.json,
 * summary.csv and the logs of its ranks with it; `attempt` is not needed any
 * more when this returns. Call it only while nothing is being
 * stored. */
void rf_results_store(struct rf_results *results,
                      const struct rf_attempt *attempt);

/* The path of what is being stored, borrowed; NULL when nothing is. */
const char *rf_results_storing(const struct rf_results *results);

/* The last scenario's record, borrowed; NULL before the first. */
const json_t *rf_results_last(const struct rf_results *results);

/* Prints the table of all records in the order of cluster.json. */
void rf_results_print(const struct rf_results *results, FILE *to);

/* Stores the final state of run.json, likewise. */
void rf_results_finish(struct rf_results *results, int exit_code);

/* Undoes rf_results_open(), for a resumed folder too; nothing was stored. */
void rf_results_discard(struct rf_results *results);
void rf_results_close(struct rf_results *results); /* frees; NULL is fine */

#endif

/*
 * The result folder of a run. Every file is written whole, each scenario's as
 * soon as it ends. The caller stores the files on a thread, so a hanging disk
 * cannot stop a run. run.json exists from the start, with status "running". A
 * failed launch leaves nothing behind.
 */
#ifndef RF_COORDINATOR_STORE_RESULTS_H
#define RF_COORDINATOR_STORE_RESULTS_H

#include "coordinator/store/result_json.h"

#define RF_RESULTS_MOST_REPEATS 1000

struct rf_results;

struct rf_results_settings {
    const char *out;    /* parent of the run's folder */
    const char *resume; /* run folder to resume; NULL: make a new one */
    uint32_t n_repeats; /* of every scenario; 0: 1, or the number in the
                           folder to resume; never less than there */
    struct rf_result_maker maker;
    bool logs; /* of all ranks, even without output */
};

/*
 * Makes OUT/<UTC time>-<name>/, with OUT's parents, and run.json in it, or
 * opens the folder to resume, whose `config` and model must be equal. Only one
 * coordinator at a time may open a folder. Borrows `config`, `model` and
 * everything that `settings` points to. A NULL `model` is set later.
 * RF_ERR_CONFIG if the folder cannot be made or opened, or does not match;
 * RF_ERR_IO if run.json cannot be read or stored.
 */
enum rf_status rf_results_open(const struct rf_results_settings *settings,
                               const struct rf_config *config,
                               const struct rf_model *model,
                               struct rf_results **out,
                               struct rf_err *err) RF_MUST_CHECK;

/* Sets the model that rf_results_open() did not get; borrowed. RF_ERR_CONFIG if
 * a resumed folder has a different one. */
enum rf_status rf_results_set_model(struct rf_results *results,
                                    const struct rf_model *model,
                                    struct rf_err *err) RF_MUST_CHECK;

uint32_t rf_results_repeats(const struct rf_results *results);
/* Repeats that are complete in a resumed folder: an entry per scenario for each
 * repeat, as for rf_run_agenda_create(). */
const bool *rf_results_complete(const struct rf_results *results);
/* Whether all of them are complete. */
bool rf_results_all_complete(const struct rf_results *results);
const char *rf_results_folder(const struct rf_results *results);
const char *rf_results_run_id(const struct rf_results *results);

/* Adds a node that has joined. */
void rf_results_node(struct rf_results *results, uint32_t node,
                     const struct rf_msg_hello *hello);

struct rf_results_ops {
    /* Starts storing `text` as `path`, both taken, like rf_store_own() with
     * `n_folders`. If `text` is NULL, stores `record` (records/record_text.h),
     * which must not change meanwhile. Afterwards, never from inside, call
     * rf_results_stored(). */
    void (*store)(char *path, char *text, json_t *record, unsigned n_folders,
                  void *data);
    /* rf_results_store() or rf_results_finish() ended; `why` is NULL if all
     * files are stored. */
    void (*done)(const struct rf_err *why, void *data);
};

/* The JSON Schema of run.json. A new reference. */
json_t *rf_results_schema(void);

/* Call before storing anything. */
void rf_results_serve(struct rf_results *results,
                      const struct rf_results_ops *ops, void *data);

/* Reports that ops->store stored its file, or `why` it failed. */
void rf_results_stored(struct rf_results *results, const struct rf_err *why);

/* Stores one attempt with the scenario's other repeats, then run.json,
 * summary.csv and the ranks' logs. Does not keep `attempt`. Call only while
 * nothing is being stored. */
void rf_results_store(struct rf_results *results,
                      const struct rf_attempt *attempt);

/* Path of the file being stored, borrowed; NULL if none. */
const char *rf_results_storing(const struct rf_results *results);

/* The last scenario's record, borrowed; NULL before the first. */
const json_t *rf_results_last(const struct rf_results *results);

/* Prints the table of all records in the order of cluster.json. */
void rf_results_print(const struct rf_results *results, FILE *to);

/* Stores the final run.json, likewise. */
void rf_results_finish(struct rf_results *results, int exit_code);

/* Undoes rf_results_open(), also for a resumed folder; call only if nothing was
 * stored. */
void rf_results_discard(struct rf_results *results);
void rf_results_close(struct rf_results *results); /* frees; NULL is fine */

#endif

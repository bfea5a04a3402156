/*
 * Stores files while a result folder is open. See results.h.
 *
 * A scenario's files are stored one by one: its record, then run.json and
 * summary.csv, which are derived from it, then its logs. The first failure ends
 * this and leaves the other files unchanged.
 */
#include "coordinator/store/results_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/record_text.h"
#include "coordinator/records/repeats.h"
#include "coordinator/records/report_table.h"
#include "coordinator/scenario/exit_code.h"
#include "coordinator/store/rank_logs.h"
#include "coordinator/store/result_probe.h"

char *rf_results_path(const struct rf_results *results, const char *name,
                      const char *suffix)
{
    return rf_xasprintf("%s/%s%s", results->folder, name, suffix);
}

json_t *rf_results_entry(json_t *index, const char *name)
{
    json_t *entry;
    for (size_t i = 0; i < json_array_size(index); i++) {
        entry = json_array_get(index, i);
        if (strcmp(rf_result_text(entry, NULL, "name"), name) == 0) {
            return entry;
        }
    }
    entry = json_pack("{s:s, s:s+, s:s}", "name", name, "file", name, ".json",
                      "status", "not run");
    json_array_append_new(index, entry);
    return entry;
}

void rf_results_keep_row(json_t *rows, const char *name, json_t *result)
{
    json_t *row = json_copy(result);
    json_object_del(row, "iterations");
    json_object_del(row, "warmup_iterations");
    json_object_del(row, "repeats");
    json_object_set_new(rows, name, row);
}

/* Caller frees. */
static char *summary_text(const struct rf_results *results)
{
    struct rf_table *table = rf_report_table_create(RF_REPORT_CSV, false);
    char *text;
    for (size_t i = 0; i < json_array_size(results->index); i++) {
        const json_t *entry = json_array_get(results->index, i);
        const json_t *row =
            json_object_get(results->rows, rf_result_text(entry, NULL, "name"));
        if (row != NULL) {
            rf_report_table_add(table, RF_REPORT_CSV, NULL, row);
        }
    }
    text = rf_table_text(table, RF_REPORT_CSV);
    rf_table_destroy(table);
    return text;
}

/* Ends storing: the last file is stored, or one failed. */
static void end_storing(struct rf_results *results, const struct rf_err *why)
{
    const char *scenario = results->storing.scenario;
    struct rf_err err;
    rf_results_drop_logs(results);
    results->storing.file = RF_RESULTS_NONE;
    results->storing.scenario = NULL;
    if (why != NULL && scenario != NULL) {
        err = *why;
        rf_err_wrap(&err, "result of %s not stored", scenario);
        why = &err;
    }
    results->ops->done(why, results->data);
}

static void note_storing(struct rf_results *results, enum rf_results_file file,
                         char *path)
{
    free(results->storing.path);
    results->storing.path = path;
    results->storing.file = file;
}

/* Stores `text`; takes it and `path`. */
static void begin(struct rf_results *results, enum rf_results_file file,
                  char *path, char *text)
{
    note_storing(results, file, path);
    results->ops->store(rf_xstrdup(path), text, NULL,
                        file == RF_RESULTS_LOG ? RF_RANK_LOGS_FOLDERS : 0,
                        results->data);
}

/* Passes the record, not its text: it may be large. */
static void begin_record(struct rf_results *results, const char *name)
{
    note_storing(results, RF_RESULTS_RECORD,
                 rf_results_path(results, name, ".json"));
    results->ops->store(rf_xstrdup(results->storing.path), NULL, results->last,
                        0, results->data);
}

static void begin_summary(struct rf_results *results)
{
    begin(results, RF_RESULTS_SUMMARY,
          rf_results_path(results, "summary", ".csv"), summary_text(results));
}

static void begin_run(struct rf_results *results, enum rf_results_file file)
{
    char *path = rf_results_path(results, "run", ".json");
    char *text = rf_record_text(results->document);
    struct rf_err err = {0};
    if (text != NULL) {
        begin(results, file, path, text);
        return;
    }
    rf_err_set(&err, RF_ERR_INTERNAL, "%s: cannot encode", path);
    note_storing(results, file, path);
    end_storing(results, &err);
}

/* Stores the next log, or ends. */
static void begin_log(struct rf_results *results)
{
    struct rf_results_text log;
    if (results->logs.at == results->logs.n) {
        end_storing(results, NULL);
        return;
    }
    log = results->logs.list[results->logs.at];
    results->logs.list[results->logs.at++] = (struct rf_results_text){0};
    begin(results, RF_RESULTS_LOG, log.path, log.text);
}

void rf_results_drop_logs(struct rf_results *results)
{
    for (size_t i = 0; i < results->logs.n; i++) {
        free(results->logs.list[i].path);
        free(results->logs.list[i].text);
    }
    free(results->logs.list);
    memset(&results->logs, 0, sizeof(results->logs));
}

/* Makes the ranks' logs for storing. */
static void make_logs(struct rf_results *results,
                      const struct rf_attempt *attempt, const json_t *record)
{
    const char *name = rf_result_text(record, NULL, "name");
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        char *file = rf_rank_logs_file(attempt, name, r, results->run.logs);
        if (file != NULL) {
            RF_PUSH(results->logs.list, results->logs.n, results->logs.cap,
                    ((struct rf_results_text){
                        rf_results_path(results, file, ""),
                        rf_rank_logs_text(attempt, record, r)}));
        }
        free(file);
    }
}

/* Updates the index and the rows of summary.csv from the stored record. */
static void take_record(struct rf_results *results)
{
    const char *name = results->storing.scenario;
    rf_results_keep_row(results->rows, name, results->last);
    json_object_set(rf_results_entry(results->index, name), "status",
                    json_object_get(results->last, "status"));
}

void rf_results_stored(struct rf_results *results, const struct rf_err *why)
{
    if (why != NULL) {
        end_storing(results, why);
        return;
    }
    switch (results->storing.file) {
    case RF_RESULTS_RECORD:
        take_record(results);
        begin_run(results, RF_RESULTS_INDEX);
        break;
    case RF_RESULTS_INDEX:
        begin_summary(results);
        break;
    case RF_RESULTS_SUMMARY:
    case RF_RESULTS_LOG:
        begin_log(results);
        break;
    default:
        end_storing(results, NULL);
        break;
    }
}

void rf_results_serve(struct rf_results *results,
                      const struct rf_results_ops *ops, void *data)
{
    results->ops = ops;
    results->data = data;
}

const char *rf_results_storing(const struct rf_results *results)
{
    return results->storing.file != RF_RESULTS_NONE ? results->storing.path
                                                    : NULL;
}

/* Adds one attempt's record, which it takes, to the scenario's record as a
 * repeat. A new reference. */
static json_t *pool(struct rf_results *results, const char *name, json_t *one,
                    uint32_t repeat)
{
    json_t *all =
        rf_repeats_add(json_object_get(results->repeated, name), one, repeat);
    json_decref(one);
    json_object_set(results->repeated, name, all);
    return all;
}

void rf_results_store(struct rf_results *results,
                      const struct rf_attempt *attempt)
{
    const char *name = results->run.config->scenarios[attempt->index].name;
    json_t *result = rf_result_json(&results->run, attempt);
    assert(rf_results_storing(results) == NULL);
    rf_result_probe_add(results->document, result);
    make_logs(results, attempt, result);
    if (results->n_repeats > 1) {
        result = pool(results, name, result, attempt->repeat);
    }
    rf_results_keep_row(results->shown, name, result);
    json_decref(results->last);
    results->last = result;
    results->storing.scenario = name;
    begin_record(results, name);
}

static const char *run_status(int exit_code)
{
    switch (exit_code) {
    case RF_EXIT_OK:
        return "ok";
    case RF_EXIT_MISMATCH:
        return "mismatch";
    case RF_EXIT_FAILED:
    case RF_EXIT_USAGE:
    case RF_EXIT_LAUNCH:
        return "failed";
    default:
        return "interrupted";
    }
}

/* The status of the whole folder: an earlier scenario may have failed even if
 * this run is ok. */
static const char *folder_status(const struct rf_results *results,
                                 int exit_code)
{
    const char *status = run_status(exit_code);
    for (size_t i = 0; i < json_array_size(results->index); i++) {
        const char *scenario =
            rf_result_text(json_array_get(results->index, i), NULL, "status");
        if (exit_code != RF_EXIT_OK || strcmp(status, "mismatch") == 0 ||
            strcmp(scenario, "ok") == 0) {
            continue;
        }
        if (strcmp(scenario, "mismatch") == 0 ||
            strcmp(scenario, "failed") == 0) {
            status = scenario;
        } else if (strcmp(status, "ok") == 0) {
            status = "interrupted"; /* or not run */
        }
    }
    return status;
}

void rf_results_finish(struct rf_results *results, int exit_code)
{
    char stamp[24];
    assert(rf_results_storing(results) == NULL);
    rf_utc_stamp(stamp, sizeof(stamp));
    json_object_set_new(results->document, "finished_at", json_string(stamp));
    json_object_set_new(results->document, "status",
                        json_string(folder_status(results, exit_code)));
    json_object_set_new(results->document, "exit_code",
                        json_integer(exit_code));
    begin_run(results, RF_RESULTS_LAST);
}

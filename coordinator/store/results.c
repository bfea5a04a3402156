/*
 * Makes, resumes and discards the result folder; results.h has the contract,
 * and results_store.c stores files while it is open. flock(2) locks the folder
 * itself, so no stale lock file can remain.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/folders.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/json_schema.h"
#include "common/text.h"
#include "coordinator/config/paths.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/repeats.h"
#include "coordinator/records/report_table.h"
#include "coordinator/scenario/plan_schema.h"
#include "coordinator/store/result_folder.h"
#include "coordinator/store/result_json.h"
#include "coordinator/store/result_probe.h"
#include "coordinator/store/results_internal.h"
#include "coordinator/store/resume.h"

/* Stores run.json without ops: only before and after the run. */
static enum rf_status store_run(struct rf_results *results, struct rf_err *err)
{
    char *path = rf_results_path(results, "run", ".json");
    const enum rf_status status = rf_json_store(results->document, path, err);
    free(path);
    return status;
}

static enum rf_status make_folder(struct rf_results *results, const char *out,
                                  struct rf_err *err)
{
    RF_TRY(rf_result_folder_make(out, results->run.config->name, &results->old,
                                 &results->folder, err));
    results->parent = rf_xstrdup(out);
    return RF_OK;
}

static enum rf_status lock_folder(struct rf_results *results,
                                  struct rf_err *err)
{
    results->lock = open(results->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (results->lock < 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", results->folder);
    }
    if (flock(results->lock, LOCK_EX | LOCK_NB) != 0) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: another refit-coord is using it; wait until it ends",
            results->folder);
    }
    return RF_OK;
}

/* Gives each scenario its record's status, even if a resumed folder runs the
 * scenario again. */
static void fill_index(struct rf_results *results)
{
    const struct rf_config *config = results->run.config;
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const char *name = config->scenarios[i].name;
        const json_t *row = json_object_get(results->rows, name);
        json_object_set_new(
            rf_results_entry(results->index, name), "status",
            json_string(row != NULL ? rf_result_text(row, NULL, "status")
                                    : "not run"));
    }
}

#define REPEAT(M)                                                              \
    M(COUNT, repeat, OPTIONAL, n_repeats > 1 ? json_integer(n_repeats) : NULL)

/* Allocates `complete`, and puts the number of repeats into run.json. */
static void set_repeats(struct rf_results *results, uint32_t n_repeats)
{
    json_t *out = results->document;
    results->n_repeats = n_repeats;
    results->complete =
        rf_xcalloc(results->run.config->n_scenarios * n_repeats + 1,
                   sizeof(*results->complete));
    REPEAT(RF_PUT);
}

#define SKIPPED(M)                                                             \
    M(TEXT, name, REQUIRED, json_string(config->skipped[i].name))              \
    M(TEXT, reason, REQUIRED, json_string(config->skipped[i].reason))
#define LEFT_OUT(M)                                                            \
    M(LIST(skipped_schema()), skipped, REQUIRED, skipped_json(config))         \
    M(COUNT, slow_left_out, REQUIRED,                                          \
      json_integer((json_int_t)config->n_slow_left))

RF_MEMBERS_SCHEMA(skipped_schema, SKIPPED)

static json_t *skipped_json(const struct rf_config *config)
{
    json_t *list = json_array();
    for (size_t i = 0; i < config->n_skipped; i++) {
        json_t *out = json_object();
        SKIPPED(RF_PUT);
        json_array_append_new(list, out);
    }
    return list;
}

/* Notes the scenarios of cluster.json that this run leaves out. */
static void note_left_out(struct rf_results *results)
{
    const struct rf_config *config = results->run.config;
    json_t *out = results->document;
    LEFT_OUT(RF_PUT);
}

/* A node has no facts until it has joined. */
static json_t *environment_schema(void)
{
    return rf_json_schema_any_list(rf_json_schema_either(
        rf_json_schema_record("host:string"), rf_result_node_schema()));
}

static json_t *model_schema(void)
{
    json_t *out = rf_plan_model_schema();
    rf_json_schema_need(out, "digest", rf_json_schema_text());
    return out;
}

static json_t *index_schema(void)
{
    json_t *out = rf_json_schema_record("name:string file:string");
    rf_json_schema_need(out, "status", rf_result_status_schema("not run"));
    return rf_json_schema_any_list(out);
}

#define RUN(M)                                                                 \
    M(COUNT, schema_version, REQUIRED, json_integer(RF_SCHEMA_VERSION))        \
    M(OF(rf_result_tool_schema()), tool, REQUIRED, rf_result_json_tool())      \
    M(TEXT, run_id, REQUIRED, json_string(results->run_id))                    \
    M(TEXTS, argv, REQUIRED, rf_result_json_argv(&run->maker))                 \
    M(TEXT, name, REQUIRED, json_string(run->config->name))                    \
    M(TEXT, started_at, REQUIRED, json_string(stamp))                          \
    M(TEXT, finished_at, NULLABLE, NULL)                                       \
    M(OF(rf_result_status_schema("running")), status, REQUIRED,                \
      json_string("running"))                                                  \
    M(COUNT, exit_code, NULLABLE, NULL)                                        \
    M(TEXT, file, REQUIRED, json_string(run->config->file))                    \
    M(OF(rf_config_schema()), configuration, REQUIRED,                         \
      rf_result_json_configuration(run->config))                               \
    M(OF(environment_schema()), environment, REQUIRED,                         \
      json_incref(run->environment))                                           \
    M(OF(rf_result_head_schema()), head, REQUIRED,                             \
      rf_result_json_head(&run->maker))                                        \
    M(OF(model_schema()), model, NULLABLE, rf_resume_model(run))               \
    M(OF(rf_result_probe_schema()), probe, NULLABLE, NULL)                     \
    M(OF(index_schema()), scenarios, REQUIRED, json_array())

json_t *rf_results_schema(void)
{
    json_t *out = rf_json_schema_object();
    RUN(RF_DESCRIBE);
    LEFT_OUT(RF_DESCRIBE);
    REPEAT(RF_DESCRIBE);
    rf_json_schema_hoist(out, "configuration");
    return out;
}

static void new_document(struct rf_results *results)
{
    const struct rf_result_run *run = &results->run;
    json_t *out = json_object();
    char stamp[24];
    rf_random_hex(results->run_id, 8);
    rf_utc_stamp(stamp, sizeof(stamp));
    RUN(RF_PUT);
    results->document = out;
}

/* Repeats that are ok in a scenario's record do not run again. */
static bool note_complete(struct rf_results *results, size_t scenario,
                          const json_t *result)
{
    bool any = false;
    for (uint32_t r = 0; r < results->n_repeats; r++) {
        const size_t at = r * results->run.config->n_scenarios + scenario;
        results->complete[at] = rf_repeats_has(result, r);
        any |= results->complete[at];
    }
    return any;
}

/* Loads the folder's earlier record of a scenario, if any. */
static void load_earlier(struct rf_results *results, const char *name)
{
    const struct rf_config *config = results->run.config;
    char *path = rf_results_path(results, name, ".json");
    json_t *result = NULL;
    size_t i = 0;
    while (i < config->n_scenarios &&
           strcmp(config->scenarios[i].name, name) != 0) {
        i++;
    }
    if (rf_json_load(path, RF_RESULT_MAX_BYTES, &result, NULL) == RF_OK) {
        rf_results_keep_row(results->rows, name, result);
        if (i < config->n_scenarios && note_complete(results, i, result)) {
            rf_results_keep_row(results->shown, name, result);
        }
        if (results->n_repeats > 1) {
            json_object_set(results->repeated, name, result);
        }
    }
    json_decref(result);
    free(path);
}

/* Number of repeats of each scenario in a resumed folder: `asked`, or if 0, as
 * before. Fewer than before are an error. */
static enum rf_status resume_repeats(const struct rf_results *results,
                                     uint32_t asked, uint32_t *out,
                                     struct rf_err *err)
{
    const json_t *value = json_object_get(results->document, "repeat");
    const json_int_t number = json_integer_value(value);
    const uint32_t before =
        number >= 1 && number <= RF_RESULTS_MOST_REPEATS ? (uint32_t)number : 1;
    if (asked > 0 && asked < before) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: started with --repeat %u, cannot be lowered: "
                          "omit --repeat, or give at least %u",
                          results->folder, before, before);
    }
    *out = RF_MAX(asked, before);
    return RF_OK;
}

static enum rf_status read_old(struct rf_results *results, uint32_t asked,
                               struct rf_err *err)
{
    const struct rf_config *config = results->run.config;
    char *path = rf_results_path(results, "run", ".json");
    uint32_t n_repeats = 1;
    json_t *index;
    enum rf_status status =
        access(path, F_OK) != 0 && errno == ENOENT
            ? rf_err_set(err, RF_ERR_CONFIG,
                         "%s is not a result folder (no run.json); name the "
                         "folder of one run, such as results/<time>-<name>",
                         results->folder)
            : rf_json_load(path, RF_RESULT_MAX_BYTES, &results->document, err);
    free(path);
    RF_THEN(status, rf_resume_check(results->document, &results->run,
                                    results->folder, err));
    RF_THEN(status, resume_repeats(results, asked, &n_repeats, err));
    if (status != RF_OK) {
        return status;
    }
    results->before = json_deep_copy(results->document);
    set_repeats(results, n_repeats);
    rf_text_fit(results->run_id, sizeof(results->run_id),
                snprintf(results->run_id, sizeof(results->run_id), "%s",
                         rf_result_text(results->document, NULL, "run_id")));
    json_object_set_new(results->document, "argv",
                        rf_result_json_argv(&results->run.maker));
    json_object_set_new(results->document, "status", json_string("running"));
    if (results->run.model != NULL) {
        json_object_set_new(results->document, "model",
                            rf_resume_model(&results->run));
    }
    note_left_out(results);
    index = json_object_get(results->document, "scenarios");
    if (!json_is_array(index)) {
        index = json_array();
        json_object_set_new(results->document, "scenarios", index);
    }
    for (size_t i = 0; i < config->n_scenarios; i++) {
        (void)rf_results_entry(index, config->scenarios[i].name);
    }
    for (size_t i = 0; i < json_array_size(index); i++) {
        load_earlier(results,
                     rf_result_text(json_array_get(index, i), NULL, "name"));
    }
    return RF_OK;
}

static enum rf_status open_folder(struct rf_results *results,
                                  const struct rf_results_settings *settings,
                                  struct rf_err *err)
{
    enum rf_status status;
    if (results->resumed) {
        results->folder = rf_xstrdup(settings->resume);
        status = lock_folder(results, err);
        RF_THEN(status, read_old(results, settings->n_repeats, err));
        return status;
    }
    status = make_folder(results, settings->out, err);
    RF_THEN(status, lock_folder(results, err));
    if (status == RF_OK) {
        new_document(results);
        note_left_out(results);
        set_repeats(results, RF_MAX(settings->n_repeats, 1));
    }
    return status;
}

enum rf_status rf_results_open(const struct rf_results_settings *settings,
                               const struct rf_config *config,
                               const struct rf_model *model,
                               struct rf_results **out, struct rf_err *err)
{
    struct rf_results *results = rf_xcalloc(1, sizeof(*results));
    enum rf_status status;
    results->lock = -1;
    results->resumed = settings->resume != NULL;
    results->run = (struct rf_result_run){.maker = settings->maker,
                                          .config = config,
                                          .model = model,
                                          .run_id = results->run_id,
                                          .environment = json_array()};
    results->repeated = json_object();
    results->rows = json_object();
    results->shown = json_object();
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        json_array_append_new(
            results->run.environment,
            json_pack("{s:s}", "host", config->node_names[i]));
    }
    status = open_folder(results, settings, err);
    if (status == RF_OK) {
        results->whole_folder = rf_paths_absolute(".", results->folder);
        results->run.folder = results->whole_folder;
        results->run.logs = settings->logs;
        results->index = json_object_get(results->document, "scenarios");
        fill_index(results);
        status = store_run(results, err);
    }
    if (status != RF_OK) {
        rf_results_discard(results);
        rf_results_close(results);
        return status;
    }
    *out = results;
    return RF_OK;
}

uint32_t rf_results_repeats(const struct rf_results *results)
{
    return results->n_repeats;
}

const bool *rf_results_complete(const struct rf_results *results)
{
    return results->complete;
}

bool rf_results_all_complete(const struct rf_results *results)
{
    const size_t n = results->run.config->n_scenarios * results->n_repeats;
    for (size_t i = 0; i < n; i++) {
        if (!results->complete[i]) {
            return false;
        }
    }
    return true;
}

const char *rf_results_folder(const struct rf_results *results)
{
    return results->folder;
}

const char *rf_results_run_id(const struct rf_results *results)
{
    return results->run_id;
}

enum rf_status rf_results_set_model(struct rf_results *results,
                                    const struct rf_model *model,
                                    struct rf_err *err)
{
    results->run.model = model;
    const enum rf_status status = rf_resume_check_model(
        results->document, &results->run, results->folder, err);
    if (status == RF_OK) {
        json_object_set_new(results->document, "model",
                            rf_resume_model(&results->run));
    }
    return status;
}

void rf_results_node(struct rf_results *results, uint32_t node,
                     const struct rf_msg_hello *hello)
{
    json_array_set_new(
        results->run.environment, node,
        rf_result_json_node(results->run.config->node_names[node], hello));
    /* Only now: a resumed folder keeps its environment until nodes join. */
    json_object_set(results->document, "environment", results->run.environment);
}

const json_t *rf_results_last(const struct rf_results *results)
{
    return results->last;
}

void rf_results_print(const struct rf_results *results, FILE *to)
{
    const struct rf_config *config = results->run.config;
    struct rf_table *table = rf_report_table_create(RF_REPORT_TABLE, false);
    struct rf_remarks remarks = {.n_records = 0};
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const json_t *row =
            json_object_get(results->shown, config->scenarios[i].name);
        if (row != NULL) {
            rf_report_table_add(table, RF_REPORT_TABLE, NULL, row);
            rf_remarks_add(&remarks, NULL, row);
        }
    }
    rf_report_table_end(table, RF_REPORT_TABLE);
    if (rf_table_rows(table) > 0) {
        rf_table_print(table, to, RF_REPORT_TABLE, 0);
    }
    for (int i = 0; i < RF_REMARKS; i++) {
        char *line = rf_remarks_line(&remarks, (enum rf_remark)i);
        if (line != NULL) {
            fprintf(to, "%s\n", line);
        }
        free(line);
    }
    rf_remarks_free(&remarks);
    rf_table_destroy(table);
}

void rf_results_discard(struct rf_results *results)
{
    if (!results->resumed && results->folder != NULL) {
        char *path = rf_results_path(results, "run", ".json");
        unlink(path);
        free(path);
        rmdir(results->folder);
    } else if (results->before != NULL) {
        struct rf_err err = {0};
        json_object_clear(results->document);
        json_object_update(results->document, results->before);
        if (store_run(results, &err) != RF_OK) {
            rf_warn("%s", err.text);
        }
    }
    if (results->parent != NULL) {
        rf_folders_remove(results->parent, results->old);
    }
}

void rf_results_close(struct rf_results *results)
{
    if (results == NULL) {
        return;
    }
    rf_fd_close(&results->lock);
    json_decref(results->repeated);
    json_decref(results->rows);
    json_decref(results->shown);
    json_decref(results->run.environment);
    json_decref(results->document);
    json_decref(results->before);
    json_decref(results->last);
    rf_results_drop_logs(results);
    free(results->storing.path);
    free(results->complete);
    free(results->parent);
    free(results->whole_folder);
    free(results->folder);
    free(results);
}

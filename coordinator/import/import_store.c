/*
 * Storing imported records. See import_store.h. run.json comes last: a folder
 * without it is no result folder.
 */
#include "coordinator/import/import_store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/folders.h"
#include "common/json.h"
#include "common/mem.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/records/fields.h"
#include "coordinator/store/result_folder.h"

#define MOST_NAME 64

/* The name of a run: that of the file, as far as it is fit for one. Caller
 * frees. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    char *name = dot != NULL ? rf_xasprintf("%.*s", (int)(dot - base), base)
                             : rf_xstrdup(base);
    if (!rf_names_valid_file(name, MOST_NAME)) {
        free(name);
        return rf_xstrdup("import");
    }
    return name;
}

static json_t *run_json(const struct rf_result_run *run, const char *name,
                        const char *path, const json_t *records)
{
    json_t *scenarios = json_array();
    const json_t *record;
    char stamp[24];
    size_t i;
    json_array_foreach (records, i, record) {
        const char *scenario = rf_result_text(record, NULL, "name");
        json_array_append_new(scenarios,
                              json_pack("{s:s, s:s+, s:s}", "name", scenario,
                                        "file", scenario, ".json", "status",
                                        RF_RESULT_IMPORTED));
    }
    rf_utc_stamp(stamp, sizeof(stamp));
    return json_pack(
        "{s:i, s:o, s:s, s:o, s:s, s:s, s:s, s:s, s:i, s:s, s:n, s:[], s:o, "
        "s:n, s:n, s:o, s:[], s:i}",
        "schema_version", RF_SCHEMA_VERSION, "tool", rf_result_json_tool(),
        "run_id", run->run_id, "argv", rf_result_json_argv(&run->maker), "name",
        name, "started_at", stamp, "finished_at", stamp, "status",
        RF_RESULT_IMPORTED, "exit_code", 0, "file", path, "configuration",
        "environment", "head", rf_result_json_head(&run->maker), "model",
        "probe", "scenarios", scenarios, "skipped", "slow_left_out", 0);
}

/* The file of a record, or of run.json. */
static enum rf_status store(const char *folder, const char *name,
                            const json_t *document, struct rf_err *err)
{
    char *path = rf_xasprintf("%s/%s.json", folder, name);
    const enum rf_status status = rf_json_store(document, path, err);
    free(path);
    return status;
}

static enum rf_status store_all(const char *folder, const json_t *records,
                                const json_t *run, struct rf_err *err)
{
    const json_t *record;
    size_t i;
    json_array_foreach (records, i, record) {
        RF_TRY(
            store(folder, rf_result_text(record, NULL, "name"), record, err));
    }
    return store(folder, "run", run, err);
}

static void discard(const char *folder, const json_t *records)
{
    const json_t *record;
    size_t i;
    json_array_foreach (records, i, record) {
        char *path = rf_xasprintf("%s/%s.json", folder,
                                  rf_result_text(record, NULL, "name"));
        unlink(path);
        free(path);
    }
    rmdir(folder);
}

enum rf_status rf_import_store(const char *out, const char *path,
                               const struct rf_result_run *run,
                               const json_t *records, char **folder,
                               struct rf_err *err)
{
    char *name = name_of(path), *made = NULL;
    size_t old = 0;
    enum rf_status status = rf_result_folder_make(out, name, &old, &made, err);
    if (status == RF_OK) {
        json_t *document = run_json(run, name, path, records);
        status = store_all(made, records, document, err);
        json_decref(document);
        if (status == RF_OK) {
            *folder = made;
        } else {
            discard(made, records);
            rf_folders_remove(out, old);
            free(made);
        }
    }
    free(name);
    return status;
}

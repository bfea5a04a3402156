/* Packing an artifact. See artifact.h. */
#include "coordinator/artifact/artifact.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "common/shell.h"
#include "coordinator/artifact/artifact_run.h"
#include "coordinator/artifact/pack.h"
#include "coordinator/records/fields.h"
#include "coordinator/reports/report_json.h"

/* --- Names and times ------------------------------------------------------ */

char *rf_artifact_cluster_name(const struct rf_artifact_run *run)
{
    return rf_xasprintf("clusters/%s.json", run->name);
}

char *rf_artifact_again_name(const struct rf_artifact_run *run)
{
    return rf_xasprintf("again/%s", run->name);
}

char *rf_artifact_run_command(const struct rf_artifact_run *run,
                              const char *nodes)
{
    const json_int_t repeat =
        json_integer_value(json_object_get(run->document, "repeat"));
    char *names[] = {rf_artifact_cluster_name(run),
                     rf_artifact_again_name(run)};
    char *words[] = {rf_shell_word(names[0]), rf_shell_word(names[1])};
    char times[32] = "", *out;
    if (repeat > 1) {
        snprintf(times, sizeof(times), " --repeat %lld", (long long)repeat);
    }
    out = rf_xasprintf("refit-coord %s%s%s -o %s", words[0], times, nodes,
                       words[1]);
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        free(names[i]);
        free(words[i]);
    }
    return out;
}

bool rf_artifact_is_verified(const json_t *record)
{
    return rf_result_is_ok(record) &&
           rf_result_figure(record, "verification", "checked_bytes") > 0;
}

double rf_artifact_record_s(const json_t *record)
{
    return rf_result_figure(record, "setup", "total_ms") / 1000;
}

void rf_artifact_time_text(const struct rf_artifact *artifact, char out[32])
{
    double s = 0;
    for (size_t i = 0; i < artifact->n; i++) {
        const struct rf_artifact_run *run = &artifact->runs[i];
        for (size_t k = 0; run->cluster != NULL && k < run->n; k++) {
            s += rf_artifact_record_s(run->files[k].result);
        }
    }
    snprintf(out, 32, "about %.*f %s", s < 5400 ? 0 : 1,
             s < 90     ? s
             : s < 5400 ? s / 60
                        : s / 3600,
             s < 90     ? "s"
             : s < 5400 ? "min"
                        : "h");
}

/* --- Collecting ----------------------------------------------------------- */

static bool is_taken(const struct rf_artifact *artifact, const char *name)
{
    size_t i = 0;
    while (i < artifact->n && strcmp(artifact->runs[i].name, name) != 0) {
        i++;
    }
    return i < artifact->n;
}

/* The folder of a run in results/: "a_run" for "a/run" (of two folders of one
 * name), and "a_run-2" if another run has that. Caller frees. */
static char *name_of(const struct rf_artifact *artifact, const char *run)
{
    char *base = rf_xstrdup(run), *name;
    for (char *c = base; *c != '\0'; c++) {
        *c = *c == '/' ? '_' : *c;
    }
    name = rf_xstrdup(base);
    for (unsigned n = 2; is_taken(artifact, name); n++) {
        free(name);
        name = rf_xasprintf("%s-%u", base, n);
    }
    free(base);
    return name;
}

static enum rf_status add_run(struct rf_artifact *artifact,
                              const struct rf_result_set *set, size_t first,
                              struct rf_err *err)
{
    struct rf_artifact_run run = {.files = &set->files[first]};
    char *path;
    enum rf_status status;
    while (first + run.n < set->n &&
           (run.n == 0 || !rf_report_begins_run(set, first + run.n))) {
        run.n++;
    }
    for (size_t i = 0; i < artifact->n; i++) {
        if (strcmp(artifact->runs[i].files[0].folder, run.files[0].folder) ==
            0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: its results are named in several places; "
                              "name the folder instead",
                              run.files[0].folder);
        }
    }
    path = rf_xasprintf("%s/run.json", run.files[0].folder);
    status = rf_json_load(path, RF_RESULT_MAX_BYTES, &run.document, err);
    free(path);
    if (status != RF_OK) {
        return status;
    }
    run.name = name_of(artifact, run.files[0].run);
    run.facts = rf_report_run_json(set, first);
    run.imported = rf_result_is_imported(run.files[0].result);
    RF_PUSH(artifact->runs, artifact->n, artifact->cap, run);
    return run.imported
               ? RF_OK
               : rf_artifact_cluster(&artifact->runs[artifact->n - 1], err);
}

static void free_artifact(struct rf_artifact *artifact)
{
    for (size_t i = 0; i < artifact->n; i++) {
        struct rf_artifact_run *run = &artifact->runs[i];
        free(run->name);
        json_decref(run->document);
        json_decref(run->facts);
        json_decref(run->cluster);
        json_decref(run->secrets);
        json_decref(run->launching);
        json_decref(run->data);
    }
    free(artifact->runs);
}

/* --- Packing -------------------------------------------------------------- */

static enum rf_status pack_run(struct rf_pack *pack,
                               const struct rf_artifact_run *run,
                               struct rf_err *err)
{
    char *results = rf_xasprintf("results/%s", run->name);
    char *cluster = rf_artifact_cluster_name(run);
    enum rf_status status =
        rf_pack_copy(pack, results, run->files[0].folder, err);
    if (run->cluster != NULL) {
        RF_THEN(status,
                rf_pack_json(pack, cluster, json_incref(run->cluster), err));
    }
    free(results);
    free(cluster);
    return status;
}

static enum rf_status pack_schemas(struct rf_pack *pack, const json_t *schemas,
                                   struct rf_err *err)
{
    enum rf_status status = RF_OK;
    const char *name;
    json_t *schema;
    json_object_foreach ((json_t *)schemas, name, schema) {
        char *path = rf_xasprintf("schema/%s.json", name);
        RF_THEN(status, rf_pack_json(pack, path, json_incref(schema), err));
        free(path);
    }
    return status;
}

/* What each run.json says of machines, versions and the command line. */
static json_t *environment_json(const struct rf_artifact *artifact)
{
    static const char *const keys[] = {"argv", "started_at", "finished_at",
                                       "tool", "head",       "environment"};
    json_t *runs = json_array();
    for (size_t i = 0; i < artifact->n; i++) {
        const struct rf_artifact_run *run = &artifact->runs[i];
        json_t *out = json_pack("{s:s}", "run", run->name);
        for (size_t k = 0; k < RF_ARRAY_SIZE(keys); k++) {
            json_object_set(out, keys[k],
                            json_object_get(run->document, keys[k]));
        }
        json_array_append_new(runs, out);
    }
    return json_pack("{s:o}", "runs", runs);
}

static enum rf_status
pack_text(struct rf_pack *pack, const char *name,
          const struct rf_artifact *artifact,
          void (*print)(const struct rf_artifact *, FILE *), struct rf_err *err)
{
    char *text;
    size_t size;
    FILE *file = rf_xmemstream(&text, &size);
    enum rf_status status;
    print(artifact, file);
    rf_xmemstream_close(file);
    status = rf_pack_write(pack, name, text, size, err);
    free(text);
    return status;
}

static enum rf_status pack_all(struct rf_pack *pack,
                               struct rf_artifact *artifact,
                               const json_t *schemas, struct rf_err *err)
{
    for (size_t i = 0; i < artifact->n; i++) {
        RF_TRY(pack_run(pack, &artifact->runs[i], err));
    }
    RF_TRY(pack_schemas(pack, schemas, err));
    RF_TRY(rf_pack_json(pack, "environment.json", environment_json(artifact),
                        err));
    artifact->bytes = rf_pack_bytes(pack);
    RF_TRY(
        pack_text(pack, "README.md", artifact, rf_artifact_print_readme, err));
    RF_TRY(pack_text(pack, "appendix.tex", artifact, rf_artifact_print_appendix,
                     err));
    return rf_pack_finish(pack, err);
}

enum rf_status rf_artifact_write(const struct rf_result_set *set,
                                 const json_t *schemas, const char *path,
                                 struct rf_err *err)
{
    struct rf_artifact artifact = {0};
    struct rf_pack *pack = NULL;
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < set->n; i++) {
        if (rf_report_begins_run(set, i)) {
            status = add_run(&artifact, set, i, err);
        }
    }
    RF_THEN(status, rf_pack_begin(path, &pack, err));
    RF_THEN(status, pack_all(pack, &artifact, schemas, err));
    rf_pack_close(pack);
    free_artifact(&artifact);
    return status;
}

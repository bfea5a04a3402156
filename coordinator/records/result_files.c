/* Reading result folders back. See result_files.h. */
#include "coordinator/records/result_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/store.h"
#include "common/text.h"
#include "coordinator/records/fields.h"

/* A file's name and content may be any bytes; the warning is one line of clean
 * text. */
RF_PRINTF(2, 3)
static void leave_out(struct rf_result_set *set, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    rf_text_line(text, sizeof(text), fmt, args);
    va_end(args);
    rf_warn("%s", text);
    set->n_bad++;
}

/* The folder of a file. */
static char *folder_of(const char *path)
{
    char *folder = rf_xasprintf("%.*s", (int)(strrchr(path, '/') - path), path);
    char *real = realpath(folder, NULL);
    if (real == NULL) {
        return folder;
    }
    free(folder);
    return real;
}

/* The last `parts` components of a path, or all of it. */
static const char *tail_of(const char *path, size_t parts)
{
    const char *at = path + strlen(path);
    while (at > path && (at[-1] != '/' || --parts > 0)) {
        at--;
    }
    return *at != '\0' ? at : path;
}

static bool is_ambiguous(const struct rf_result_set *set, const char *folder,
                         size_t parts)
{
    const char *tail = tail_of(folder, parts);
    for (size_t i = 0; i < set->n; i++) {
        const char *other = set->files[i].folder;
        if (strcmp(tail, tail_of(other, parts)) == 0 &&
            strcmp(folder, other) != 0) {
            return tail != folder;
        }
    }
    return false;
}

/* Names each run after its folder, with as many parent folders as make the name
 * unique. */
static void name_runs(struct rf_result_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        struct rf_result_file *file = &set->files[i];
        const struct rf_result_file *before = i > 0 ? file - 1 : NULL;
        size_t parts = 1;
        free(file->run);
        if (before != NULL && strcmp(before->folder, file->folder) == 0) {
            file->run = rf_xstrdup(before->run);
            continue;
        }
        while (is_ambiguous(set, file->folder, parts)) {
            parts++;
        }
        file->run = rf_xstrdup(tail_of(file->folder, parts));
        rf_text_clean_line(file->run, strlen(file->run));
    }
}

/* Whether the file was seen before, as when a folder is given twice. */
static bool is_known(const struct rf_result_set *set, const struct stat *file)
{
    for (size_t i = 0; i < set->n_seen; i++) {
        if (set->seen[i].device == file->st_dev &&
            set->seen[i].inode == file->st_ino) {
            return true;
        }
    }
    return false;
}

/* Whether the file is a copy: not named after its scenario, whose own file is
 * beside it. */
static bool is_copy(const char *path, const char *name)
{
    const char *file = strrchr(path, '/') + 1;
    char *own = rf_xasprintf("%.*s%s.json", (int)(file - path), path, name);
    bool is = strcmp(path, own) != 0 && access(own, F_OK) == 0;
    free(own);
    return is;
}

enum rf_status rf_result_check(const json_t *result, const char *path,
                               struct rf_err *err)
{
    const json_t *schema = json_object_get(result, "schema_version");
    const char *name = json_string_value(json_object_get(result, "name"));
    json_int_t version = json_integer_value(schema);
    if (!json_is_integer(schema)) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: not a record of a scenario (schema_version is %s)", path,
            schema == NULL ? "missing" : "not an integer");
    }
    if (version < 1 || version > RF_SCHEMA_VERSION) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: unsupported schema_version %lld (1 to %d are "
                          "supported); use the version that wrote it",
                          path, (long long)version, RF_SCHEMA_VERSION);
    }
    if (!json_is_object(json_object_get(result, "summary"))) {
        return rf_err_set(err, RF_ERR_CONFIG, "%s: not a record with a summary",
                          path);
    }
    if (name == NULL || name[0] == '\0') {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: has a summary but no scenario name", path);
    }
    return RF_OK;
}

/* rf_result_set_take() without naming the run. */
static enum rf_status take(struct rf_result_set *set, const char *path,
                           json_t *document, struct rf_err *err)
{
    enum rf_status status = rf_result_check(document, path, err);
    char *name;
    if (status == RF_OK) {
        const char *own = rf_result_text(document, NULL, "name");
        status = is_copy(path, own)
                     ? rf_err_set(err, RF_ERR_CONFIG,
                                  "%s: is a copy of %s.json", path, own)
                     : RF_OK;
    }
    if (status != RF_OK) {
        rf_text_clean_line(err->text, strlen(err->text));
        json_decref(document);
        return status;
    }
    name = rf_xstrdup(rf_result_text(document, NULL, "name"));
    rf_text_clean_line(name, strlen(name));
    RF_PUSH(set->files, set->n, set->cap,
            ((struct rf_result_file){.path = rf_xstrdup(path),
                                     .name = name,
                                     .folder = folder_of(path),
                                     .result = document}));
    return RF_OK;
}

enum rf_status rf_result_set_take(struct rf_result_set *set, const char *path,
                                  json_t *document, struct rf_err *err)
{
    enum rf_status status = take(set, path, document, err);
    name_runs(set);
    return status;
}

/* Adds the file of one scenario, unless it was added before. */
static enum rf_status add_file(struct rf_result_set *set, const char *path,
                               struct rf_err *err)
{
    json_t *document = NULL;
    struct stat file;
    bool there = stat(path, &file) == 0;
    enum rf_status status;
    if (there && is_known(set, &file)) {
        set->n_repeated++;
        return RF_OK;
    }
    status = rf_json_load(path, RF_RESULT_MAX_BYTES, &document, err);
    RF_THEN(status, take(set, path, document, err));
    if (there) {
        RF_PUSH(set->seen, set->n_seen, set->cap_seen,
                ((struct rf_file_id){file.st_dev, file.st_ino}));
    }
    return status;
}

/* The position of a scenario in its run's index; unknown ones come last. */
static size_t index_of(const json_t *index, const char *name)
{
    size_t i = 0;
    while (i < json_array_size(index) &&
           strcmp(rf_result_text(json_array_get(index, i), NULL, "name"),
                  name) != 0) {
        i++;
    }
    return i;
}

/* Sorts the files from `first` on, all of one run, by its index. */
static void sort_run(struct rf_result_set *set, size_t first,
                     const json_t *index)
{
    for (size_t i = first; i < set->n; i++) {
        struct rf_result_file file = set->files[i];
        size_t at = i;
        while (at > first && index_of(index, set->files[at - 1].name) >
                                 index_of(index, file.name)) {
            set->files[at] = set->files[at - 1];
            at--;
        }
        set->files[at] = file;
    }
}

/* Warns of scenarios that ran but have no record. */
static void warn_of_lost(struct rf_result_set *set, const char *folder,
                         const json_t *index)
{
    for (size_t i = 0; i < json_array_size(index); i++) {
        const json_t *entry = json_array_get(index, i);
        const char *name = rf_result_text(entry, NULL, "name");
        const char *status = rf_result_text(entry, NULL, "status");
        char *path = rf_xasprintf("%s/%s.json", folder, name);
        struct stat file;
        bool there = stat(path, &file) == 0;
        if (strcmp(status, "-") != 0 && strcmp(status, "not run") != 0 &&
            !(there && is_known(set, &file))) {
            leave_out(
                set,
                "%s: scenario %s left out: \"%s\" in run.json, but its file %s",
                folder, name, status,
                there ? "is not a record with a summary" : "is missing");
        }
        free(path);
    }
}

void rf_result_file_free(struct rf_result_file *file)
{
    free(file->path);
    free(file->name);
    free(file->folder);
    free(file->run);
    json_decref(file->result);
    json_decref(file->pooled);
}

/* Another file from `first` on with the same scenario as file `i`, or NULL. */
static const struct rf_result_file *twin_of(const struct rf_result_set *set,
                                            size_t first, size_t i)
{
    for (size_t k = first; k < set->n; k++) {
        if (k != i && strcmp(set->files[k].name, set->files[i].name) == 0) {
            return &set->files[k];
        }
    }
    return NULL;
}

/* A run has one record per scenario. If several files have the same scenario
 * and none has its name, the right one is unknown: leaves out all. */
static void leave_out_twins(struct rf_result_set *set, size_t first)
{
    size_t kept = first;
    bool *bad = rf_xcalloc(set->n + 1, sizeof(*bad));
    for (size_t i = first; i < set->n; i++) {
        const struct rf_result_file *twin = twin_of(set, first, i);
        bad[i] = twin != NULL;
        if (bad[i]) {
            leave_out(
                set,
                "%s: left out: duplicate record of scenario %s, also in %s",
                set->files[i].path, set->files[i].name,
                strrchr(twin->path, '/') + 1);
        }
    }
    for (size_t i = first; i < set->n; i++) {
        if (bad[i]) {
            rf_result_file_free(&set->files[i]);
        } else {
            set->files[kept++] = set->files[i];
        }
    }
    set->n = kept;
    free(bad);
}

/* Checks the files from `first` on against run.json. */
static void finish_run(struct rf_result_set *set, size_t first,
                       const char *folder)
{
    char *path = rf_xasprintf("%s/run.json", folder);
    struct rf_err err = {0};
    json_t *document = NULL;
    const json_t *index;
    if (rf_json_load(path, RF_RESULT_MAX_BYTES, &document, &err) != RF_OK) {
        leave_out(set, "%s; its scenarios are sorted by name", err.text);
    }
    index = json_object_get(document, "scenarios");
    leave_out_twins(set, first);
    sort_run(set, first, index);
    warn_of_lost(set, folder, index);
    json_decref(document);
    free(path);
}

static int wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_scenario_file(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".json") == 0 &&
           strcmp(name, "run.json") != 0;
}

static bool has_run(const char *folder)
{
    char *path = rf_xasprintf("%s/run.json", folder);
    bool found = access(path, R_OK) == 0;
    free(path);
    return found;
}

/* `nested`: the folder is inside a given one, so only a run's folder counts. */
static enum rf_status add_folder(struct rf_result_set *set, const char *folder,
                                 bool nested, struct rf_err *err)
{
    struct dirent **entries;
    enum rf_status status = RF_OK;
    bool run = has_run(folder);
    size_t first = set->n;
    int n;
    if (nested && !run) {
        return RF_OK;
    }
    n = scandir(folder, &entries, wanted, alphasort);
    if (n < 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", folder);
    }
    for (int i = 0; i < n; i++) {
        char *path = rf_xasprintf("%s/%s", folder, entries[i]->d_name);
        struct rf_err why = {0};
        if (run && is_scenario_file(entries[i]->d_name)) {
            if (add_file(set, path, &why) != RF_OK) {
                leave_out(set, "%s; the file is left out", why.text);
            }
        } else if (status == RF_OK && !run) {
            status = add_folder(set, path, true, err);
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    if (run) {
        finish_run(set, first, folder);
    }
    return status;
}

enum rf_status rf_result_set_add(struct rf_result_set *set, const char *path,
                                 struct rf_err *err)
{
    size_t before = set->n + set->n_repeated + set->n_bad;
    const bool is_file = rf_is_file(path);
    char *whole = rf_xasprintf(
        "%s%s", is_file && strchr(path, '/') == NULL ? "./" : "", path);
    enum rf_status status = is_file ? add_file(set, whole, err)
                                    : add_folder(set, whole, false, err);
    free(whole);
    name_runs(set);
    if (status == RF_OK && set->n + set->n_repeated + set->n_bad == before) {
        status = rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: no results (no run.json with records of scenarios beside it)",
            path);
    }
    if (status != RF_OK) {
        rf_text_clean_line(err->text, strlen(err->text));
    }
    return status;
}

bool rf_result_set_has_runs(const struct rf_result_set *set)
{
    for (size_t i = 1; i < set->n; i++) {
        if (strcmp(set->files[i].run, set->files[0].run) != 0) {
            return true;
        }
    }
    return false;
}

json_t *rf_result_set_title(const struct rf_result_set *set, size_t i)
{
    const bool runs = rf_result_set_has_runs(set);
    return json_sprintf("%s%s%s", runs ? set->files[i].run : "",
                        runs ? "/" : "", set->files[i].name);
}

void rf_result_set_free(struct rf_result_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        rf_result_file_free(&set->files[i]);
    }
    free(set->files);
    free(set->seen);
    *set = (struct rf_result_set){0};
}

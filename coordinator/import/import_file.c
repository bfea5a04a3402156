/*
 * Reading files of measured refits. See import_file.h. A row of CSV is a case
 * with its source: a column `train.tp` is the member `tp` of the case's `train`.
 * A cell that reads as a JSON value is one, except in columns of text.
 */
#include "coordinator/import/import_file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/import/csv.h"

const char *const rf_import_source_keys[] = {"system", "title",  "url",
                                             "date",   "window", NULL};
/* Other columns whose cells are text, whatever they look like. */
static const char *const text_keys[] = {"name",     "label", "assumed",
                                        "hardware", "model", NULL};

char *rf_import_case_place(const struct rf_import_case *one)
{
    return one->place != NULL
               ? rf_xstrdup(one->place)
               : rf_xasprintf("%s: %s", one->value.file, one->value.path);
}

static void add_case(struct rf_import_file *file, const struct rf_jnode *source,
                     const struct rf_jnode *value, char *place)
{
    RF_PUSH(file->cases, file->n, file->cap,
            ((struct rf_import_case){
                .source = *source, .value = *value, .place = place}));
}

/* --- JSON ----------------------------------------------------------------- */

/* A list of objects, or nothing if absent. */
static enum rf_status check_list(const struct rf_jnode *list,
                                 struct rf_err *err)
{
    if (list->value != NULL && !json_is_array(list->value)) {
        return rf_jnode_fail(list, err, "must be a list of objects");
    }
    return RF_OK;
}

static enum rf_status take_source(struct rf_import_file *file,
                                  const struct rf_jnode *source,
                                  struct rf_err *err)
{
    static const char *const keys[] = {"system", "title",   "url",
                                       "date",   "window",  "assumed",
                                       "cases",  "missing", NULL};
    const struct rf_jnode cases = rf_jnode_get(source, "cases");
    RF_TRY(rf_jnode_check_keys(source, keys, err));
    RF_TRY(check_list(&cases, err));
    for (size_t i = 0; i < json_array_size(cases.value); i++) {
        const struct rf_jnode one = rf_jnode_at(&cases, i);
        if (!json_is_object(one.value)) {
            return rf_jnode_fail(&one, err, "must be an object");
        }
        add_case(file, source, &one, NULL);
    }
    return RF_OK;
}

/* Entries of "hardware": links, and a word about where these are from. */
static enum rf_status check_hardware(const struct rf_jnode *hardware,
                                     struct rf_err *err)
{
    static const char *const keys[] = {"links", "from", NULL};
    const char *name;
    json_t *value;
    json_object_foreach (hardware->value, name, value) {
        const struct rf_jnode one = rf_jnode_get(hardware, name);
        RF_TRY(rf_jnode_check_keys(&one, keys, err));
        RF_TRY(rf_jnode_require(&one, "links", err));
    }
    return RF_OK;
}

static enum rf_status read_json(struct rf_import_file *file, const char *text,
                                size_t size, struct rf_err *err)
{
    static const char *const keys[] = {"hardware", "models", "sources", NULL};
    struct rf_jnode root, sources;
    RF_TRY(rf_json_parse(text, size, file->path, &file->document, err));
    root = rf_jnode_root(file->document, file->path);
    RF_TRY(rf_jnode_check_keys(&root, keys, err));
    RF_TRY(rf_jnode_require(&root, "sources", err));
    file->hardware = rf_jnode_get(&root, "hardware");
    RF_TRY(check_hardware(&file->hardware, err));
    file->models = rf_jnode_get(&root, "models");
    sources = rf_jnode_get(&root, "sources");
    RF_TRY(check_list(&sources, err));
    for (size_t i = 0; i < json_array_size(sources.value); i++) {
        const struct rf_jnode source = rf_jnode_at(&sources, i);
        RF_TRY(take_source(file, &source, err));
    }
    return RF_OK;
}

/* --- CSV ------------------------------------------------------------------ */

static json_t *cell_json(const char *column, const char *cell)
{
    json_t *value = NULL;
    if (rf_word_is_one_of(column, text_keys) ||
        rf_json_parse_value(cell, column, &value, NULL) != RF_OK) {
        value = json_string(cell);
    }
    return value;
}

/* Puts a value at the place that a column names: "a.b" is `b` in `a`. False if
 * `a` is no object, or `b` is there. Takes `value`. */
static bool put_at(json_t *object, const char *column, json_t *value)
{
    const char *dot;
    while (json_is_object(object) && (dot = strchr(column, '.')) != NULL) {
        json_t *inner =
            json_object_getn(object, column, (size_t)(dot - column));
        if (inner == NULL) {
            inner = json_object();
            json_object_setn_new(object, column, (size_t)(dot - column), inner);
        }
        object = inner;
        column = dot + 1;
    }
    if (!json_is_object(object) || column[0] == '\0' ||
        json_object_get(object, column) != NULL) {
        json_decref(value);
        return false;
    }
    return json_object_set_new(object, column, value) == 0;
}

/* Columns that contradict: one twice, or "a" and "a.b". */
static enum rf_status check_head(const json_t *head, const struct rf_csv *csv,
                                 size_t line, struct rf_err *err)
{
    json_t *seen = json_object();
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < json_array_size(head) && status == RF_OK; i++) {
        const char *column = json_string_value(json_array_get(head, i));
        if (!put_at(seen, column, json_true())) {
            status = rf_err_set(err, RF_ERR_CONFIG,
                                "%s, line %zu: column %zu, \"%.80s\": has no "
                                "name, or is there already",
                                csv->name, line, i + 1, column);
        }
    }
    json_decref(seen);
    if (status == RF_OK && json_array_size(head) == 1 &&
        strchr(json_string_value(json_array_get(head, 0)), ';') != NULL) {
        status = rf_err_set(err, RF_ERR_CONFIG,
                            "%s, line %zu: one column only: columns must be "
                            "separated by commas, not semicolons",
                            csv->name, line);
    }
    return status;
}

/* Takes a row as a case; the document keeps both. */
static enum rf_status take_row(struct rf_import_file *file, const json_t *head,
                               const json_t *row, size_t line,
                               struct rf_err *err)
{
    json_t *source = json_object(), *value = json_object();
    char *place = rf_xasprintf("%s, line %zu", file->path, line);
    struct rf_jnode nodes[2];
    json_array_append_new(file->document, source);
    json_array_append_new(file->document, value);
    nodes[0] = rf_jnode_root(source, place);
    nodes[1] = rf_jnode_root(value, place);
    add_case(file, &nodes[0], &nodes[1], place);
    if (json_array_size(row) != json_array_size(head)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: %zu cells, but %zu columns: quote cells that "
                          "contain commas",
                          place, json_array_size(row), json_array_size(head));
    }
    for (size_t i = 0; i < json_array_size(head); i++) {
        const char *column = json_string_value(json_array_get(head, i));
        const char *cell = json_string_value(json_array_get(row, i));
        const bool of_source = rf_word_is_one_of(column, rf_import_source_keys);
        if (cell[0] != '\0') {
            (void)put_at(of_source ? source : value, column,
                         of_source ? json_string(cell)
                                   : cell_json(column, cell));
        }
    }
    return RF_OK;
}

static enum rf_status read_csv(struct rf_import_file *file, char *text,
                               size_t size, struct rf_err *err)
{
    struct rf_csv csv = rf_csv_begin(text, size, file->path);
    json_t *head = NULL, *row = NULL;
    size_t line = 1;
    enum rf_status status = rf_csv_next(&csv, &head, &line, err);
    file->document = json_array();
    if (status == RF_OK && head != NULL) {
        status = check_head(head, &csv, line, err);
    }
    while (status == RF_OK && head != NULL) {
        status = rf_csv_next(&csv, &row, &line, err);
        if (status != RF_OK || row == NULL) {
            break;
        }
        status = take_row(file, head, row, line, err);
        json_decref(row);
    }
    json_decref(head);
    return status;
}

/* -------------------------------------------------------------------------- */

const char *rf_import_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static bool is_csv_name(const char *path)
{
    const size_t length = strlen(path);
    return length > 4 && strcasecmp(path + length - 4, ".csv") == 0;
}

/* A JSON file is an object. */
static bool is_csv_text(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && isspace((unsigned char)text[i])) {
        i++;
    }
    return i < size && text[i] != '{';
}

enum rf_status rf_import_file_read(const char *path, struct rf_import_file *out,
                                   struct rf_err *err)
{
    const char *name = rf_import_file_name(path);
    const bool is_input = name != path;
    char *text = NULL;
    size_t size = 0;
    bool is_csv;
    enum rf_status status;
    *out = (struct rf_import_file){.path = name};
    RF_TRY(is_input ? rf_json_read_text(STDIN_FILENO, name, RF_IMPORT_MAX_BYTES,
                                        &text, &size, err)
                    : rf_json_load_text(path, RF_IMPORT_MAX_BYTES, &text, &size,
                                        err));
    is_csv = is_input ? is_csv_text(text, size) : is_csv_name(path);
    status = is_csv ? read_csv(out, text, size, err)
                    : read_json(out, text, size, err);
    free(text);
    if (status == RF_OK && out->n == 0) {
        status =
            rf_err_set(err, RF_ERR_CONFIG,
                       "%s: no case: %s; see refit-result(5), \"import\"", name,
                       is_csv ? "the first line names the columns, each "
                                "line after it is one case"
                              : "\"sources\" must have \"cases\"");
    }
    return status;
}

void rf_import_file_free(struct rf_import_file *file)
{
    for (size_t i = 0; i < file->n; i++) {
        free(file->cases[i].place);
    }
    free(file->cases);
    json_decref(file->document);
    *file = (struct rf_import_file){.path = NULL};
}

/*
 * Outliers as CSV. A row is a JSON object from column names to the texts of a
 * cell, so rows may have different columns. The table has the columns of all
 * rows, in order of first appearance. A cell's texts are keys of an object,
 * which removes duplicates. See outliers.h.
 */
#include "coordinator/reports/outliers.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/records_differ.h"
#include "coordinator/table/table.h"

static bool is_other_question_cb(const char *path, const json_t *in_a,
                                 const json_t *in_b, void *data)
{
    static const char *const parts[] = {"scenario", "model", "plan"};
    bool *is = data;
    (void)in_a;
    (void)in_b;
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        const size_t size = strlen(parts[i]);
        *is = *is || (strncmp(path, parts[i], size) == 0 &&
                      strchr(".[", path[size]) != NULL);
    }
    return !*is;
}

/* Whether the verdict is not "same", or scenario, model or plan differ. A
 * different build or machine alone does not count. */
static bool is_outlier(const struct rf_comparison *one)
{
    bool other = false;
    if (one->verdict == RF_SAME) {
        rf_records_each_difference(one->old_record, one->new_record,
                                   is_other_question_cb, &other);
    }
    return one->verdict != RF_SAME || other;
}

/* --- Cells ---------------------------------------------------------------- */

/* Empty if absent. Caller frees. */
static char *text_of(const json_t *value)
{
    return value == NULL || json_is_null(value) ? rf_xstrdup("")
                                                : rf_json_plain(value);
}

/* Adds a text to a cell. */
static void put(json_t *row, const char *side, const char *name,
                const json_t *value)
{
    char *column = rf_xasprintf("%s%s", side, name), *text = text_of(value);
    json_t *cell = json_object_get(row, column);
    if (cell == NULL) {
        cell = json_object();
        json_object_set_new(row, column, cell);
    }
    if (text[0] != '\0') {
        json_object_set_new(cell, text, json_null());
    }
    free(column);
    free(text);
}

/* "environment.kernel" for any node's entry. Caller frees. */
static char *without_node(const char *path)
{
    static const char nodes[] = "environment[";
    const char *behind = strchr(path, ']');
    return strncmp(path, nodes, strlen(nodes)) == 0 && behind != NULL
               ? rf_xasprintf("environment%s", behind + 1)
               : rf_xstrdup(path);
}

static bool differs_cb(const char *path, const json_t *in_a, const json_t *in_b,
                       void *data)
{
    char *name = without_node(path);
    put(data, "reference.", name, in_a);
    put(data, "new.", name, in_b);
    free(name);
    return true;
}

/* --- Rows ----------------------------------------------------------------- */

/* Puts one side's scalar figures; nothing if `figures` is null. */
static void put_side(json_t *row, const char *side, const json_t *figures)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)figures, key, value) {
        if (!json_is_array(value) && !json_is_object(value)) {
            put(row, side, key, value);
        }
    }
}

/* What was run, from the new record, or from the old one if it is alone. */
static void put_arguments(json_t *row, const struct rf_comparison *one)
{
    static const char *const keys[][2] = {
        {"model", "name"},       {"scenario", "mode"},
        {"scenario", "method"},  {"scenario", "strategy"},
        {"scenario", "balance"},
    };
    const json_t *record =
        one->new_record != NULL ? one->new_record : one->old_record;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        const bool model = strcmp(keys[i][0], "model") == 0;
        put(row, "", model ? "model" : keys[i][1],
            rf_result_value(record, keys[i][0], keys[i][1]));
    }
}

/* Each metric's judgement: "memory.change". */
static void put_judgements(json_t *row, const json_t *judgements)
{
    const char *metric;
    json_t *judgement;
    json_object_foreach ((json_t *)judgements, metric, judgement) {
        char *prefix = rf_xasprintf("%s.", metric);
        put_side(row, prefix, judgement);
        free(prefix);
    }
}

/* `entry`: the comparison as JSON. A new reference. */
static json_t *row_of(const struct rf_comparison *one, json_t *entry)
{
    json_t *row = json_object();
    json_object_del(entry, "differs"); /* differs_cb() puts each difference */
    put_side(row, "", entry);
    put_judgements(row, json_object_get(entry, "judgements"));
    put_arguments(row, one);
    put_side(row, "reference.", json_object_get(entry, "reference"));
    put_side(row, "new.", json_object_get(entry, "new"));
    if (one->old_record != NULL && one->new_record != NULL) {
        rf_records_each_difference(one->old_record, one->new_record, differs_cb,
                                   row);
    }
    return row;
}

static json_t *rows_of(const struct rf_comparisons *all)
{
    json_t *document = rf_comparisons_json(all), *rows = json_array();
    const json_t *entries = json_object_get(document, "comparisons");
    for (size_t i = 0; i < all->n; i++) {
        if (is_outlier(&all->list[i])) {
            json_array_append_new(
                rows, row_of(&all->list[i], json_array_get(entries, i)));
        }
    }
    json_decref(document);
    return rows;
}

/* The columns of all rows; the first are always present. */
static json_t *columns_of(const json_t *rows)
{
    static const char *const always[] = {
        "scenario",     "verdict",    "judged",  "change",
        "time_change",  "regression", "model",   "mode",
        "method",       "strategy",   "balance", "reference.median_ms",
        "new.median_ms"};
    json_t *columns = json_object();
    json_t *row;
    size_t i;
    for (i = 0; i < RF_ARRAY_SIZE(always); i++) {
        json_object_set_new(columns, always[i], json_null());
    }
    json_array_foreach (rows, i, row) {
        json_object_update_missing(columns, row);
    }
    return columns;
}

/* "a; b" */
static void add_cell(struct rf_table *table, const json_t *texts)
{
    const char *text;
    char *all = NULL;
    json_t *any;
    json_object_foreach ((json_t *)texts, text, any) {
        rf_text_add(&all, "; ", "%s", text);
    }
    rf_table_cell(table, "%s", all != NULL ? all : "");
    free(all);
}

static struct rf_table *table_of(const json_t *rows)
{
    json_t *columns = columns_of(rows), *row, *any;
    const char **heads =
        rf_xcalloc(json_object_size(columns) + 1, sizeof(*heads));
    struct rf_table *table;
    const char *key;
    size_t n = 0, i;
    json_object_foreach (columns, key, any) {
        heads[n++] = key;
    }
    table = rf_table_create(heads);
    json_array_foreach (rows, i, row) {
        json_object_foreach (columns, key, any) {
            add_cell(table, json_object_get(row, key));
        }
    }
    free(heads);
    json_decref(columns);
    return table;
}

char *rf_outliers_csv(const struct rf_comparisons *all)
{
    json_t *rows = rows_of(all);
    struct rf_table *table = table_of(rows);
    char *text = rf_table_text(table, RF_REPORT_CSV);
    rf_table_destroy(table);
    json_decref(rows);
    return text;
}

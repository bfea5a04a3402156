/* Results as one document. See report_json.h. */
#include "coordinator/reports/report_json.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/report_table.h"

static bool is_same_run(const struct rf_result_set *set, size_t i, size_t j)
{
    return strcmp(set->files[i].run, set->files[j].run) == 0;
}

bool rf_report_begins_run(const struct rf_result_set *set, size_t i)
{
    return i == 0 || !is_same_run(set, i - 1, i);
}

/* A text of a record, or null. */
static json_t *text_or_null(const json_t *result, const char *object,
                            const char *key)
{
    const json_t *value = rf_result_value(result, object, key);
    return json_is_string(value) ? json_deep_copy(value) : json_null();
}

static json_t *figure_or_null(const json_t *result, const char *key)
{
    double number;
    return rf_result_number(result, NULL, key, &number)
               ? json_deep_copy(json_object_get(result, key))
               : json_null();
}

/* A node's facts that matter to a reader of figures. */
static json_t *machine_json(const json_t *node)
{
    const json_t *all = json_object_get(node, "gpus");
    json_t *gpus = json_array();
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_array_append_new(
            gpus, text_or_null(json_array_get(all, i), NULL, "name"));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "host",
                     text_or_null(node, NULL, "host"), "cpu",
                     text_or_null(node, NULL, "cpu"), "cpus",
                     figure_or_null(node, "cpus"), "memory_bytes",
                     figure_or_null(node, "memory_bytes"), "gpus", gpus);
}

static json_t *machines_json(const json_t *nodes)
{
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_array_append_new(out, machine_json(json_array_get(nodes, i)));
    }
    return out;
}

/* Whether two nodes differ only in their names. */
static bool is_same_machine(const json_t *a, const json_t *b)
{
    json_t *x = json_deep_copy(a), *y = json_deep_copy(b);
    bool same;
    json_object_del(x, "host");
    json_object_del(y, "host");
    same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* "a, b": all nodes that are the same machine as `first`; NULL if one before it
 * is. Caller frees. */
static char *hosts_of(const json_t *nodes, size_t first)
{
    const json_t *machine = json_array_get(nodes, first);
    char *text = NULL;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        if (is_same_machine(machine, node)) {
            if (i < first) {
                return NULL;
            }
            rf_text_add(&text, ", ", "%s", rf_result_text(node, NULL, "host"));
        }
    }
    return text;
}

/* Adds "8 x NVIDIA H100", for each kind of GPU in a row. */
static void add_gpus(char **text, const json_t *gpus)
{
    const size_t n = json_array_size(gpus);
    for (size_t i = 0, same; i < n; i += same) {
        const json_t *one = json_array_get(gpus, i);
        const char *name = json_string_value(one);
        same = 1;
        while (i + same < n &&
               json_equal(one, json_array_get(gpus, i + same))) {
            same++;
        }
        rf_text_add(text, ", ", "%zu x %s", same, name != NULL ? name : "-");
    }
}

char *rf_report_machine_text(const json_t *nodes, size_t first)
{
    const json_t *node = json_array_get(nodes, first);
    const json_int_t cpus = json_integer_value(json_object_get(node, "cpus"));
    char *text = hosts_of(nodes, first), memory[32];
    double bytes;
    if (text == NULL) {
        return NULL;
    }
    rf_text_add(&text, "", ": %s", rf_result_text(node, NULL, "cpu"));
    if (cpus > 0) {
        rf_text_add(&text, ", ", "%lld processors", (long long)cpus);
    }
    if (rf_result_number(node, NULL, "memory_bytes", &bytes)) {
        rf_text_add(&text, ", ", "%s",
                    rf_format_bytes((uint64_t)bytes, memory, sizeof(memory)));
    }
    add_gpus(&text, json_object_get(node, "gpus"));
    return text;
}

/* The string in those results of the run that have it; null if they differ. */
static json_t *shared_or_null(const struct rf_result_set *set, size_t first,
                              const char *object, const char *key)
{
    const json_t *shared = NULL;
    for (size_t i = first; i < set->n && is_same_run(set, i, first); i++) {
        const json_t *value =
            rf_result_value(set->files[i].result, object, key);
        if (shared != NULL && json_is_string(value) &&
            !json_equal(shared, value)) {
            return json_null();
        }
        shared = json_is_string(value) ? value : shared;
    }
    return shared != NULL ? json_deep_copy(shared) : json_null();
}

/* Number of models that a run's results name. */
static json_int_t count_models(const struct rf_result_set *set, size_t first)
{
    json_t *names = json_object();
    size_t n;
    for (size_t i = first; i < set->n && is_same_run(set, i, first); i++) {
        const json_t *name =
            rf_result_value(set->files[i].result, "model", "name");
        if (json_is_string(name)) {
            json_object_set_new(names, json_string_value(name), json_true());
        }
    }
    n = json_object_size(names);
    json_decref(names);
    return (json_int_t)n;
}

json_t *rf_report_run_json(const struct rf_result_set *set, size_t first)
{
    const json_t *result = set->files[first].result;
    json_int_t ok = 0, all = 0;
    for (size_t i = first; i < set->n && is_same_run(set, i, first);
         i++, all++) {
        ok += rf_result_is_ok(set->files[i].result);
    }
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:I}", "run",
        set->files[first].run, "run_id", text_or_null(result, NULL, "run_id"),
        "started_at", text_or_null(result, NULL, "started_at"), "model",
        shared_or_null(set, first, "model", "name"), "models",
        count_models(set, first), "dtype",
        shared_or_null(set, first, "model", "dtype"), "nodes",
        machines_json(json_object_get(result, "environment")), "version",
        text_or_null(result, "tool", "version"), "build",
        text_or_null(result, "tool", "build"), "ok", ok, "not_ok", all - ok);
}

/* A list of a record, empty if absent. */
static json_t *list_json(const json_t *result, const char *key)
{
    const json_t *list = json_object_get(result, key);
    return json_is_array(list) ? json_deep_copy(list) : json_array();
}

/* The fields of the CSV table, the flags, the memory of each rank, and the
 * pooled runs. */
static json_t *row_json(const struct rf_result_file *file)
{
    json_t *out = json_object();
    json_object_set_new(out, "run", json_string(file->run));
    for (const struct rf_result_field *f = rf_result_fields; f->key != NULL;
         f++) {
        if (f->column != NULL) {
            json_object_set_new(out, f->column,
                                rf_report_value(file->result, f));
        }
    }
    json_object_set_new(out, "flags", list_json(file->result, "flags"));
    json_object_set_new(out, "memory", list_json(file->result, "memory"));
    json_object_set_new(out, "pooled",
                        file->pooled != NULL ? json_incref(file->pooled)
                                             : json_array());
    return out;
}

json_t *rf_report_json(const struct rf_result_set *set)
{
    json_t *runs = json_array(), *results = json_array();
    for (size_t i = 0; i < set->n; i++) {
        if (rf_report_begins_run(set, i)) {
            json_array_append_new(runs, rf_report_run_json(set, i));
        }
        json_array_append_new(results, row_json(&set->files[i]));
    }
    return json_pack("{s:i, s:o, s:o}", "schema_version", RF_SCHEMA_VERSION,
                     "runs", runs, "results", results);
}

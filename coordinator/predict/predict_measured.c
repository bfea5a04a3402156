/*
 * The measured times that correspond to predictions. Names identify nothing:
 * the next cluster.json may give a scenario's name to another model, and a
 * model's name may be reused, too. So a result counts if these are equal: the
 * model's size, the settings, those of libraries in launch.env, the nodes, and
 * the digests of plan and schedule. Pure. See predict.h.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text.h"
#include "common/variables.h"
#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/records_differ.h"

/* The settings that affect the time, without the options of the scenario's
 * method if a different method is meant. */
static json_t *settings_of(const json_t *scenario, bool own_method)
{
    json_t *settings = rf_refit_settings(scenario);
    if (!own_method) {
        json_object_del(settings, "disk");
        json_object_del(settings, "ucx");
    }
    return settings;
}

/* Each rank's host, from a result's `environment`, or if NULL, from the file.
 * Empty if the file has no nodes. */
static json_t *hosts_of(const struct rf_scenario *scenario,
                        const json_t *environment)
{
    json_t *hosts = json_array();
    for (uint32_t r = 0;
         scenario->config->n_nodes > 0 && r < scenario->world->n_ranks; r++) {
        uint32_t node = scenario->world->ranks[r].node;
        const char *host =
            environment == NULL
                ? scenario->config->node_names[node]
                : rf_result_text(json_array_get(environment, node), NULL,
                                 "host");
        json_array_append_new(hosts, json_string(host));
    }
    return hosts;
}

/* Variables of launch.env that matter to a method, except secrets, which
 * results do not keep. */
static json_t *variables_of(const json_t *env)
{
    json_t *out = json_object(), *value;
    const char *name;
    json_object_foreach ((json_t *)env, name, value) {
        if (rf_variable_matters(name) && !rf_result_secret_name(name) &&
            !json_is_null(value)) {
            json_object_set(out, name, value);
        }
    }
    return out;
}

static json_t *digest_json(const struct rf_hash *hash)
{
    char text[RF_HASH_TEXT_SIZE];
    rf_hash_text(hash, text);
    return json_string(text);
}

/* Fields that must be equal, in the order in which differences are reported. */
static json_t *wanted_of(const struct rf_scenario *scenario, const char *method,
                         const json_t *model)
{
    bool own = strcmp(method, scenario->spec->method) == 0;
    json_t *settings = settings_of(scenario->document, own);
    json_object_set_new(settings, "method", json_string(method));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "status", "ok",
                     "model", rf_refit_model(model), "scenario", settings,
                     "launch.env", variables_of(scenario->config->env), "hosts",
                     hosts_of(scenario, NULL), "plan.digest",
                     digest_json(&scenario->plan->digest), "schedule.digest",
                     digest_json(&scenario->schedule->digest));
}

/* The same fields of a result. */
static json_t *found_in(const json_t *result,
                        const struct rf_scenario *scenario, const char *method)
{
    bool own = strcmp(method, scenario->spec->method) == 0;
    json_t *settings = settings_of(json_object_get(result, "scenario"), own);
    return json_pack(
        "{s:s, s:o?, s:o?, s:o, s:o, s:s, s:s}", "status",
        rf_result_is_imported(result) ? "ok"
                                      : rf_result_text(result, NULL, "status"),
        "model", rf_refit_model(json_object_get(result, "model")), "scenario",
        settings, "launch.env",
        variables_of(rf_result_value(result, "cluster.launch", "env")), "hosts",
        hosts_of(scenario, json_object_get(result, "environment")),
        "plan.digest", rf_result_text(result, "plan", "digest"),
        "schedule.digest", rf_result_text(result, "schedule", "digest"));
}

/* A value for a message: null, a number or a string; NULL for others. Caller
 * frees. */
static char *value_text(const json_t *value)
{
    return value == NULL ? rf_xstrdup("not set")
           : json_is_object(value) || json_is_array(value)
               ? NULL
               : json_dumps(value, JSON_ENCODE_ANY);
}

static const char *failure_text(const json_t *status)
{
    const char *text = json_string_value(status);
    return text != NULL && strcmp(text, "mismatch") == 0 ? "had wrong bytes"
           : text != NULL && strcmp(text, "interrupted") == 0
               ? "was interrupted"
               : "failed";
}

/* NULL if they are equal. Caller frees. */
static char *difference_text(const struct rf_result_file *file,
                             const json_t *there, const json_t *here)
{
    const json_t *in_there, *in_here;
    char *where = rf_json_difference_at(there, here, &in_there, &in_here);
    char *a, *b, *text;
    if (where == NULL) {
        return NULL;
    }
    if (strcmp(where, ".status") == 0) {
        free(where);
        return rf_xasprintf("not measured: scenario %s of run %s %s",
                            file->name, file->run, failure_text(in_there));
    }
    a = value_text(in_there);
    b = value_text(in_here);
    text =
        a != NULL && b != NULL
            ? rf_xasprintf(
                  "not measured: scenario %s of run %s measures another refit: "
                  "%s is %s there, %s here",
                  file->name, file->run, where + 1, a, b)
            : rf_xasprintf(
                  "not measured: scenario %s of run %s measures another refit: "
                  "%s differs",
                  file->name, file->run, where + 1);
    free(a);
    free(b);
    free(where);
    return text;
}

/* --- Usable parts of a result --------------------------------------------- */

struct samples {
    double *of;
    size_t n, cap;
};

/* Adds one repeat's times. */
static void take_repeat(const json_t *result, json_int_t repeat,
                        struct samples *samples)
{
    const json_t *iterations = json_object_get(result, "iterations"), *one;
    double ms;
    size_t i;
    json_array_foreach (iterations, i, one) {
        if (json_integer_value(json_object_get(one, "repeat")) == repeat &&
            rf_result_number(one, NULL, "refit_ms", &ms)) {
            RF_PUSH(samples->of, samples->n, samples->cap, ms);
        }
    }
}

/* Fills `out`, or `why` if no repeat is usable. */
static void measure(const struct rf_result_file *file,
                    const struct rf_predict_speeds *speeds,
                    struct rf_measured *out, char **why)
{
    size_t n_left_out = 0;
    double ms = 0;
    struct rf_predict_other_speed found, other = {.node = NULL};
    struct samples samples = {.n = 0};
    const json_t *record;
    for (size_t r = 0; (record = rf_predict_record(file->result, r)) != NULL;
         r++) {
        if (speeds != NULL && !rf_predict_was_usual(speeds, record, &found)) {
            other = found;
            n_left_out++;
        } else {
            take_repeat(file->result,
                        json_integer_value(json_object_get(record, "repeat")),
                        &samples);
        }
    }
    if (n_left_out == 0) {
        ms = rf_result_figure(file->result, "summary", "median_ms");
    } else if (samples.n > 0) {
        ms = rf_stats_median(samples.of, samples.n);
    } else {
        *why = rf_xasprintf("not used: scenario %s of run %s: node %s copied "
                            "%.3g GB/s, usually %.3g",
                            file->name, file->run, other.node,
                            other.copy_gbytes_per_s, other.usual_gbytes_per_s);
    }
    out->n_left_out += n_left_out;
    if (ms > 0) {
        out->ms = ms;
        out->from = file;
    }
    free(samples.of);
}

/* Takes `reason`; drops it if the result already has one. */
static void note(const struct rf_result_set *set,
                 const struct rf_result_file *file, char **reasons,
                 char *reason)
{
    char **at = reasons != NULL ? &reasons[file - set->files] : NULL;
    if (at != NULL && *at == NULL) {
        *at = reason;
    } else {
        free(reason);
    }
}

void rf_predict_measured(const struct rf_result_set *set,
                         const struct rf_predict_speeds *speeds,
                         const struct rf_scenario *scenario, const char *method,
                         const json_t *model, char **reasons,
                         struct rf_measured *out)
{
    bool own = strcmp(method, scenario->spec->method) == 0;
    json_t *here = wanted_of(scenario, method, model);
    *out = (struct rf_measured){.ms = 0};
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *file = &set->files[i], *last = out->from;
        json_t *there = found_in(file->result, scenario, method);
        char *why = difference_text(file, there, here);
        json_decref(there);
        if (why == NULL) {
            measure(file, speeds, out, &why);
            if (last != NULL && out->from != last) {
                note(
                    set, last, reasons,
                    rf_xasprintf(
                        "not used: scenario %s of run %s: superseded by run %s",
                        last->name, last->run, file->run));
            }
        } else if (!own || strcmp(file->name, scenario->spec->name) != 0) {
            free(why);
            why = NULL;
        }
        if (why != NULL) {
            note(set, file, reasons, rf_xstrdup(why));
            free(out->why);
            out->why = why;
        }
    }
    if (out->ms > 0) {
        free(out->why);
        out->why = NULL;
    }
    json_decref(here);
}

static bool is_used(const struct rf_predict_rows *rows,
                    const struct rf_result_file *file)
{
    bool used = false;
    for (size_t i = 0; i < rows->n; i++) {
        used |= rows->rows[i].measured.from == file;
    }
    return used;
}

json_t *rf_predict_not_used(const struct rf_result_set *set,
                            char *const *reasons,
                            const struct rf_predict_rows *rows)
{
    json_t *out = json_array();
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *file = &set->files[i];
        const char *reason = reasons[i];
        if (!is_used(rows, file)) {
            json_array_append_new(
                out, reason != NULL
                         ? rf_text_json(reason, strlen(reason))
                         : json_sprintf("not used: scenario %s of run %s: no "
                                        "such refit in the file",
                                        file->name, file->run));
        }
    }
    return out;
}

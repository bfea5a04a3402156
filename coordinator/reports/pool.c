/*
 * Pools runs of the same scenarios. See pool.h.
 *
 * Scenarios match by name, and their records must be of the same refit:
 * settings, model, hosts, the digests of plan and schedule, and the ways chosen
 * by the method's library. Other differences (versions, a kernel) may explain
 * why runs differ, so they are reported, but do not keep samples apart. A
 * record counts once: a copy of a run's folder would count every sample twice.
 */
#include "coordinator/reports/pool.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/records_differ.h"
#include "coordinator/records/repeats.h"
#include "coordinator/records/report_table.h"

static json_t *hosts_of(const json_t *record)
{
    const json_t *nodes = json_object_get(record, "environment"), *node;
    json_t *out = json_array();
    size_t i;
    json_array_foreach (nodes, i, node) {
        json_array_append_new(out,
                              json_string(rf_result_text(node, NULL, "host")));
    }
    return out;
}

/* Fields that must be equal, in the order in which differences are reported. */
static json_t *refit_of(const json_t *record)
{
    return json_pack(
        "{s:o?, s:o?, s:o, s:s, s:s, s:s}", "model",
        rf_refit_model(json_object_get(record, "model")), "scenario",
        rf_refit_settings(json_object_get(record, "scenario")), "hosts",
        hosts_of(record), "plan.digest",
        rf_result_text(record, "plan", "digest"), "schedule.digest",
        rf_result_text(record, "schedule", "digest"), "setup.registration",
        rf_result_text(record, "setup", "registration"));
}

/* Why two records cannot be pooled; NULL if they can. Caller frees. */
static char *obstacle(const json_t *a, const json_t *b)
{
    const json_t *run = json_object_get(a, "run_id");
    json_t *x, *y;
    char *where, *text = NULL;
    if (rf_result_is_imported(a) || rf_result_is_imported(b)) {
        return rf_xstrdup("another system's times are no repeats");
    }
    if (json_is_string(run) && json_equal(run, json_object_get(b, "run_id"))) {
        return rf_xasprintf("both are of run_id %s, so one is a copy",
                            json_string_value(run));
    }
    x = refit_of(a);
    y = refit_of(b);
    where = rf_json_difference(x, y);
    if (where != NULL) {
        text = rf_xasprintf("they differ in %s", where + 1);
    }
    free(where);
    json_decref(x);
    json_decref(y);
    return text;
}

/* --- One scenario --------------------------------------------------------- */

/* The origin of a record's samples; the first run has nothing to differ
 * from. */
static json_t *source_json(const struct rf_result_file *file,
                           const json_t *first)
{
    const json_t *repeats = json_object_get(file->result, "repeats");
    const json_t *id = json_object_get(file->result, "run_id");
    char *differs =
        first != NULL ? rf_records_differ(first, file->result) : NULL;
    json_t *out =
        json_pack("{s:s, s:O, s:I, s:s?}", "run", file->run, "run_id",
                  json_is_string(id) ? id : json_null(), "repeats",
                  json_is_array(repeats) ? (json_int_t)json_array_size(repeats)
                                         : (json_int_t)1,
                  "differs", differs);
    free(differs);
    return out;
}

/* Files to pool into `into`. */
struct file_group {
    struct rf_result_file *into;
    const json_t **records; /* of the files, the first that of `into` */
    size_t n, cap;
    json_t *sources;
    json_t *pooled; /* the pooled record; NULL with a single file */
};

static void add_to(struct file_group *group, const struct rf_result_file *file)
{
    const json_t *first = group->n > 0 ? group->records[0] : NULL;
    json_t *before = group->pooled;
    json_array_append_new(group->sources, source_json(file, first));
    if (group->n > 0) {
        group->pooled =
            rf_repeats_join(before != NULL ? before : first, file->result);
        json_decref(before);
    }
    RF_PUSH(group->records, group->n, group->cap,
            (const json_t *)json_incref(file->result));
}

/* Why a record cannot join a group: the first obstacle among the group's
 * records; NULL: none. */
static char *obstacle_in(const struct file_group *group, const json_t *record)
{
    char *why = NULL;
    for (size_t i = 0; i < group->n && why == NULL; i++) {
        why = obstacle(group->records[i], record);
    }
    return why;
}

/* --- The set -------------------------------------------------------------- */

struct pool {
    struct file_group *groups;
    size_t n, cap;
    size_t apart;
};

static void warn_apart(const struct rf_result_file *a,
                       const struct rf_result_file *b, char *why)
{
    rf_text_clean_line(why, strlen(why));
    rf_warn("scenario %s of run %s is not pooled with that of run %s: %s",
            a->name, b->run, a->run, why);
}

static void take(struct pool *pool, struct rf_result_file *file)
{
    struct file_group fresh = {.into = file, .sources = json_array()};
    const struct rf_result_file *namesake = NULL;
    char *why = NULL;
    for (size_t i = 0; i < pool->n; i++) {
        struct file_group *group = &pool->groups[i];
        char *reason;
        if (strcmp(group->into->name, file->name) != 0) {
            continue;
        }
        reason = obstacle_in(group, file->result);
        if (reason == NULL) {
            free(why);
            json_decref(fresh.sources);
            add_to(group, file);
            return;
        }
        if (why == NULL) {
            namesake = group->into;
            why = reason;
        } else {
            free(reason);
        }
    }
    if (why != NULL) {
        warn_apart(namesake, file, why);
        pool->apart++;
    }
    free(why);
    add_to(&fresh, file);
    RF_PUSH(pool->groups, pool->n, pool->cap, fresh);
}

/* "a, b" */
static char *names_of(const json_t *sources)
{
    char *text = NULL;
    const json_t *one;
    size_t i;
    json_array_foreach (sources, i, one) {
        rf_text_add(&text, ", ", "%s", rf_result_text(one, NULL, "run"));
    }
    return text;
}

/* Puts the pooled record into the group's file. */
static void finish(struct file_group *group)
{
    if (group->pooled != NULL) {
        group->into->pooled = json_incref(group->sources);
        json_object_set_new(group->pooled, "run_id", json_null());
        json_decref(group->into->result);
        group->into->result = group->pooled;
        free(group->into->run);
        group->into->run = names_of(group->sources);
    }
    for (size_t i = 0; i < group->n; i++) {
        json_decref((json_t *)group->records[i]);
    }
    free(group->records);
    json_decref(group->sources);
}

/* Keeps only the groups' files, with those of one run together. */
static void keep(struct rf_result_set *set, const struct pool *pool)
{
    struct rf_result_file *kept = rf_xcalloc(set->n + 1, sizeof(*kept));
    size_t n = 0;
    for (size_t i = 0; i < pool->n; i++) {
        size_t at = 0;
        while (at < n && strcmp(kept[at].run, pool->groups[i].into->run) != 0) {
            at++;
        }
        while (at < n && strcmp(kept[at].run, pool->groups[i].into->run) == 0) {
            at++;
        }
        memmove(&kept[at + 1], &kept[at], (n - at) * sizeof(*kept));
        kept[at] = *pool->groups[i].into;
        *pool->groups[i].into = (struct rf_result_file){0};
        n++;
    }
    for (size_t i = 0; i < set->n; i++) {
        rf_result_file_free(&set->files[i]);
    }
    free(set->files);
    set->files = kept;
    set->cap = set->n + 1;
    set->n = n;
}

void rf_pool(struct rf_result_set *set, struct rf_pooled *counts)
{
    struct pool pool = {0};
    counts->several |= rf_result_set_has_runs(set);
    for (size_t i = 0; i < set->n; i++) {
        take(&pool, &set->files[i]);
    }
    for (size_t i = 0; i < pool.n; i++) {
        counts->scenarios += pool.groups[i].pooled != NULL;
        finish(&pool.groups[i]);
    }
    keep(set, &pool);
    free(pool.groups);
    counts->apart += pool.apart;
}

enum rf_status rf_pool_check(const struct rf_pooled *counts, struct rf_err *err)
{
    if (counts->scenarios > 0) {
        return RF_OK;
    }
    return counts->several
               ? rf_err_set(err, RF_ERR_CONFIG,
                            "--pool: no scenario has comparable records in two "
                            "runs; scenarios are matched by name")
               : rf_err_set(err, RF_ERR_CONFIG,
                            "--pool needs two runs: name several run folders, "
                            "or a folder of them");
}

/* --- Text ----------------------------------------------------------------- */

char *rf_pool_text(const struct rf_result_file *file)
{
    const json_t *record = file->result, *sources = file->pooled, *one;
    const double repeats = rf_result_figure(record, "summary", "repeats");
    const double count = rf_result_figure(record, "summary", "count");
    double within, between;
    char a[32], b[32], *text, *names;
    size_t i;
    if (sources == NULL) {
        return NULL;
    }
    names = names_of(sources);
    text = rf_xasprintf("pooled: %s: %.0f iterations of %.0f repeats in %zu "
                        "runs (%s)",
                        file->name, count, repeats, json_array_size(sources),
                        names);
    free(names);
    if (rf_result_number(record, "summary.variance.refit_ms", "within_percent",
                         &within) &&
        rf_result_number(record, "summary.variance.refit_ms", "between_percent",
                         &between)) {
        rf_text_add(&text, "; ",
                    "standard deviation %s %% within repeats, %s %% between",
                    rf_amount_text(within, a), rf_amount_text(between, b));
    }
    json_array_foreach (sources, i, one) {
        const json_t *differs = json_object_get(one, "differs");
        if (json_is_string(differs)) {
            rf_text_add(&text, "; ", "%s differs in %s",
                        rf_result_text(one, NULL, "run"),
                        json_string_value(differs));
        }
    }
    rf_text_clean_line(text, strlen(text));
    return text;
}

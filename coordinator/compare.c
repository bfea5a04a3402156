/*
 * `refit-coord compare`: what moved between two sets of results. The threshold
 * is two-sided: faster is reported as well, since an unexplained gain is often
 * a mistake, but only slower, broken or missing makes the exit code 1. Beside
 * each finding stands what else differs (machine, versions, scenario, plan), so
 * that a change of the question is not taken for a change of the answer.
 */
#include "coordinator/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/commands.h"
#include "coordinator/difference.h"
#include "coordinator/report_table.h"

/* Figures that are compared, and whether more is better. */
static const struct {
    const char *object, *key;
    bool more_is_better;
} metrics[] = {
    {"summary", "median_ms", false},
    {"summary", "p95_ms", false},
    {"bound", "efficiency", true},
};

static const struct rf_result_file *find(const struct rf_result_set *set,
                                         const char *name)
{
    for (size_t i = 0; i < set->n; i++) {
        if (strcmp(set->files[i].name, name) == 0) {
            return &set->files[i];
        }
    }
    return NULL;
}

static bool is_ok(const json_t *result)
{
    return strcmp(rf_result_text(result, NULL, "status"), "ok") == 0;
}

/* The parts of a record that say what was run and where. */
static char *differences(const json_t *a, const json_t *b)
{
    static const char *const parts[] = {"scenario", "model", "plan", "tool",
                                        "environment"};
    static const char *const volatile_keys[] = {
        "plan_ms", "memory_available_bytes", "candidate"}; /* a port */
    char *list = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        json_t *x = json_deep_copy(json_object_get(a, parts[i]));
        json_t *y = json_deep_copy(json_object_get(b, parts[i]));
        char *where, *longer;
        for (size_t k = 0; k < RF_ARRAY_SIZE(volatile_keys); k++) {
            json_object_del(x, volatile_keys[k]);
            json_object_del(y, volatile_keys[k]);
            for (size_t n = 0; n < json_array_size(x); n++) {
                json_object_del(json_array_get(x, n), volatile_keys[k]);
            }
            for (size_t n = 0; n < json_array_size(y); n++) {
                json_object_del(json_array_get(y, n), volatile_keys[k]);
            }
        }
        where = x != NULL || y != NULL ? rf_json_difference(x, y) : NULL;
        json_decref(x);
        json_decref(y);
        if (where == NULL) {
            continue;
        }
        longer = rf_xasprintf("%s%s%s%s", list != NULL ? list : "",
                              list != NULL ? ", " : "", parts[i], where);
        free(where);
        free(list);
        list = longer;
    }
    return list;
}

static void add(struct rf_comparisons *out, const char *name,
                enum rf_verdict verdict, const char *metric, double reference,
                double now, char *differs)
{
    RF_PUSH(out->list, out->n, out->cap,
            ((struct rf_comparison){.name = rf_xstrdup(name),
                                    .verdict = verdict,
                                    .metric = metric,
                                    .reference = reference,
                                    .now = now,
                                    .change =
                                        reference > 0 ? now / reference - 1 : 0,
                                    .differs = differs}));
}

/* Compares one metric; true when it moved and an entry was added. */
static bool compare_metric(const char *name, const json_t *a, const json_t *b,
                           size_t m, double threshold, const char *differs,
                           struct rf_comparisons *out)
{
    double x, y, change;
    bool better;
    if (!rf_result_number(a, metrics[m].object, metrics[m].key, &x) ||
        !rf_result_number(b, metrics[m].object, metrics[m].key, &y) || x <= 0) {
        return false;
    }
    change = y / x - 1;
    if (fabs(change) <= threshold) {
        return false;
    }
    better = (change > 0) == metrics[m].more_is_better;
    add(out, name, better ? RF_FASTER : RF_SLOWER, metrics[m].key, x, y,
        differs != NULL ? rf_xstrdup(differs) : NULL);
    return true;
}

static void compare_pair(const char *name, const json_t *a, const json_t *b,
                         double threshold, struct rf_comparisons *out)
{
    char *differs = differences(a, b);
    bool moved = false;
    double x = 0, y = 0;
    if (!is_ok(a) || !is_ok(b)) {
        add(out, name,
            is_ok(a)   ? RF_BROKEN
            : is_ok(b) ? RF_MENDED
                       : RF_NO_FIGURES,
            "status", 0, 0, differs);
        return;
    }
    for (size_t m = 0; m < RF_ARRAY_SIZE(metrics); m++) {
        moved |= compare_metric(name, a, b, m, threshold, differs, out);
    }
    if (!moved) {
        (void)rf_result_number(a, "summary", "median_ms", &x);
        (void)rf_result_number(b, "summary", "median_ms", &y);
        add(out, name, RF_SAME, "median_ms", x, y, differs);
        return;
    }
    free(differs);
}

/* Which of two results of one scenario is meant is not for us to guess. */
static enum rf_status check_once(const struct rf_result_set *set,
                                 const char *folder, struct rf_err *err)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *first = find(set, set->files[i].name);
        if (first != NULL && first != &set->files[i]) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: scenario %s is in several runs (%s, %s); "
                              "compare the folder of one run",
                              folder, first->name, first->run,
                              set->files[i].run);
        }
    }
    return RF_OK;
}

enum rf_status rf_compare_check(const struct rf_result_set *reference,
                                const char *reference_folder,
                                const struct rf_result_set *now,
                                const char *now_folder, struct rf_err *err)
{
    enum rf_status status = check_once(reference, reference_folder, err);
    if (status == RF_OK) {
        status = check_once(now, now_folder, err);
    }
    for (size_t i = 0; status == RF_OK && i < now->n; i++) {
        if (find(reference, now->files[i].name) != NULL) {
            return RF_OK;
        }
    }
    return status != RF_OK
               ? status
               : rf_err_set(err, RF_ERR_CONFIG,
                            "no scenario is in both %s and %s; scenarios are "
                            "matched by name",
                            reference_folder, now_folder);
}

void rf_compare(const struct rf_result_set *reference,
                const struct rf_result_set *now, double threshold,
                struct rf_comparisons *out)
{
    for (size_t i = 0; i < reference->n; i++) {
        const char *name = reference->files[i].name;
        const struct rf_result_file *b = find(now, name);
        if (b == NULL) {
            add(out, name, RF_MISSING, NULL, 0, 0, NULL);
        } else {
            compare_pair(name, reference->files[i].result, b->result, threshold,
                         out);
        }
    }
    for (size_t i = 0; i < now->n; i++) {
        const char *name = now->files[i].name;
        if (find(reference, name) == NULL) {
            add(out, name, RF_NEW, NULL, 0, 0, NULL);
        }
    }
}

void rf_comparisons_free(struct rf_comparisons *comparisons)
{
    for (size_t i = 0; i < comparisons->n; i++) {
        free(comparisons->list[i].name);
        free(comparisons->list[i].differs);
    }
    free(comparisons->list);
    *comparisons = (struct rf_comparisons){0};
}

bool rf_comparison_is_regression(const struct rf_comparison *comparison)
{
    return comparison->verdict == RF_SLOWER ||
           comparison->verdict == RF_BROKEN ||
           comparison->verdict == RF_MISSING;
}

static const char *verdict_name(enum rf_verdict verdict)
{
    static const char *const names[] = {"same",   "slower", "faster",
                                        "broken", "mended", "missing",
                                        "new",    "not ok"};
    return names[verdict];
}

static size_t count_regressions(const struct rf_comparisons *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        n += rf_comparison_is_regression(&all->list[i]);
    }
    return n;
}

static json_t *figure(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

json_t *rf_comparisons_json(const struct rf_comparisons *comparisons,
                            double threshold)
{
    json_t *list = json_array();
    for (size_t i = 0; i < comparisons->n; i++) {
        const struct rf_comparison *one = &comparisons->list[i];
        bool known = one->reference > 0;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s?, s:o, s:o, s:o, s:b, s:s?}",
                            "scenario", one->name, "verdict",
                            verdict_name(one->verdict), "metric", one->metric,
                            "reference", figure(known, one->reference), "new",
                            figure(known, one->now), "change",
                            figure(known, one->change), "regression",
                            rf_comparison_is_regression(one), "differs",
                            one->differs));
    }
    return json_pack("{s:f, s:I, s:o}", "threshold", threshold, "regressions",
                     (json_int_t)count_regressions(comparisons), "comparisons",
                     list);
}

static void print_table(const struct rf_comparisons *all)
{
    static const char *const heads[] = {"scenario",     "verdict", "metric",
                                        ">reference",   ">new",    ">change",
                                        "also differs", NULL};
    struct rf_table *table = rf_table_create(heads);
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_comparison *one = &all->list[i];
        bool figures = one->reference > 0;
        rf_table_cell(table, "%s", one->name);
        rf_table_cell(table, "%s", verdict_name(one->verdict));
        rf_table_cell(table, "%s", one->metric != NULL ? one->metric : "-");
        rf_table_cell(table, figures ? "%.4g" : "-", one->reference);
        rf_table_cell(table, figures ? "%.4g" : "-", one->now);
        rf_table_cell(table, figures ? "%+.1f %%" : "-", one->change * 100);
        rf_table_cell(table, "%s", one->differs != NULL ? one->differs : "");
    }
    rf_table_print(table, stdout, RF_REPORT_TABLE, 0);
    rf_table_destroy(table);
}

int rf_compare_command(const struct rf_cli *cli)
{
    struct rf_result_set reference = {0}, now = {0};
    struct rf_comparisons all = {0};
    struct rf_err err = {0};
    size_t regressions;
    int code = RF_EXIT_USAGE;
    if (rf_result_set_add(&reference, cli->operands[0], &err) != RF_OK ||
        rf_result_set_add(&now, cli->operands[1], &err) != RF_OK ||
        rf_compare_check(&reference, cli->operands[0], &now, cli->operands[1],
                         &err) != RF_OK) {
        rf_error("%s", err.text);
        goto out;
    }
    rf_compare(&reference, &now, cli->threshold, &all);
    regressions = count_regressions(&all);
    if (cli->json) {
        json_t *document = rf_comparisons_json(&all, cli->threshold);
        json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(document);
    } else {
        print_table(&all);
        printf("%zu regression%s beyond %.3g %%\n", regressions,
               regressions == 1 ? "" : "s", cli->threshold * 100);
    }
    code = regressions > 0 ? RF_EXIT_FAILED : RF_EXIT_OK;
out:
    rf_comparisons_free(&all);
    rf_result_set_free(&reference);
    rf_result_set_free(&now);
    return code;
}

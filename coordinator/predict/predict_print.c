/* Predictions as a table and as JSON. See predict.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_out.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/predict/predict.h"
#include "coordinator/records/report_table.h"
#include "coordinator/table/escape.h"

/* "between nodes": where most of a row's time is spent. */
static const char *path_text(const struct rf_predict_row *row)
{
    static const char *const texts[] = {
        [RF_PATH_IN_PLACE] = "in place",
        [RF_PATH_INSIDE] = "inside nodes",
        [RF_PATH_RANK] = "one rank's copies",
        [RF_PATH_BETWEEN] = "between nodes",
        [RF_PATH_CPU] = "operations",
        [RF_PATH_CHANGES] = "changes",
        [RF_PATH_CONVERSION] = "conversion",
    };
    return row->method->needs_folder ? "files" : texts[row->p.path];
}

/* The number of a footnote, from 1; names of runs may be any bytes. */
static size_t note_number(json_t *notes, const char *text)
{
    json_t *note = rf_text_json(text, strlen(text));
    size_t i = 0;
    while (i < json_array_size(notes) &&
           !json_equal(json_array_get(notes, i), note)) {
        i++;
    }
    if (i == json_array_size(notes)) {
        json_array_append(notes, note);
    }
    json_decref(note);
    return i + 1;
}

/* Seconds; `ms` < 0: none. `note` NULL: no footnote. */
static void seconds_cell(struct rf_table *table, double ms, const char *note,
                         json_t *notes)
{
    char text[32];
    const char *seconds = ms >= 0 ? rf_amount_text(ms / 1e3, text) : "-";
    if (note != NULL) {
        rf_table_cell(table, "%s [%zu]", seconds, note_number(notes, note));
    } else {
        rf_table_cell(table, "%s", seconds);
    }
}

/* On the prediction, or why there is none; NULL: nothing. */
static const char *note_of(const struct rf_predict_row *row)
{
    if (row->gap == NULL && row->p.ms < row->p.bound_ms) {
        return "below its bound: results that calibrate it were below theirs, "
               "so the rates of \"links\" or probes are too low; measure again "
               "on idle nodes";
    }
    return row->gap != NULL        ? row->gap
           : row->p.n_results == 0 ? row->note
                                   : NULL;
}

static const char *results_text(size_t n)
{
    return n == 1 ? "result" : "results";
}

/* "3 results", which calibrated the row; "figures", of links or probes alone,
 * otherwise. */
static void basis_cell(struct rf_table *table, const struct rf_predict_row *row)
{
    if (row->p.n_results > 0) {
        rf_table_cell(table, "%zu %s", row->p.n_results,
                      results_text(row->p.n_results));
    } else {
        rf_table_cell(table, row->gap == NULL ? "figures" : "-");
    }
}

/* -1: unknown. */
static double known(double ms)
{
    return ms > 0 ? ms : -1;
}

static void add_row(struct rf_table *table, const struct rf_predict_row *row,
                    bool step, json_t *notes)
{
    const struct rf_prediction *p = &row->p;
    char text[32];
    step = step && row->gap == NULL;
    rf_table_cell(table, "%s", row->scenario);
    rf_table_cell(table, "%s", row->method->name);
    rf_table_cell(table, "%s", row->strategy);
    seconds_cell(table, row->gap == NULL ? p->ms : -1, note_of(row), notes);
    basis_cell(table, row);
    seconds_cell(table, known(p->bound_ms), NULL, notes);
    seconds_cell(table, known(row->measured.ms), row->measured.why, notes);
    rf_table_cell(table, "%s", step ? rf_figure_text(p->step_s, 2, text) : "-");
    rf_table_cell(table, step ? "%.3g %%" : "-", p->share * 100);
}

static struct rf_table *create_table(void)
{
    static const char *const heads[] = {
        "scenario", "method",      "strategy", ">predicted s", "based on",
        ">bound s", ">measured s", ">step s",  ">refit share", NULL};
    static const char *const drops[] = {"refit share", "step s",  "strategy",
                                        "based on",    "bound s", NULL};
    struct rf_table *table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "refit-coord predict FILE | less -S");
    return table;
}

/* Whether the same results calibrated an earlier row. */
static bool said_before(const struct rf_predict_rows *rows, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (rows->rows[i].gap == NULL &&
            rf_predict_alike(&rows->rows[i], &rows->rows[at])) {
            return true;
        }
    }
    return false;
}

/* Whether any row calibrated by the same results is below its bound, as one of
 * the results was. */
static bool beats_bound(const struct rf_predict_rows *rows, size_t at)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *row = &rows->rows[i];
        if (row->gap == NULL && rf_predict_alike(row, &rows->rows[at]) &&
            row->p.ms < row->p.bound_ms) {
            return true;
        }
    }
    return false;
}

/* Whether a row has a result that no earlier row has. */
static bool says_first(const struct rf_predict_rows *rows, size_t at)
{
    bool seen = rows->rows[at].measured.from == NULL;
    for (size_t i = 0; i < at && !seen; i++) {
        seen = rows->rows[i].measured.from == rows->rows[at].measured.from;
    }
    return !seen;
}

/* Repeats left out for their speeds. */
static size_t count_left_out(const struct rf_predict_rows *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_measured *measured = &rows->rows[i].measured;
        n += measured->from == NULL || says_first(rows, i)
                 ? measured->n_left_out
                 : 0;
    }
    return n;
}

static void print_left_out(const struct rf_predict_rows *rows, FILE *to)
{
    const size_t n = count_left_out(rows);
    if (n > 0) {
        fprintf(to, "%zu %s left out: nodes were faster or slower than usual\n",
                n, n == 1 ? "repeat" : "repeats");
    }
    if (rows->n_unsettled > 0) {
        fprintf(to,
                "none of %zu repeats left out, but the speed of nodes varied "
                "too much: measure again on idle machines, with more repeats "
                "(--repeat)\n",
                rows->n_unsettled);
    }
}

/* A folder may hold hundreds of results; JSON has all reasons. */
#define REASONS_SHOWN 8

/* Except for those noted in the table. */
static void print_not_used(const struct rf_predict_rows *rows, FILE *to)
{
    const size_t n = json_array_size(rows->not_used);
    size_t n_reasons = 0;
    if (n > 0) {
        fprintf(to, "%zu of %zu %s used\n", rows->n_results - n,
                rows->n_results, results_text(rows->n_results));
    }
    for (size_t i = 0; i < n; i++) {
        const char *reason =
            json_string_value(json_array_get(rows->not_used, i));
        bool noted = false;
        for (size_t k = 0; k < rows->n; k++) {
            const char *why = rows->rows[k].measured.why;
            noted |= why != NULL && strcmp(why, reason) == 0;
        }
        if (!noted && ++n_reasons <= REASONS_SHOWN) {
            fputs("  ", to);
            rf_escape(to, RF_REPORT_TABLE, reason);
            fputc('\n', to);
        }
    }
    if (n_reasons > REASONS_SHOWN) {
        fprintf(to, "  (and %zu more, listed by --json)\n",
                n_reasons - REASONS_SHOWN);
    }
}

/* "host, between nodes" or "host, auto": what the same results calibrate. */
static char *calibrated_text(const struct rf_predict_row *row)
{
    return rf_xasprintf("%s, %s", row->method->name,
                        row->encoding == RF_ENCODING_DENSE
                            ? path_text(row)
                            : rf_encoding_name(row->encoding));
}

void rf_predict_warn(const struct rf_predict_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *row = &rows->rows[i];
        const double ratio = row->p.ratio;
        if (row->measured.ms > 0 && row->measured.why != NULL &&
            says_first(rows, i)) {
            rf_warn("%s", row->measured.why);
        }
        if (row->gap == NULL && row->p.n_results > 0 && !said_before(rows, i) &&
            (ratio < RF_PREDICT_RATIO_LEAST || ratio > RF_PREDICT_RATIO_MOST)) {
            char *text = calibrated_text(row);
            rf_warn("%s: results took x%.3g their simulated time: %s; measure "
                    "again on idle nodes, or correct the rates",
                    text, ratio,
                    ratio < 1 ? "rates of \"links\" or probes are too low"
                    : beats_bound(rows, i)
                        ? "others beat their bounds, so the speed of nodes "
                          "changed"
                        : "rates of \"links\" or probes are too high, nodes "
                          "were busy, or refits are too short");
            free(text);
        }
    }
}

static void print_calibrations(const struct rf_predict_rows *rows,
                               const struct rf_leave_one_out *error, FILE *to)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *row = &rows->rows[i];
        if (row->gap == NULL && row->p.n_results > 0 && !said_before(rows, i)) {
            char *text = calibrated_text(row);
            fprintf(to, "%s: calibrated by %zu %s: x%.3g", text,
                    row->p.n_results, results_text(row->p.n_results),
                    row->p.factor);
            free(text);
            if (row->p.fixed_ms > 0) {
                fprintf(to, " + %.3g ms", row->p.fixed_ms);
            }
            fputs(beats_bound(rows, i)
                      ? "; measured times are below their bounds, so these "
                        "figures are too low\n"
                      : "\n",
                  to);
        }
    }
    print_not_used(rows, to);
    print_left_out(rows, to);
    if (error->n > 0) {
        fprintf(to,
                "leave-one-out error over %zu %s: median %.1f %%, worst %.1f "
                "%% (",
                error->n, results_text(error->n), error->median * 100,
                error->worst * 100);
        rf_escape(to, RF_REPORT_TABLE, error->worst_row->scenario);
        fprintf(to, ", %s)\n", error->worst_row->method->name);
    }
}

/* A scenario's name without the density that a matrix adds to it, which a
 * crossover does not depend on. */
static char *name_without_density(const char *scenario)
{
    static const char key[] = "-update.density=";
    const char *at = strstr(scenario, key), *end;
    if (at == NULL) {
        return rf_xstrdup(scenario);
    }
    end = at + sizeof(key) - 1;
    while (*end != '\0' && !(end[0] == '-' && isalpha((unsigned char)end[1]))) {
        end++;
    }
    return rf_xasprintf("%.*s%s", (int)(at - scenario), scenario, end);
}

static void print_crossovers(const struct rf_predict_rows *rows, FILE *to)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *row = &rows->rows[i];
        const struct rf_crossover *crossing = &row->crossover;
        char *name;
        if (!crossing->wanted) {
            continue;
        }
        name = name_without_density(row->scenario);
        fputs("crossover: ", to);
        rf_escape(to, RF_REPORT_TABLE, name);
        free(name);
        fprintf(to, ", %s: %s ", row->method->name,
                rf_encoding_name(row->encoding));
        if (crossing->n_ranks == 0) {
            fputs("compares nothing here, and copies as dense does\n", to);
            continue;
        }
        fputs("is ", to);
        if (crossing->share <= 0) {
            fputs("never faster than dense", to);
        } else if (crossing->share >= 1) {
            fputs("faster than dense at any share of changes", to);
        } else {
            fprintf(to, "faster than dense below %.3g %% changed",
                    100 * crossing->share);
        }
        if (crossing->link_gbytes_per_s > 0) {
            fprintf(to, " (link %.3g Gbit/s,", 8 * crossing->link_gbytes_per_s);
        } else if (crossing->socket_gbytes_per_s > 0) {
            fprintf(to, " (sockets inside a node %.3g Gbit/s,",
                    8 * crossing->socket_gbytes_per_s);
        } else {
            fputs(" (inside a node,", to);
        }
        fprintf(to, " %u %s comparing %.3g GB/s)\n", crossing->n_ranks,
                crossing->n_ranks == 1 ? "rank" : "ranks",
                crossing->scan_gbytes_per_s);
    }
}

void rf_predict_print_table(const struct rf_predict_rows *rows,
                            const struct rf_leave_one_out *error, bool step,
                            FILE *to)
{
    struct rf_table *table = create_table();
    json_t *notes = json_array();
    for (size_t i = 0; i < rows->n; i++) {
        add_row(table, &rows->rows[i], step, notes);
    }
    rf_table_print(table, to, RF_REPORT_TABLE, 0);
    for (size_t i = 0; i < json_array_size(notes); i++) {
        fprintf(to, "[%zu] ", i + 1);
        rf_escape(to, RF_REPORT_TABLE,
                  json_string_value(json_array_get(notes, i)));
        fputc('\n', to);
    }
    print_crossovers(rows, to);
    print_calibrations(rows, error, to);
    json_decref(notes);
    rf_table_destroy(table);
}

static void add_text(json_t *to, const char *key, const char *text)
{
    if (text != NULL) {
        json_object_set_new(to, key, rf_text_json(text, strlen(text)));
    }
}

/* Fields that exist only with a prediction. */
static void add_prediction(json_t *entry, const struct rf_predict_row *row,
                           bool step)
{
    const struct rf_prediction *p = &row->p;
    json_object_set_new(entry, "simulated_ms", json_real(p->simulated_ms));
    json_object_set_new(entry, "path", json_string(path_text(row)));
    json_object_set_new(entry, "based_on",
                        json_string(p->n_results > 0 ? "results" : "figures"));
    if (p->n_results > 0) {
        json_object_set_new(entry, "calibration",
                            json_pack("{s:I, s:f, s:f}", "results",
                                      (json_int_t)p->n_results, "factor",
                                      p->factor, "fixed_ms", p->fixed_ms));
    }
    if (row->own.simulated_ms > 0) {
        json_object_set_new(entry, "measured_simulated_ms",
                            json_real(row->own.simulated_ms));
        json_object_set_new(entry, "leave_one_out_ms", json_real(p->others_ms));
    }
    if (step) {
        json_object_set_new(entry, "step_s", json_real(p->step_s));
        json_object_set_new(entry, "refit_share", json_real(p->share));
    }
}

static void add_crossover(json_t *entry, const struct rf_crossover *crossing)
{
    if (crossing->wanted) {
        json_object_set_new(
            entry, "crossover",
            json_pack("{s:f, s:f, s:f, s:f, s:I}", "share", crossing->share,
                      "link_gbytes_per_s", crossing->link_gbytes_per_s,
                      "socket_gbytes_per_s", crossing->socket_gbytes_per_s,
                      "scan_gbytes_per_s", crossing->scan_gbytes_per_s, "ranks",
                      (json_int_t)crossing->n_ranks));
    }
}

static json_t *row_json(const struct rf_predict_row *row, bool step)
{
    const struct rf_prediction *p = &row->p;
    json_t *entry = json_pack(
        "{s:s, s:s, s:s, s:o, s:o}", "scenario", row->scenario, "method",
        row->method->name, "strategy", row->strategy, "predicted_ms",
        row->gap == NULL ? json_real(p->ms) : json_null(), "bound_ms",
        p->bound_ms > 0 ? json_real(p->bound_ms) : json_null());
    if (row->gap == NULL) {
        add_prediction(entry, row, step);
    }
    add_crossover(entry, &row->crossover);
    add_text(entry, "note", note_of(row));
    add_text(entry, "measured_note", row->measured.why);
    if (row->measured.ms > 0) {
        json_object_set_new(entry, "measured_ms", json_real(row->measured.ms));
    }
    return entry;
}

void rf_predict_print_json(const struct rf_predict_rows *rows,
                           const struct rf_leave_one_out *error, bool step,
                           FILE *to)
{
    json_t *list = json_array();
    json_t *document;
    for (size_t i = 0; i < rows->n; i++) {
        json_array_append_new(list, row_json(&rows->rows[i], step));
    }
    document = json_pack(
        "{s:i, s:o, s:{s:I, s:I, s:O, s:I, s:I}}", "schema_version", 1,
        "predictions", list, "results", "given", (json_int_t)rows->n_results,
        "used", (json_int_t)(rows->n_results - json_array_size(rows->not_used)),
        "not_used", rows->not_used, "repeats_left_out",
        (json_int_t)count_left_out(rows), "repeats_unsettled",
        (json_int_t)rows->n_unsettled);
    if (error->n > 0) {
        json_object_set_new(
            document, "leave_one_out",
            json_pack("{s:I, s:f, s:f, s:s, s:s}", "results",
                      (json_int_t)error->n, "median_error", error->median,
                      "worst_error", error->worst, "worst_scenario",
                      error->worst_row->scenario, "worst_method",
                      error->worst_row->method->name));
    }
    rf_json_out(document, to);
}

void rf_predict_rows_free(struct rf_predict_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->rows[i].scenario);
        free(rows->rows[i].gap);
        free(rows->rows[i].measured.why);
    }
    free(rows->rows);
    json_decref(rows->not_used);
    *rows = (struct rf_predict_rows){.n = 0};
}

/*
 * The results of several folders as one table, in the requested form. With
 * several runs, the first column names the run. CSV has every figure, without
 * units; other forms have the columns of the table at the end of a run. HTML is
 * a separate page (report_html.h).
 */
#include "coordinator/reports/report.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/replay.h"
#include "coordinator/records/report_table.h"
#include "coordinator/reports/pool.h"
#include "coordinator/reports/report_html.h"
#include "coordinator/reports/report_json.h"
#include "coordinator/table/escape.h"

static struct rf_table *make_table(const struct rf_result_set *set,
                                   enum rf_report_form form)
{
    bool runs = rf_result_set_has_runs(set);
    struct rf_table *table = rf_report_table_create(form, runs);
    for (size_t i = 0; i < set->n; i++) {
        rf_report_table_add(table, form, runs ? set->files[i].run : NULL,
                            set->files[i].result);
    }
    rf_report_table_end(table, form);
    return table;
}

/* ", model X", ", several models", or nothing if unknown. */
static void print_model(const json_t *run, FILE *to)
{
    const char *model = json_string_value(json_object_get(run, "model"));
    if (model != NULL) {
        fputs(", model ", to);
        rf_escape_remark(to, model);
    } else if (json_integer_value(json_object_get(run, "models")) > 1) {
        fputs(", several models", to);
    }
}

/* One comment per run, in the form's comment marks. */
static void print_remarks(const struct rf_result_set *set, const char *before,
                          const char *behind, FILE *to)
{
    for (size_t i = 0; i < set->n; i++) {
        if (rf_report_begins_run(set, i)) {
            json_t *run = rf_report_run_json(set, i);
            fprintf(to, "%srun ", before);
            rf_escape_remark(to, set->files[i].run);
            print_model(run, to);
            fputs(behind, to);
            json_decref(run);
        }
    }
}

/* A line below the table. */
static void print_line(const char *text, enum rf_report_form form, FILE *to)
{
    if (form == RF_REPORT_TABLE) {
        fprintf(to, "%s\n", text);
    } else if (form != RF_REPORT_CSV) {
        fputs(form == RF_REPORT_LATEX ? "% " : "<!-- ", to);
        rf_escape_remark(to, text);
        fputs(form == RF_REPORT_LATEX ? "\n" : " -->\n", to);
    }
}

/* Names the removed constant columns, once: below the table, or for CSV, which
 * has only rows, in the log. */
static void print_constant(const char *constant, enum rf_report_form form,
                           FILE *to)
{
    char *text = rf_xasprintf("the same in all rows: %s", constant);
    if (form == RF_REPORT_CSV) {
        rf_info("%s", text);
    } else {
        print_line(text, form, to);
    }
    free(text);
}

/* Notes below the table, one per line. */
static void print_sentences(const struct rf_result_set *set,
                            enum rf_report_form form, FILE *to)
{
    const bool runs = rf_result_set_has_runs(set);
    struct rf_remarks remarks = {.n_records = 0};
    for (size_t i = 0; i < set->n && form != RF_REPORT_CSV; i++) {
        rf_remarks_add(&remarks, runs ? set->files[i].run : NULL,
                       set->files[i].result);
    }
    for (int i = 0; i < RF_REMARKS; i++) {
        char *line = rf_remarks_line(&remarks, (enum rf_remark)i);
        if (line != NULL) {
            print_line(line, form, to);
        }
        free(line);
    }
    rf_remarks_free(&remarks);
}

static void print_pooled(const struct rf_result_set *set,
                         enum rf_report_form form, FILE *to)
{
    for (size_t i = 0; i < set->n; i++) {
        char *text = rf_pool_text(&set->files[i]);
        if (text != NULL) {
            print_line(text, form, to);
        }
        free(text);
    }
}

/* The command to run each scenario again, from its file's current path. */
static void print_replays(const struct rf_result_set *set, const char *program,
                          FILE *to)
{
    fputs("to run a scenario again:\n", to);
    for (size_t i = 0; i < set->n; i++) {
        char *command = rf_replay_of_record(program, set->files[i].path,
                                            set->files[i].result);
        if (command != NULL) {
            rf_text_clean_line(command, strlen(command));
            fprintf(to, "  %s\n", command);
        }
        free(command);
    }
}

void rf_report_print(const struct rf_result_set *set,
                     const struct rf_report_options *options, FILE *to)
{
    const enum rf_report_form form = options->form;
    struct rf_table *table;
    char *constant = NULL;
    if (form == RF_REPORT_HTML) {
        rf_report_html_print(set, NULL, to);
        return;
    }
    if (form == RF_REPORT_LATEX) {
        print_remarks(set, "% ", "\n", to);
    } else if (form == RF_REPORT_MARKDOWN) {
        print_remarks(set, "<!-- ", " -->\n", to);
    }
    table = make_table(set, form);
    if (options->drop_constant) { /* except the names of rows */
        constant =
            rf_table_drop_constant(table, rf_result_set_has_runs(set) ? 2 : 1);
    }
    rf_table_print(table, to, form, 0);
    print_pooled(set, form, to);
    if (constant != NULL) {
        print_constant(constant, form, to);
    }
    print_sentences(set, form, to);
    if (form == RF_REPORT_TABLE && options->program != NULL) {
        print_replays(set, options->program, to);
    }
    free(constant);
    rf_table_destroy(table);
}

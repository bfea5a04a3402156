/*
 * `refit-coord report`: the results of several folders as one table, in the
 * form that is asked for; where they are of several runs the first column says
 * of which. CSV has every figure without units; the other forms
 * have the columns of the table at the end of a run. The HTML page is one file
 * without scripts or links, with a bar for each scenario.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/store.h"
#include "coordinator/commands.h"
#include "coordinator/report_table.h"
#include "coordinator/result_files.h"

#define LABEL_BYTES 48

static struct rf_table *make_table(const struct rf_result_set *set, bool full)
{
    bool runs = rf_result_set_has_runs(set);
    struct rf_table *table =
        full ? rf_summary_table_create(runs) : rf_report_table_create(runs);
    for (size_t i = 0; i < set->n; i++) {
        if (runs) {
            rf_table_cell(table, "%s", set->files[i].run);
        }
        if (full) {
            rf_summary_table_add(table, set->files[i].result);
        } else {
            rf_report_table_add(table, set->files[i].result);
        }
    }
    return table;
}

static const char html_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<title>refit results</title>\n<style>\n"
    "body{font:14px/1.5 sans-serif;margin:2em auto;max-width:70em;"
    "padding:0 1em}\n"
    "table{border-collapse:collapse}\n"
    "th,td{padding:.2em .8em;text-align:left;border-bottom:1px solid #ccc}\n"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "</style>\n</head>\n<body>\n<h1>Refit results</h1>\n";

/* What fits beside a bar: the end of the run and the scenario. */
static void print_label(const struct rf_result_file *file, bool run, FILE *to)
{
    char *whole = run ? rf_xasprintf("%s: %s", file->run, file->name)
                      : rf_xstrdup(file->name);
    size_t size = strlen(whole);
    const char *from = size > LABEL_BYTES ? whole + size - LABEL_BYTES : whole;
    while (((unsigned char)*from & 0xC0) == 0x80) {
        from++; /* not in the middle of a character */
    }
    rf_table_print_html_text(to, from);
    free(whole);
}

/* One bar a scenario: the median in full length, the bound inside it. */
static void print_bars(const struct rf_result_set *set, FILE *to)
{
    double longest = 0, median, bound;
    bool runs = rf_result_set_has_runs(set);
    for (size_t i = 0; i < set->n; i++) {
        if (rf_result_number(set->files[i].result, "summary", "median_ms",
                             &median)) {
            longest = RF_MAX(longest, median);
        }
    }
    if (longest <= 0) {
        return;
    }
    fprintf(to,
            "<h2>Median time (light) and the bound of the links (dark)</h2>\n"
            "<svg role=\"img\" width=\"100%%\" viewBox=\"0 0 900 %zu\" "
            "xmlns=\"http://www.w3.org/2000/svg\">\n",
            set->n * 24 + 8);
    for (size_t i = 0; i < set->n; i++) {
        const json_t *result = set->files[i].result;
        size_t y = i * 24 + 4;
        if (!rf_result_number(result, "summary", "median_ms", &median)) {
            continue;
        }
        if (!rf_result_number(result, "bound", "ms", &bound)) {
            bound = 0;
        }
        fprintf(to,
                "<rect x=\"320\" y=\"%zu\" width=\"%.1f\" height=\"16\" "
                "fill=\"#9bc\"/><rect x=\"320\" y=\"%zu\" width=\"%.1f\" "
                "height=\"16\" fill=\"#246\"/>"
                "<text x=\"%.1f\" y=\"%zu\" font-size=\"12\">%.2f ms</text>\n"
                "<text x=\"312\" y=\"%zu\" text-anchor=\"end\" "
                "font-size=\"12\">",
                y, median / longest * 480, y,
                RF_MIN(bound / longest * 480, 480),
                326 + median / longest * 480, y + 12, median, y + 12);
        print_label(&set->files[i], runs, to);
        fputs("</text>\n", to);
    }
    fputs("</svg>\n", to);
}

static enum rf_status write_html(const char *path,
                                 const struct rf_result_set *set,
                                 const struct rf_table *table,
                                 struct rf_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    enum rf_status status;
    if (file == NULL) {
        return rf_err_errno(err, RF_ERR_NOMEM, errno, "%s", path);
    }
    fputs(html_head, file);
    rf_table_print(table, file, RF_REPORT_HTML, 0);
    print_bars(set, file);
    fputs("</body>\n</html>\n", file);
    fclose(file);
    status = rf_store(path, text, size, err);
    free(text);
    return status;
}

int rf_report_command(const struct rf_cli *cli)
{
    struct rf_result_set set = {0};
    struct rf_table *table = NULL;
    struct rf_err err = {0};
    int code = RF_EXIT_USAGE;
    for (size_t i = 0; i < cli->n_operands; i++) {
        if (rf_result_set_add(&set, cli->operands[i], &err) != RF_OK) {
            goto out;
        }
    }
    table = make_table(&set, cli->form == RF_REPORT_CSV);
    code = RF_EXIT_OK;
    if (cli->form != RF_REPORT_HTML) {
        rf_table_print(table, stdout, cli->form, 0);
    } else if (write_html(cli->html, &set, table, &err) != RF_OK) {
        code = RF_EXIT_FAILED;
    }
out:
    if (code != RF_EXIT_OK) {
        rf_error("%s", err.text);
    }
    rf_table_destroy(table);
    rf_result_set_free(&set);
    return code;
}

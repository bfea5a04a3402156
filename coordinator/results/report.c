/*
 * The results of several folders as one table, in the
 * form that is asked for; where they are of several runs the first column says
 * of which. CSV has every figure without units; the other forms
 * have the columns of the table at the end of a run. The HTML page is one file
 * without scripts or links, with a bar for each scenario.
 */
#include "coordinator/results/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/results/escape.h"
#include "coordinator/results/fields.h"
#include "coordinator/results/flags.h"
#include "coordinator/results/report_json.h"
#include "coordinator/results/report_table.h"

#define LABEL_BYTES 48 /* of one line */
#define LINE_HEIGHT 16
#define BAR_WIDTH 480.0

static struct rf_table *make_table(const struct rf_result_set *set,
                                   enum rf_report_form form)
{
    bool runs = rf_result_set_has_runs(set);
    struct rf_table *table = rf_report_table_create(form, runs);
    for (size_t i = 0; i < set->n; i++) {
        rf_report_table_add(table, form, runs ? set->files[i].run : NULL,
                            set->files[i].result);
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

/* The text next to a bar: the scenario, with `run` also its run. */
static char *label_of(const struct rf_result_file *file, bool run)
{
    char *label = run ? rf_xasprintf("%s: %s", file->run, file->name)
                      : rf_xstrdup(file->name);
    rf_text_clean_line(label, strlen(label));
    return label;
}

/* Bytes of a label's first line. Names may differ anywhere, so they are broken,
 * never cut; a line ends after a dash or blank in its second half, if any. */
static size_t line_bytes(const char *text)
{
    size_t n = strlen(text), end = LABEL_BYTES;
    if (n <= LABEL_BYTES) {
        return n;
    }
    while (end > LABEL_BYTES - 4 && ((unsigned char)text[end] & 0xC0) == 0x80) {
        end--; /* not in the middle of a character */
    }
    for (n = end; n > LABEL_BYTES / 2; n--) {
        if (text[n - 1] == '-' || text[n - 1] == ' ') {
            return n;
        }
    }
    return end;
}

static size_t label_lines(const struct rf_result_file *file, bool run)
{
    char *label = label_of(file, run);
    size_t lines = 0;
    for (const char *at = label; *at != '\0'; at += line_bytes(at)) {
        lines++;
    }
    free(label);
    return RF_MAX(lines, (size_t)1);
}

/* Right-aligned in front of the bar at `y`. */
static void print_label(const struct rf_result_file *file, bool run, size_t y,
                        FILE *to)
{
    char *label = label_of(file, run);
    fputs("<text text-anchor=\"end\" font-size=\"12\">", to);
    for (const char *at = label; *at != '\0'; at += line_bytes(at)) {
        char *line = rf_xasprintf("%.*s", (int)line_bytes(at), at);
        fprintf(to, "<tspan x=\"312\" y=\"%zu\">", y + 12);
        rf_escape(to, RF_REPORT_HTML, line);
        fputs("</tspan>", to);
        free(line);
        y += LINE_HEIGHT;
    }
    fputs("</text>\n", to);
    free(label);
}

static double longest_median(const struct rf_result_set *set)
{
    double longest = 0, median;
    for (size_t i = 0; i < set->n; i++) {
        if (rf_result_number(set->files[i].result, "summary", "median_ms",
                             &median)) {
            longest = RF_MAX(longest, median);
        }
    }
    return longest;
}

/* The median, with the bound inside if the two can be compared. The figure
 * follows the longer one. */
static void print_bar(const json_t *result, size_t y, double scale, FILE *to)
{
    double median = 0, bound = 0, efficiency;
    char figure[32];
    if (!rf_result_number(result, "summary", "median_ms", &median)) {
        fprintf(to, "<text x=\"326\" y=\"%zu\" font-size=\"12\">", y + 12);
        rf_escape(to, RF_REPORT_HTML, rf_result_text(result, NULL, "status"));
        fputs("</text>\n", to);
        return;
    }
    fprintf(to,
            "<rect x=\"320\" y=\"%zu\" width=\"%.1f\" height=\"16\" "
            "fill=\"#9bc\"/>",
            y, median * scale);
    if (!json_is_false(rf_result_value(result, "bound", "valid")) &&
        rf_result_number(result, "bound", "efficiency", &efficiency) &&
        rf_result_number(result, "bound", "ms", &bound)) {
        fprintf(to,
                "<rect x=\"320\" y=\"%zu\" width=\"%.1f\" height=\"16\" "
                "fill=\"#246\"/>",
                y, RF_MIN(bound * scale, BAR_WIDTH));
    }
    fprintf(to, "<text x=\"%.1f\" y=\"%zu\" font-size=\"12\">%s ms</text>\n",
            326 + RF_MIN(RF_MAX(median, bound) * scale, BAR_WIDTH), y + 12,
            rf_figure_text(median, 2, figure));
}

/* A line for each scenario, if any has a median. */
static void print_bars(const struct rf_result_set *set, FILE *to)
{
    double longest = longest_median(set);
    bool runs = rf_result_set_has_runs(set);
    size_t height = 8, y = 4;
    if (longest <= 0) {
        return;
    }
    for (size_t i = 0; i < set->n; i++) {
        height += label_lines(&set->files[i], runs) * LINE_HEIGHT + 8;
    }
    fprintf(to,
            "<h2>Median time (light) and lower bound (dark)</h2>\n"
            "<p>The bound is the least time that the memory and the links, as "
            "measured, allow; results without an efficiency have none, nor "
            "have those whose bound is not valid.</p>\n"
            "<svg role=\"img\" width=\"100%%\" viewBox=\"0 0 900 %zu\" "
            "xmlns=\"http://www.w3.org/2000/svg\">\n",
            height);
    for (size_t i = 0; i < set->n; i++) {
        print_bar(set->files[i].result, y, BAR_WIDTH / longest, to);
        print_label(&set->files[i], runs, y, to);
        y += label_lines(&set->files[i], runs) * LINE_HEIGHT + 8;
    }
    fputs("</svg>\n", to);
}

static void print_html_cell(FILE *to, const char *text)
{
    fputs("<td>", to);
    rf_escape(to, RF_REPORT_HTML, text);
    fputs("</td>", to);
}

static long long count_of(const json_t *run, const char *key)
{
    return (long long)json_integer_value(json_object_get(run, key));
}

static void print_html_run(const struct rf_result_set *set, size_t first,
                           FILE *to)
{
    const json_t *result = set->files[first].result;
    const json_t *nodes = json_object_get(result, "environment");
    json_t *run = rf_report_run_json(set, first);
    fputs("<tr>", to);
    print_html_cell(to, set->files[first].run);
    print_html_cell(to, rf_result_text(result, NULL, "run_id"));
    print_html_cell(to, rf_result_text(result, NULL, "started_at"));
    print_html_cell(to, rf_result_text(result, "model", "name"));
    fputs("<td>", to);
    for (size_t n = 0; n < json_array_size(nodes); n++) {
        fputs(n > 0 ? ", " : "", to);
        rf_escape(to, RF_REPORT_HTML,
                  rf_result_text(json_array_get(nodes, n), NULL, "host"));
    }
    fputs("</td>", to);
    print_html_cell(to, rf_result_text(result, "tool", "version"));
    print_html_cell(to, rf_result_text(result, "tool", "build"));
    fprintf(to, "<td class=\"n\">%lld</td><td class=\"n\">%lld</td></tr>\n",
            count_of(run, "ok"), count_of(run, "not_ok"));
    json_decref(run);
}

/* One comment per run, in the form's own marks. */
static void print_remarks(const struct rf_result_set *set, const char *before,
                          const char *behind, FILE *to)
{
    for (size_t i = 0; i < set->n; i++) {
        if (rf_report_begins_run(set, i)) {
            fprintf(to, "%srun ", before);
            rf_escape_remark(to, set->files[i].run);
            fputs(", model ", to);
            rf_escape_remark(
                to, rf_result_text(set->files[i].result, "model", "name"));
            fputs(behind, to);
        }
    }
}

/* Under the table, one sentence. */
static void print_unstable(const struct rf_result_set *set,
                           enum rf_report_form form, FILE *to)
{
    char *unstable = NULL;
    for (size_t i = 0; i < set->n; i++) {
        rf_flags_collect(&unstable, set->files[i].result);
    }
    if (unstable == NULL || form == RF_REPORT_CSV) {
        free(unstable);
        return;
    }
    if (form == RF_REPORT_HTML) {
        fputs("<table><tr>", to);
        print_html_cell(to, unstable);
        fputs("</tr></table>\n", to);
    } else if (form == RF_REPORT_TABLE) {
        fprintf(to, "%s\n", unstable);
    } else {
        fputs(form == RF_REPORT_LATEX ? "% " : "<!-- ", to);
        rf_escape_remark(to, unstable);
        fputs(form == RF_REPORT_LATEX ? "\n" : " -->\n", to);
    }
    free(unstable);
}

static void print_html(const struct rf_result_set *set,
                       const struct rf_table *table, FILE *to)
{
    fputs(html_head, to);
    fputs("<table>\n<thead>\n<tr><th>run</th><th>id</th><th>started</th>"
          "<th>model</th><th>nodes</th><th>version</th><th>build</th>"
          "<th>ok</th><th>not ok</th></tr>\n</thead>\n<tbody>\n",
          to);
    for (size_t i = 0; i < set->n; i++) {
        if (rf_report_begins_run(set, i)) {
            print_html_run(set, i, to);
        }
    }
    fputs("</tbody>\n</table>\n<h2>Scenarios</h2>\n", to);
    rf_table_print(table, to, RF_REPORT_HTML, 0);
    print_unstable(set, RF_REPORT_HTML, to);
    print_bars(set, to);
    fputs("</body>\n</html>\n", to);
}

void rf_report_print(const struct rf_result_set *set, enum rf_report_form form,
                     FILE *to)
{
    struct rf_table *table = make_table(set, form);
    if (form == RF_REPORT_HTML) {
        print_html(set, table, to);
    } else {
        if (form == RF_REPORT_LATEX) {
            print_remarks(set, "% ", "\n", to);
        } else if (form == RF_REPORT_MARKDOWN) {
            print_remarks(set, "<!-- ", " -->\n", to);
        }
        rf_table_print(table, to, form, 0);
        print_unstable(set, form, to);
    }
    rf_table_destroy(table);
}

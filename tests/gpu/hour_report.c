/* What first-hour leaves: one file for programs, one to be read. See hour.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "common/store.h"
#include "tests/gpu/hour.h"

#define TAIL_LINES 25
#define LINE_CHARS 400

const char *const rf_hour_verdicts[RF_HOUR_VERDICTS] = {
    "ok",
    "failed",
    "skipped",
    "timed out",
};

/* Output of programs may be anything: JSON takes printable ASCII of it. */
static void add_line(json_t *tail, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (strlen(line) > LINE_CHARS) {
        line[LINE_CHARS] = '\0';
    }
    for (char *c = line; *c != '\0'; c++) {
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    }
    if (json_array_size(tail) == TAIL_LINES) {
        json_array_remove(tail, 0);
    }
    json_array_append_new(tail, json_string(line));
}

static void read_log(const char *log, json_t *tail, json_t *figures)
{
    FILE *file = fopen(log, "r");
    char *line = NULL;
    size_t room = 0;
    while (file != NULL && getline(&line, &room, file) >= 0) {
        json_t *figure = strncmp(line, "{\"figure\"", 9) == 0
                             ? json_loads(line, 0, NULL)
                             : NULL;
        if (figure != NULL) {
            json_array_append_new(figures, figure);
        } else {
            add_line(tail, line);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

json_t *rf_hour_part_json(const struct rf_hour_part *part, const char *log,
                          const struct rf_hour_result *result)
{
    json_t *tail = json_array(), *figures = json_array();
    if (result->ran) {
        read_log(log, tail, figures);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:i, s:o, s:o}", "group",
                     part->group, "name", part->name, "teaches", part->teaches,
                     "verdict", rf_hour_verdicts[result->verdict], "reason",
                     result->reason, "seconds", result->seconds, "limit_s",
                     part->limit_s, "figures", figures, "tail", tail);
}

/* --- Markdown --- */

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

static void write_machine(FILE *out, const json_t *report)
{
    const json_t *machine = json_object_get(report, "machine");
    const char *key;
    json_t *value;
    fputs("| | |\n|---|---|\n", out);
    json_object_foreach ((json_t *)machine, key, value) {
        fprintf(out, "| %s | %s |\n", key, json_string_value(value));
    }
}

static void write_verdicts(FILE *out, const json_t *parts)
{
    size_t i;
    json_t *part;
    fputs("\n## Verdicts\n\n| part | verdict | s | what it teaches |\n"
          "|---|---|---:|---|\n",
          out);
    json_array_foreach (parts, i, part) {
        const char *reason = text(part, "reason");
        const bool ok = strcmp(text(part, "verdict"), "ok") == 0;
        fprintf(out, "| %s %s | %s%s%s%s%s | %.1f | %s |\n",
                text(part, "group"), text(part, "name"), ok ? "" : "**",
                text(part, "verdict"), ok ? "" : "**",
                reason[0] != '\0' ? ": " : "", reason,
                json_number_value(json_object_get(part, "seconds")),
                text(part, "teaches"));
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return RF_COMPARE(x, y);
}

static double median(const json_t *samples)
{
    const size_t n = json_array_size(samples);
    double *values = rf_xcalloc(n + 1, sizeof(*values));
    double middle;
    for (size_t i = 0; i < n; i++) {
        values[i] = json_number_value(json_array_get(samples, i));
    }
    qsort(values, n, sizeof(*values), by_value);
    middle = n == 0       ? 0
             : n % 2 != 0 ? values[n / 2]
                          : (values[n / 2 - 1] + values[n / 2]) / 2;
    free(values);
    return middle;
}

static void write_figures(FILE *out, const json_t *figures)
{
    size_t i;
    json_t *figure;
    fputs("\n| figure | median | unit | samples | GB/s | of cudaMemcpy |\n"
          "|---|---:|---|---:|---:|---:|\n",
          out);
    json_array_foreach (figures, i, figure) {
        const json_t *samples = json_object_get(figure, "samples");
        const json_t *bytes = json_object_get(figure, "bytes");
        const json_t *ratio = json_object_get(figure, "of_memcpy");
        const double middle = median(samples);
        fprintf(out, "| %s | %.4g | %s | %zu |", text(figure, "figure"), middle,
                text(figure, "unit"), json_array_size(samples));
        if (bytes != NULL && middle > 0) {
            fprintf(out, " %.1f |", json_number_value(bytes) / middle / 1e6);
        } else {
            fputs(" |", out);
        }
        if (ratio != NULL) {
            fprintf(out, " %.3f |\n", json_number_value(ratio));
        } else {
            fputs(" |\n", out);
        }
    }
}

/* The end of its output, for whoever looks for the reason. */
static void write_tail(FILE *out, const json_t *tail)
{
    size_t i;
    json_t *line;
    fputs("\n```\n", out);
    json_array_foreach (tail, i, line) {
        fprintf(out, "%s\n", json_string_value(line));
    }
    fputs("```\n", out);
}

static void write_parts(FILE *out, const json_t *parts)
{
    const char *group = "";
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part) {
        const json_t *tail = json_object_get(part, "tail");
        const json_t *figures = json_object_get(part, "figures");
        if (strcmp(group, text(part, "group")) != 0) {
            group = text(part, "group");
            fprintf(out, "\n## %s. %s\n", group, rf_hour_group(group));
        }
        fprintf(
            out, "\n### %s: %s\n\nIt teaches %s.%s%s%s\n", text(part, "name"),
            text(part, "verdict"), text(part, "teaches"),
            text(part, "reason")[0] != '\0' ? " Here: " : "",
            text(part, "reason"), text(part, "reason")[0] != '\0' ? "." : "");
        if (json_array_size(figures) > 0) {
            write_figures(out, figures);
        }
        if (json_array_size(tail) > 0) {
            write_tail(out, tail);
        }
    }
}

static enum rf_status write_markdown(const json_t *report, const char *dir,
                                     struct rf_err *err)
{
    const json_t *parts = json_object_get(report, "parts");
    char path[PATH_MAX];
    char *made = NULL;
    size_t size = 0;
    enum rf_status status;
    FILE *out = open_memstream(&made, &size);
    if (out == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no memory for the report");
    }
    fprintf(out, "# First hour on %s, %s\n\n%s\n\n",
            text(json_object_get(report, "machine"), "host"),
            text(report, "date"), text(report, "summary"));
    write_machine(out, report);
    write_verdicts(out, parts);
    write_parts(out, parts);
    fclose(out);
    snprintf(path, sizeof(path), "%s/first-hour.md", dir);
    status = rf_store(path, made, size, err);
    free(made);
    return status;
}

enum rf_status rf_hour_write(const json_t *report, const char *dir,
                             struct rf_err *err)
{
    char path[PATH_MAX];
    enum rf_status status;
    snprintf(path, sizeof(path), "%s/first-hour.json", dir);
    status = rf_json_store(report, path, err);
    return status == RF_OK ? write_markdown(report, dir, err) : status;
}

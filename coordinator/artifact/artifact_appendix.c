/*
 * appendix.tex of an artifact: the sections of the template for artifact
 * evaluations (ctuning.org/ae), filled in from the results. What they do not
 * know, such as the place of publication, are macros that the paper may define
 * before it includes the file.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/artifact/artifact_run.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/report_table.h"
#include "coordinator/reports/report_json.h"
#include "coordinator/table/escape.h"

static void put(FILE *to, const char *text)
{
    rf_escape(to, RF_REPORT_LATEX, text);
}

/* A name or a command, which may be broken after marks; "--" stays two
 * dashes. */
static void put_code(FILE *to, const char *text)
{
    char *line = rf_xstrdup(text);
    rf_text_clean_line(line, strlen(line));
    fputs("\\texttt{", to);
    for (const char *c = line; *c != '\0'; c++) {
        const char one[] = {*c, '\0'};
        if ((unsigned char)*c >= 0x80) {
            fputc(*c, to); /* a part of a character */
        } else {
            put(to, one);
        }
        if (strchr("-/=_.,:+", *c) != NULL) {
            fputs("\\allowbreak{}", to);
        }
    }
    fputc('}', to);
    free(line);
}

static void put_list(FILE *to, const json_t *list, const char *none)
{
    const json_t *one;
    size_t i;
    json_array_foreach (list, i, one) {
        fputs(i > 0 ? "; " : "", to);
        put(to, json_string_value(one));
    }
    fputs(json_array_size(list) == 0 ? none : "", to);
}

/* --- Facts of all runs, each once ----------------------------------------- */

struct facts {
    json_t *models, *machines, *software, *data;
    size_t scenarios, verified; /* of own runs */
    size_t imported;
};

/* A text of a record or a node, unless it is absent. */
static void note_text(json_t *list, const char *before, const json_t *object,
                      const char *part, const char *key)
{
    const json_t *value = rf_result_value(object, part, key);
    if (json_is_string(value)) {
        char *text = rf_xasprintf("%s%s", before, json_string_value(value));
        rf_artifact_note(list, text);
        free(text);
    }
}

static void note_software(struct facts *out, const json_t *record)
{
    const json_t *nodes = json_object_get(record, "environment"), *node, *value;
    json_t *head = json_object_get(record, "head");
    const char *key;
    size_t i;
    note_text(out->software, "refit-coord, build ", record, "tool", "build");
    json_object_foreach (head, key, value) {
        if (strcmp(key, "hostname") != 0 && strcmp(key, "kernel") != 0) {
            char *before = rf_xasprintf("%s ", key);
            note_text(out->software, before, head, NULL, key);
            free(before);
        }
    }
    json_array_foreach (nodes, i, node) {
        note_text(out->software, "", node, NULL, "kernel");
        if (json_array_size(json_object_get(node, "gpus")) > 0) {
            note_text(out->software, "NVIDIA driver ", node, "cuda",
                      "driver_version");
            note_text(out->software, "NCCL ", node, "nccl", "version");
        }
    }
}

static struct facts collect(const struct rf_artifact *artifact)
{
    struct facts out = {.models = json_array(),
                        .machines = json_array(),
                        .software = json_array(),
                        .data = json_array()};
    for (size_t i = 0; i < artifact->n; i++) {
        const struct rf_artifact_run *run = &artifact->runs[i];
        const json_t *nodes = json_object_get(run->facts, "nodes"), *path;
        size_t k;
        if (run->imported) {
            out.imported += run->n;
            continue;
        }
        out.scenarios += run->n;
        for (k = 0; k < json_array_size(nodes); k++) {
            char *text = rf_report_machine_text(nodes, k);
            rf_artifact_note(out.machines, text);
            free(text);
        }
        for (k = 0; k < run->n; k++) {
            const json_t *record = run->files[k].result;
            note_text(out.models, "", record, "model", "name");
            note_software(&out, record);
            out.verified += rf_artifact_is_verified(record);
        }
        json_array_foreach (run->data, k, path) {
            rf_artifact_note(out.data, json_string_value(path));
        }
    }
    return out;
}

static void free_facts(struct facts *facts)
{
    json_decref(facts->models);
    json_decref(facts->machines);
    json_decref(facts->software);
    json_decref(facts->data);
}

/* --- Sections ------------------------------------------------------------- */

static void print_abstract(const struct facts *facts, FILE *to)
{
    fprintf(to,
            "\\subsection{Abstract}\n"
            "The artifact has the measurements of %zu refits (weights moved "
            "from the mesh of ranks that trains a model to the mesh that "
            "serves it), %zu of which succeeded with every destination byte "
            "verified, and the cluster files to measure them again with "
            "refit-coord.",
            facts->scenarios, facts->verified);
    if (facts->imported > 0) {
        fprintf(to,
                " Beside them are times of %zu refits that others measured, "
                "without cluster files.",
                facts->imported);
    }
    fputs("\n\n", to);
}

static void begin_item(FILE *to, const char *name)
{
    fprintf(to, "\\item \\textbf{%s:} ", name);
}

static void print_checklist(const struct rf_artifact *artifact,
                            const struct facts *facts, FILE *to)
{
    char bytes[32], time[32];
    rf_format_bytes(artifact->bytes, bytes, sizeof(bytes));
    rf_artifact_time_text(artifact, time);
    fputs("\\subsection{Artifact check-list (meta-information)}\n"
          "\\begin{itemize}\n",
          to);
    begin_item(to, "Program");
    fputs("refit-coord\n", to);
    begin_item(to, "Compilation");
    fputs("GNU make and a C17 compiler\n", to);
    begin_item(to, "Model");
    put_list(to, facts->models, "none");
    fputc('\n', to);
    begin_item(to, "Data set");
    fputs(json_array_size(facts->data) == 0 ? "none; a formula makes weights\n"
                                            : "see ``Data sets''\n",
          to);
    begin_item(to, "Run-time environment");
    fputs("Linux; see ``Software dependencies''\n", to);
    begin_item(to, "Hardware");
    put_list(to, facts->machines, "unknown");
    fputc('\n', to);
    begin_item(to, "Metrics");
    fputs("median refit time; its ratio to the same traffic in contiguous "
          "blocks (\\emph{vs contiguous}); peak memory\n",
          to);
    begin_item(to, "Output");
    fputs("result files in JSON, a table, figures\n", to);
    begin_item(to, "Experiments");
    fprintf(to, "%zu scenarios in %zu run%s\n",
            facts->scenarios + facts->imported, artifact->n,
            artifact->n == 1 ? "" : "s");
    begin_item(to, "How much disk space required (approximately)?");
    fprintf(to, "%s, and as much for new results\n", bytes);
    begin_item(to, "How much time is needed to prepare workflow "
                   "(approximately)?");
    fputs("minutes, to build the program\n", to);
    begin_item(to, "How much time is needed to complete experiments "
                   "(approximately)?");
    fprintf(to, "%s\n", time);
    begin_item(to, "Publicly available?");
    fputs("\\refitArtifactAddress\n", to);
    begin_item(to, "Code licenses (if publicly available)?");
    fputs("Apache-2.0 (refit-coord)\n", to);
    begin_item(to, "Data licenses (if publicly available)?");
    fputs("\\refitArtifactLicense\n", to);
    begin_item(to, "Workflow automation framework used?");
    fputs("refit-coord and a POSIX shell\n", to);
    begin_item(to, "Archived (provide DOI)?");
    fputs("\\refitArtifactDoi\n\\end{itemize}\n\n", to);
}

static void print_description(const struct facts *facts, FILE *to)
{
    fputs("\\subsection{Description}\n"
          "\\subsubsection{How to access}\n\\refitArtifactAddress\n\n"
          "\\subsubsection{Hardware dependencies}\nMeasured "
          "on ",
          to);
    put_list(to, facts->machines, "unknown machines");
    fputs(". A rerun needs as many nodes with as many slots.\n\n"
          "\\subsubsection{Software dependencies}\n",
          to);
    put_list(to, facts->software, "unknown");
    fputs(". Figures need Python 3 with matplotlib. "
          "\\texttt{environment.json} has the versions on each "
          "node.\n\n"
          "\\subsubsection{Data sets}\n",
          to);
    if (json_array_size(facts->data) == 0) {
        fputs("None: a formula makes the content of the weights.", to);
    } else {
        fputs("Paths that the cluster files name, not part of the "
              "artifact: ",
              to);
        put_list(to, facts->data, "");
        fputc('.', to);
    }
    fputs("\n\n\\subsubsection{Models}\n", to);
    put_list(to, facts->models, "None");
    fputs(". The cluster files describe them in full.\n\n", to);
}

static void print_workflow(const struct rf_artifact *artifact, FILE *to)
{
    fputs("\\subsection{Installation}\n"
          "Build refit-coord of the build above (\\texttt{make}) and put "
          "\\texttt{refit-coord} and \\texttt{refit-worker} in the "
          "\\texttt{PATH}.\n\n"
          "\\subsection{Experiment workflow}\n"
          "\\texttt{README.md} has all commands in order: check the files "
          "(\\texttt{SHA256SUMS}), try one scenario, run everything again, "
          "compare, draw tables and figures. The runs are\n"
          "\\begin{itemize}\n",
          to);
    for (size_t i = 0; i < artifact->n; i++) {
        char *command = artifact->runs[i].cluster != NULL
                            ? rf_artifact_run_command(&artifact->runs[i], "")
                            : NULL;
        fputs("\\item ", to);
        put_code(to, command != NULL ? command : artifact->runs[i].name);
        fputs(command != NULL ? "\n" : " (nothing to run again)\n", to);
        free(command);
    }
    fputs("\\end{itemize}\n\n", to);
}

/* "1.01 [0.99, 1.03]", or the median alone. */
static void put_median(FILE *to, const struct rf_median_interval *median,
                       const char *unit,
                       const char *(*text)(double value, char out[32]))
{
    char a[32], b[32];
    fprintf(to, "%s%s", text(median->median, a), unit);
    if (median->has_interval) {
        fprintf(to, " [%s, %s]", text(median->low, a), text(median->high, b));
    }
}

static const char *ratio_text(double value, char out[32])
{
    return rf_figure_text(value, 2, out);
}

/* "; vs contiguous 1.01 [0.99, 1.03], reruns 0.98 to 1.04". Only ratios of
 * reruns are known: times vary more from start to start. */
static void put_ratio(FILE *to, const struct rf_median_interval *ratio)
{
    char a[32], b[32];
    fputs("; vs contiguous ", to);
    put_median(to, ratio, "", ratio_text);
    if (ratio->has_interval) {
        fprintf(to, ", reruns %s to %s", ratio_text(ratio->rerun_low, a),
                ratio_text(ratio->rerun_high, b));
    }
}

static void print_expected(FILE *to, const struct rf_result_file *file)
{
    const json_t *record = file->result;
    const json_t *flags = json_object_get(record, "flags");
    const struct rf_median_interval ms = rf_median_interval_of_time(record);
    const struct rf_median_interval ratio = rf_median_interval_of(
        record, "summary.yardstick_ratio", "median", "yardstick_ratio");
    fputs("\\item ", to);
    put_code(to, file->name);
    fputs(": ", to);
    if (!rf_result_is_ok(record) || ms.median <= 0) {
        put(to, rf_result_text(record, NULL, "status"));
        fputs(", no time\n", to);
        return;
    }
    put_median(to, &ms, "~ms", rf_amount_text);
    if (ratio.median > 0) {
        put_ratio(to, &ratio);
    }
    if (json_array_size(flags) > 0) {
        fputs(" (flags: ", to);
        put_list(to, flags, "");
        fputc(')', to);
    }
    fputc('\n', to);
}

static void print_evaluation(const struct rf_artifact *artifact, FILE *to)
{
    fputs("\\subsection{Evaluation and expected results}\n"
          "Every destination byte of every iteration has to be right; exit "
          "status 3 means a wrong one. \\texttt{refit-coord compare} judges "
          "the ratio to contiguous traffic, which depends least on the "
          "machine, and peak memory. Below are each scenario's median time and "
          "ratio with 95\\,\\% intervals, and the range in which the ratios of "
          "95 of 100 reruns on the same machine lie; fewer than 5 iterations "
          "have neither. Times may differ by a factor of two from start to "
          "start. Flags are doubts about the figures.\n"
          "\\begin{itemize}\n",
          to);
    for (size_t i = 0; i < artifact->n; i++) {
        for (size_t k = 0;
             !artifact->runs[i].imported && k < artifact->runs[i].n; k++) {
            print_expected(to, &artifact->runs[i].files[k]);
        }
    }
    fputs("\\end{itemize}\n\n"
          "\\subsection{Experiment customization}\n"
          "\\texttt{-{}-nodes} names other hosts, \\texttt{-{}-set} changes "
          "any value of a cluster file, \\texttt{-s} selects scenarios, and "
          "\\texttt{-{}-repeat} measures with new processes.\n\n"
          "\\subsection{Notes}\n"
          "Figures of one start say little about the next; intervals of runs "
          "with \\texttt{-{}-repeat} include the differences between "
          "starts.\n\n\\endgroup\n",
          to);
}

void rf_artifact_print_appendix(const struct rf_artifact *artifact, FILE *to)
{
    struct facts facts = collect(artifact);
    fputs("% \\input{appendix} after \\appendix. Define these before, to "
          "fill in what the results do not know:\n"
          "\\providecommand{\\refitArtifactAddress}{with the paper}\n"
          "\\providecommand{\\refitArtifactLicense}{that of the paper}\n"
          "\\providecommand{\\refitArtifactDoi}{not yet}\n"
          "\\section{Artifact Appendix}\n"
          "\\begingroup\\raggedright\n",
          to);
    print_abstract(&facts, to);
    print_checklist(artifact, &facts, to);
    print_description(&facts, to);
    print_workflow(artifact, to);
    print_evaluation(artifact, to);
    free_facts(&facts);
}

/*
 * README.md of an artifact: numbered commands in blocks marked as "sh", which a
 * script can run in order. Texts of results appear only where nothing
 * interprets them: escaped, or quoted for the shell in one line of a block.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/shell.h"
#include "common/text.h"
#include "coordinator/artifact/artifact_run.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/replay.h"
#include "coordinator/reports/report_json.h"
#include "coordinator/table/escape.h"

#define NODES " ${NODES:+--nodes \"$NODES\"}"

static void put(FILE *to, const char *text)
{
    rf_escape(to, RF_REPORT_MARKDOWN, text);
}

/* A line of a block. Takes it. */
static void put_line(FILE *to, char *line)
{
    rf_text_clean_line(line, strlen(line));
    fprintf(to, "%s\n", line);
    free(line);
}

static void print_contents(const struct rf_artifact *artifact, FILE *to)
{
    const json_t *record = artifact->runs[0].files[0].result;
    fputs("# Results of refit-coord\n\nHow long weight refits took, and what "
          "others need to check that and to measure again. Program: "
          "refit-coord ",
          to);
    put(to, rf_result_text(record, "tool", "version"));
    fputs(", build ", to);
    put(to, rf_result_text(record, "tool", "build"));
    fputs(".\n\n"
          "| path | content |\n|---|---|\n"
          "| `results/` | the run folders as they were measured |\n"
          "| `clusters/` | a cluster file for each run, models included: it "
          "needs no other file of this folder |\n"
          "| `schema/` | JSON Schemas of the files |\n"
          "| `environment.json` | nodes, versions and command lines |\n"
          "| `appendix.tex` | the artifact appendix, for a paper in LaTeX |\n"
          "| `SHA256SUMS` | checksums of all other files |\n\n",
          to);
}

static void print_machines(const struct rf_artifact *artifact, FILE *to)
{
    fputs("Measured on\n\n```text\n", to);
    for (size_t i = 0; i < artifact->n; i++) {
        const json_t *nodes = json_object_get(artifact->runs[i].facts, "nodes");
        for (size_t k = 0;
             !artifact->runs[i].imported && k < json_array_size(nodes); k++) {
            char *text = rf_report_machine_text(nodes, k);
            if (text != NULL) {
                put_line(to,
                         rf_xasprintf("%s: %s", artifact->runs[i].name, text));
            }
            free(text);
        }
    }
    fputs("```\n\n", to);
}

/* "title: clusters/RUN.json: a, b; ..." for runs whose lists, chosen by `of`,
 * have any. */
static void print_lists(const struct rf_artifact *artifact, const char *title,
                        const json_t *(*of)(const struct rf_artifact_run *),
                        FILE *to)
{
    bool any = false;
    for (size_t i = 0; i < artifact->n; i++) {
        const json_t *list = of(&artifact->runs[i]), *one;
        size_t k;
        json_array_foreach (list, k, one) {
            if (k == 0) {
                fputs(any ? "; clusters/" : title, to);
                put(to, artifact->runs[i].name);
                fputs(".json: ", to);
                any = true;
            }
            fputs(k > 0 ? ", " : "", to);
            put(to, json_string_value(one));
        }
    }
    fputs(any ? "\n" : "", to);
}

static const json_t *launching_of(const struct rf_artifact_run *run)
{
    return run->launching;
}

static const json_t *data_of(const struct rf_artifact_run *run)
{
    return run->data;
}

static const json_t *secrets_of(const struct rf_artifact_run *run)
{
    return run->secrets;
}

static void print_needs(const struct rf_artifact *artifact, FILE *to)
{
    fputs("## Before you start\n\n"
          "- `refit-coord` has to be in the `PATH`, with `refit-worker` beside "
          "it, best of the same build; figures need Python 3 with "
          "matplotlib.\n"
          "- Run the blocks below in this folder, in order.\n"
          "- Other hosts take the places of the paper's, in order and with as "
          "many slots: `export NODES='node-c,node-d'`.\n",
          to);
    print_lists(artifact,
                "- Programs and keys outside this folder, to replace with "
                "`--set` where they differ: clusters/",
                launching_of, to);
    print_lists(artifact,
                "- Data outside this folder, to replace with `--set` where it "
                "differs: clusters/",
                data_of, to);
    print_lists(artifact,
                "- Secret variables, to add to `launch.env` of the cluster "
                "file, and to set for `rerun`: clusters/",
                secrets_of, to);
    fputc('\n', to);
}

/* "results/RUN/NAME.json" */
static char *path_of(const struct rf_artifact_run *run,
                     const struct rf_result_file *file)
{
    return rf_xasprintf("results/%s%s", run->name, strrchr(file->path, '/'));
}

/* The command to run the shortest verified scenario again; NULL: none can. */
static char *shortest(const struct rf_artifact *artifact)
{
    double least = 0;
    char *out = NULL;
    for (size_t i = 0; i < artifact->n; i++) {
        const struct rf_artifact_run *run = &artifact->runs[i];
        for (size_t k = 0; run->cluster != NULL && k < run->n; k++) {
            const json_t *record = run->files[k].result;
            const double s = rf_artifact_record_s(record);
            char *path = path_of(run, &run->files[k]);
            char *command = rf_replay_of_record("refit-coord", path, record);
            if (command != NULL && rf_artifact_is_verified(record) &&
                (out == NULL || s < least)) {
                free(out);
                out = rf_xstrdup(command);
                least = s;
            }
            free(command);
            free(path);
        }
    }
    return out;
}

/* A command for each run that can run again. */
enum each { RUN, COMPARE };

static void print_each(const struct rf_artifact *artifact, enum each what,
                       FILE *to)
{
    fputs("```sh\n", to);
    for (size_t i = 0; i < artifact->n; i++) {
        const struct rf_artifact_run *run = &artifact->runs[i];
        char *names[] = {rf_xasprintf("results/%s", run->name),
                         rf_artifact_again_name(run)};
        char *words[] = {rf_shell_word(names[0]), rf_shell_word(names[1])};
        if (run->cluster != NULL) {
            put_line(to, what == RUN ? rf_artifact_run_command(run, NODES)
                                     : rf_xasprintf("refit-coord compare %s %s",
                                                    words[0], words[1]));
        }
        for (size_t k = 0; k < RF_ARRAY_SIZE(names); k++) {
            free(names[k]);
            free(words[k]);
        }
    }
    fputs("```\n\n", to);
}

static void print_report(const struct rf_artifact *artifact,
                         const char *options, const char *options_again,
                         FILE *to)
{
    char *again = rf_xstrdup("");
    for (size_t i = 0; i < artifact->n; i++) {
        const struct rf_artifact_run *run = &artifact->runs[i];
        if (run->cluster != NULL) {
            char *name = rf_artifact_again_name(run);
            char *word = rf_shell_word(name);
            rf_text_add(&again, "", " %s", word);
            free(name);
            free(word);
        }
    }
    fprintf(to, "```sh\nrefit-coord report results %s\n", options);
    if (again[0] != '\0') {
        put_line(to,
                 rf_xasprintf("refit-coord report%s %s", again, options_again));
    }
    fputs("```\n\n", to);
    free(again);
}

static void print_quick(const struct rf_artifact *artifact, FILE *to)
{
    char *quick = shortest(artifact);
    if (quick != NULL) {
        fputs("## 2. Try one scenario\n\n"
              "This checks that the plan is the published one, runs the "
              "shortest scenario, verifies every byte, and compares.\n\n"
              "```sh\n",
              to);
        put_line(to, rf_xasprintf("%s" NODES " -o one", quick));
        fputs("```\n\n", to);
    }
    free(quick);
}

static void print_again(const struct rf_artifact *artifact, FILE *to)
{
    char time[32];
    rf_artifact_time_text(artifact, time);
    fprintf(to,
            "## 3. Run everything again\n\n"
            "This takes %s, as long as the published runs did. Exit status 3 "
            "means a wrong byte. Before you repeat this step, remove `again/`: "
            "step 4 needs one run of each.\n\n",
            time);
    print_each(artifact, RUN, to);
    fputs("## 4. Compare\n\n"
          "Exit status 1, here and in step 2, means that something is slower "
          "or larger by more than 10 %. `appendix.tex` has the range in which "
          "the ratios of 95 of 100 reruns lie.\n\n",
          to);
    print_each(artifact, COMPARE, to);
}

static bool can_run(const struct rf_artifact *artifact)
{
    size_t i = 0;
    while (i < artifact->n && artifact->runs[i].cluster == NULL) {
        i++;
    }
    return i < artifact->n;
}

/* How each run was started, as its run.json has it. */
static void print_origin(const struct rf_artifact *artifact, FILE *to)
{
    fputs("## How the results were made\n\n```text\n", to);
    for (size_t i = 0; i < artifact->n; i++) {
        const json_t *argv =
            json_object_get(artifact->runs[i].document, "argv");
        const json_t *one;
        char *line = rf_xasprintf("%s:", artifact->runs[i].name);
        size_t k;
        json_array_foreach (argv, k, one) {
            const char *text = json_string_value(one);
            char *word = rf_shell_word(text != NULL ? text : "?");
            rf_text_add(&line, " ", "%s", word);
            free(word);
        }
        put_line(to, line);
    }
    fputs("```\n", to);
}

void rf_artifact_print_readme(const struct rf_artifact *artifact, FILE *to)
{
    print_contents(artifact, to);
    print_machines(artifact, to);
    print_needs(artifact, to);
    fputs("## 1. Check the files\n\n"
          "```sh\nsha256sum --quiet -c SHA256SUMS\n```\n\n",
          to);
    print_quick(artifact, to);
    if (can_run(artifact)) {
        print_again(artifact, to);
    }
    fputs("## 5. Tables\n\n", to);
    print_report(artifact, "--latex >published.tex", "--latex >again.tex", to);
    fputs("## 6. Figures\n\n", to);
    print_report(artifact, "--figures published-figures",
                 "--figures again-figures", to);
    print_origin(artifact, to);
}

/* A list of findings. See findings.h. */
#include "coordinator/advice/findings.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_out.h"
#include "common/mem.h"
#include "common/text.h"

#define NAMES_SHOWN 4 /* of a finding's hosts or scenarios */

void rf_findings_add(struct rf_findings *findings, enum rf_advice_level level,
                     const char *about, const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    RF_PUSH(
        findings->list, findings->n, findings->cap,
        ((struct rf_finding){level, 1, rf_xstrdup(about), rf_xstrdup(text)}));
}

static void free_finding(struct rf_finding *finding)
{
    free(finding->about);
    free(finding->text);
}

/* The finding among the first `n` with the same text, or NULL. */
static struct rf_finding *find_same(struct rf_finding *list, size_t n,
                                    const struct rf_finding *finding)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].level == finding->level &&
            strcmp(list[i].text, finding->text) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

/* Adds the subject of `other` to `first`. */
static void also_about(struct rf_finding *first, const struct rf_finding *other)
{
    if (strcmp(first->about, other->about) == 0) {
        return;
    }
    first->count++;
    if (first->count <= NAMES_SHOWN) {
        rf_text_add(&first->about, ", ", "%s", other->about);
    }
}

static void count_the_rest(struct rf_finding *finding)
{
    if (finding->count > NAMES_SHOWN) {
        rf_text_add(&finding->about, " and ", "%zu more",
                    finding->count - NAMES_SHOWN);
    }
}

void rf_findings_merge(struct rf_findings *findings)
{
    size_t kept = 0;
    for (size_t i = 0; i < findings->n; i++) {
        struct rf_finding *same =
            find_same(findings->list, kept, &findings->list[i]);
        if (same == NULL) {
            findings->list[kept++] = findings->list[i];
        } else {
            also_about(same, &findings->list[i]);
            free_finding(&findings->list[i]);
        }
    }
    findings->n = kept;
    for (size_t i = 0; i < kept; i++) {
        count_the_rest(&findings->list[i]);
    }
}

void rf_findings_free(struct rf_findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        free_finding(&findings->list[i]);
    }
    free(findings->list);
    *findings = (struct rf_findings){0};
}

size_t rf_findings_count(const struct rf_findings *findings,
                         enum rf_advice_level level)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->n; i++) {
        count += findings->list[i].level == level;
    }
    return count;
}

static const char *letter(const struct rf_finding *finding)
{
    static const char *const letters[] = {"I", "W", "E"};
    return letters[finding->level];
}

static void print_json(const struct rf_findings *findings)
{
    json_t *list = json_array();
    for (int level = RF_ADVICE_ERROR; level >= RF_ADVICE_INFO; level--) {
        for (size_t i = 0; i < findings->n; i++) {
            const struct rf_finding *finding = &findings->list[i];
            if ((int)finding->level == level) {
                json_array_append_new(
                    list,
                    json_pack("{s:s, s:s, s:s, s:I}", "level", letter(finding),
                              "about", finding->about, "text", finding->text,
                              "count", (json_int_t)finding->count));
            }
        }
    }
    rf_json_out(json_pack("{s:i, s:o}", "schema_version", 1, "findings", list),
                stdout);
}

void rf_findings_print(const struct rf_findings *findings, bool json,
                       bool quiet)
{
    size_t errors = rf_findings_count(findings, RF_ADVICE_ERROR);
    size_t warnings = rf_findings_count(findings, RF_ADVICE_WARNING);
    if (json) {
        print_json(findings);
        return;
    }
    for (int level = RF_ADVICE_ERROR;
         level >= (quiet ? RF_ADVICE_WARNING : RF_ADVICE_INFO); level--) {
        for (size_t i = 0; i < findings->n; i++) {
            const struct rf_finding *finding = &findings->list[i];
            if ((int)finding->level == level) {
                printf("%s %s: %s\n", letter(finding), finding->about,
                       finding->text);
            }
        }
    }
    printf("%zu error%s, %zu warning%s\n", errors, errors == 1 ? "" : "s",
           warnings, warnings == 1 ? "" : "s");
}

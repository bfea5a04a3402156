/*
 * Any bytes as result files, reported in every form and compared. They are
 * parts that end with NUL: the name of the run's folder, then documents, two a
 * run. Whatever they say, a report is valid UTF-8 without control characters,
 * its cells are cells and its markup is its own. What a form understands is
 * looked for here by other means than coordinator/table/escape.c has.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/reports/compare.h"
#include "coordinator/reports/pool.h"
#include "coordinator/reports/report.h"

#define MAX_PARTS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_between(const char *text, unsigned char first,
                       unsigned char last)
{
    return (unsigned char)*text >= first && (unsigned char)*text <= last;
}

/* UTF-8 (Jansson is the judge) that moves nothing but for what is `allowed`. */
static void check_text(const char *text, const char *allowed)
{
    json_t *string = json_string(text);
    must(string != NULL);
    json_decref(string);
    for (const char *at = text; *at != '\0'; at++) {
        must(strchr(allowed, *at) != NULL || !is_between(at, 0, 0x1f));
        must(*at != 0x7f);
        must(strncmp(at, "\xc2", 1) != 0 || !is_between(at + 1, 0x80, 0x9f));
        must(strncmp(at, "\xe2\x80", 2) != 0 ||
             !(is_between(at + 2, 0x8e, 0x8f) ||
               is_between(at + 2, 0xa8, 0xae)));
        must(strncmp(at, "\xe2\x81", 2) != 0 ||
             !is_between(at + 2, 0xa6, 0xa9));
        must(strncmp(at, "\xd8\x9c", 2) != 0);
    }
}

static size_t count(const char *text, char wanted)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == wanted;
    }
    return n;
}

static bool is_number(const char *text)
{
    size_t sign = strspn(text, "+-") > 0;
    size_t whole = strspn(text + sign, "0123456789");
    const char *at = text + sign + whole;
    size_t part = *at == '.' ? strspn(at + 1, "0123456789") : 0;
    at += (*at == '.') + part;
    if (whole + part == 0) {
        return *at == '\0' && sign == 1 && text[1] == '\0';
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        if (strspn(at, "0123456789") == 0) {
            return false;
        }
        at += strspn(at, "0123456789");
    }
    return *at == '\0';
}

/* Takes one field at `at` and returns what follows it. */
static const char *check_field(const char *at)
{
    char *field = rf_xcalloc(strlen(at) + 1, 1);
    bool quoted = *at == '"';
    size_t n = 0, blanks;
    at += quoted;
    for (;; at++) {
        must(*at != '\0');
        if (quoted && *at == '"') {
            at++;
            if (*at != '"') {
                break;
            }
        } else if (!quoted && (*at == ',' || *at == '\n')) {
            break;
        }
        must(quoted || (*at != '"' && *at != ';'));
        must(*at != '\n');
        field[n++] = *at;
    }
    blanks = strspn(field, " ");
    must(strchr("=@+-", field[blanks]) == NULL || field[blanks] == '\0' ||
         is_number(field + blanks));
    free(field);
    return at;
}

static void check_csv(const char *text)
{
    size_t columns = 0, here = 0, rows = 0;
    while (*text != '\0') {
        text = check_field(text);
        here++;
        must(*text == ',' || *text == '\n');
        if (*text == '\n') {
            columns = rows++ == 0 ? here : columns;
            must(here == columns);
            here = 0;
        }
        text++;
    }
    must(here == 0);
}

/* Calls `check` for every line with the first one of all. */
static void each_line(const char *text, const char *begins,
                      size_t (*check)(const char *line))
{
    size_t columns = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        char *line = rf_xasprintf("%.*s", (int)size, text);
        must(text[size] == '\n');
        if (strncmp(line, begins, strlen(begins)) != 0) {
            size_t n = check(line);
            must(n == 0 || columns == 0 || n == columns);
            columns = n > 0 ? n : columns;
        } else { /* a remark, which nothing ends before its end */
            must(count(line + 4, '<') == 0);
            must(count(line, '>') == (begins[0] == '<'));
            must(begins[0] != '<' || strstr(line, " -->")[4] == '\0');
        }
        free(line);
        text += size + 1;
    }
}

static bool has_entity(const char *at)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                           "&#39;"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(entities); i++) {
        if (strncmp(at, entities[i], strlen(entities[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* What GFM makes links or formulae of. */
static bool is_live(const char *at)
{
    return strchr(":@$", *at) != NULL || strncasecmp(at, "www.", 4) == 0;
}

/* Passes over a code span of nothing but characters that would be more than
 * text elsewhere. */
static const char *skip_code(const char *at)
{
    size_t n = strspn(at + 1, ":@$.");
    must(n > 0 && at[n + 1] == '`');
    return at + n + 1;
}

/* Columns of a row of Markdown in which nothing but bars and spans of code is
 * markup. */
static size_t check_markdown(const char *line)
{
    size_t bars = 0;
    bool rule =
        strncmp(line, "|---", 4) == 0 && strspn(line, "|-:") == strlen(line);
    must(line[0] == '|');
    for (const char *at = line; *at != '\0'; at++) {
        if (*at == '\\') {
            at++;
            must(*at != '\0' && strchr("|*_`~[]\\", *at) != NULL);
            continue;
        }
        if (*at == '`') {
            at = skip_code(at);
            continue;
        }
        must(rule || !is_live(at));
        bars += *at == '|';
        must(rule || strchr("<>*_~[]", *at) == NULL);
        must(*at != '&' || has_entity(at));
    }
    must(line[strlen(line) - 1] == '|');
    return bars;
}

/* Columns of a row of LaTeX with no command but ours; 0 for other lines. */
static size_t check_latex(const char *line)
{
    static const char *const commands[] = {
        "\\textasciitilde{}", "\\textasciicircum{}", "\\textbackslash{}",
        "\\textbar{}",        "\\textless{}",        "\\textgreater{}"};
    size_t columns = 1;
    if (strcmp(line, "\\toprule") == 0 || strcmp(line, "\\midrule") == 0 ||
        strcmp(line, "\\bottomrule") == 0 ||
        strncmp(line, "\\begin{tabular}{", 16) == 0 ||
        strcmp(line, "\\end{tabular}") == 0) {
        return 0;
    }
    must(line[strspn(line, " ")] != '[' && line[strspn(line, " ")] != '*');
    for (const char *at = line; *at != '\0'; at++) {
        size_t skip = 0;
        for (size_t i = 0; i < RF_ARRAY_SIZE(commands); i++) {
            if (strncmp(at, commands[i], strlen(commands[i])) == 0) {
                skip = strlen(commands[i]) - 1;
            }
        }
        if (skip == 0 && *at == '\\') {
            if (strcmp(at, "\\\\") == 0) {
                return columns;
            }
            must(at[1] != '\0' && strchr("&%$#_{}", at[1]) != NULL);
            skip = 1;
        } else if (skip == 0 && strncmp(at, "{}", 2) == 0) {
            skip = 1;
        } else if (skip == 0) {
            must(strchr("%$#_{}~^|<>", *at) == NULL);
            columns += *at == '&';
        }
        at += skip;
    }
    abort(); /* a row that does not end */
}

static char *print(const struct rf_result_set *set, enum rf_report_form form)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_report_print(set, &(struct rf_report_options){.form = form}, file);
    fclose(file);
    must(strlen(text) == size);
    check_text(text, "\n");
    return text;
}

/* Changes what HTML understands in texts into letters. */
static void disarm_text(char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("<>&\"'", *text) != NULL) {
            *text = 'x';
        }
    }
}

static void disarm(json_t *value)
{
    json_t *inner;
    const char *key;
    size_t i;
    if (json_is_string(value)) {
        char *text = rf_xstrdup(json_string_value(value));
        disarm_text(text);
        json_string_set(value, text);
        free(text);
    }
    json_array_foreach (value, i, inner) {
        disarm(inner);
    }
    json_object_foreach (value, key, inner) {
        disarm(inner);
    }
}

/* As much markup as there is without any in the texts. */
static void check_html(const struct rf_result_set *set, const char *page)
{
    struct rf_result_set harmless = {0};
    char *other;
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *file = &set->files[i];
        struct rf_result_file twin = {.path = rf_xstrdup(file->path),
                                      .name = rf_xstrdup(file->name),
                                      .run = rf_xstrdup(file->run),
                                      .result = json_deep_copy(file->result)};
        disarm_text(twin.name);
        disarm_text(twin.run);
        disarm(twin.result);
        RF_PUSH(harmless.files, harmless.n, harmless.cap, twin);
    }
    other = print(&harmless, RF_REPORT_HTML);
    for (const char *c = "<>\"'"; *c != '\0'; c++) {
        must(count(page, *c) == count(other, *c));
    }
    for (const char *at = page; *at != '\0'; at++) {
        must(*at != '&' || has_entity(at));
    }
    free(other);
    rf_result_set_free(&harmless);
}

static void check_reports(const struct rf_result_set *set)
{
    char *text = print(set, RF_REPORT_TABLE);
    must(count(text, '\n') == set->n + 1);
    free(text);
    text = print(set, RF_REPORT_CSV);
    must(count(text, '\n') == set->n + 1);
    check_csv(text);
    free(text);
    text = print(set, RF_REPORT_MARKDOWN);
    each_line(text, "<!-- ", check_markdown);
    free(text);
    text = print(set, RF_REPORT_LATEX);
    each_line(text, "% ", check_latex);
    free(text);
    text = print(set, RF_REPORT_HTML);
    check_html(set, text);
    free(text);
}

/* Whatever is pooled, it stays a table. */
static void check_pooled(struct rf_result_set *set)
{
    static const enum rf_report_form forms[] = {
        RF_REPORT_TABLE, RF_REPORT_MARKDOWN, RF_REPORT_LATEX, RF_REPORT_HTML};
    struct rf_pooled counts = {0};
    const size_t before = set->n;
    char *text;
    rf_log_init(RF_LOG_ERROR, NULL); /* without what is kept apart */
    rf_pool(set, &counts);
    must(set->n <= before && (set->n < before) == (counts.scenarios > 0));
    for (size_t i = 0; i < RF_ARRAY_SIZE(forms); i++) {
        free(print(set, forms[i]));
    }
    text = print(set, RF_REPORT_CSV);
    must(count(text, '\n') == set->n + 1);
    check_csv(text);
    free(text);
}

static void check_comparison(const struct rf_result_set *a,
                             const struct rf_result_set *b)
{
    const struct rf_thresholds thresholds = rf_thresholds_default();
    struct rf_comparisons all = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    json_t *document;
    rf_compare(a, b, &thresholds, &all);
    rf_comparisons_print(&all, file);
    fclose(file);
    check_text(text, "\n");
    must(count(text, '\n') == all.n + 1);
    free(text);
    document = rf_comparisons_json(&all);
    must(json_array_size(json_object_get(document, "comparisons")) == all.n);
    json_decref(document);
    rf_comparisons_free(&all);
}

/* Takes the part as document `i` of two sets: all, and its half of them. */
static void take(const char *run, size_t i, const char *part, size_t size,
                 struct rf_result_set *all, struct rf_result_set *half)
{
    struct rf_err err = {0};
    json_t *document = NULL;
    char *path = rf_xasprintf("/absent/%s%zu/part-%zu.json", run, i / 2, i);
    if (rf_json_parse(part, size, path, &document, &err) == RF_OK) {
        enum rf_status status =
            rf_result_set_take(all, path, json_incref(document), &err);
        must(rf_result_set_take(half, path, document, &err) == status);
        check_text(err.text, ""); /* a line of the log */
    }
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_result_set all = {0}, halves[2] = {{0}, {0}};
    const char *at = (const char *)data, *end = at + size;
    const char *run_end = size > 0 ? memchr(at, '\0', size) : NULL;
    char *run;
    if (run_end == NULL) {
        return 0;
    }
    run = rf_xstrdup(at);
    at = run_end + 1;
    for (size_t i = 0; i < MAX_PARTS && at < end; i++) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        size_t part = (size_t)((nul != NULL ? nul : end) - at);
        take(run, i, at, part, &all, &halves[i % 2]);
        at += RF_MIN(part + 1, (size_t)(end - at));
    }
    for (size_t i = 0; i < all.n; i++) {
        check_text(all.files[i].name, ""); /* likewise, as parts of it */
        check_text(all.files[i].run, "");
    }
    check_reports(&all);
    check_comparison(&halves[0], &halves[1]);
    check_pooled(&all);
    free(run);
    rf_result_set_free(&all);
    rf_result_set_free(&halves[0]);
    rf_result_set_free(&halves[1]);
    return 0;
}

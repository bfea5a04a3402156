/* Escaping texts in reports. See escape.h. The text is cleaned first, so each
 * form only replaces what it would interpret. */
#include "coordinator/table/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"

static void print_text(FILE *to, const char *text)
{
    fputs(text, to);
}

/* A number as in CSV; a sign alone means not measured. */
static bool is_number(const char *text)
{
    char *end;
    if (strspn(text, "+-.0123456789eE") != strlen(text)) {
        return false;
    }
    (void)strtod(text, &end);
    return *end == '\0' || text[1] == '\0';
}

/* Whether a spreadsheet would evaluate it (OWASP, "CSV injection"). Some skip
 * blanks and accept fullwidth characters, too. */
static bool is_formula(const char *text)
{
    static const char *const starts[] = {"=",
                                         "+",
                                         "-",
                                         "@",
                                         "\xef\xbc\x9d",
                                         "\xef\xbc\x8b",
                                         "\xef\xbc\x8d",
                                         "\xef\xbc\xa0"};
    text += strspn(text, " ");
    for (size_t i = 0; i < RF_ARRAY_SIZE(starts); i++) {
        if (strncmp(text, starts[i], strlen(starts[i])) == 0) {
            return !is_number(text);
        }
    }
    return false;
}

/* RFC 4180; a formula gets a quote mark in front. Many spreadsheets separate
 * cells by semicolons. */
static void print_csv(FILE *to, const char *text)
{
    bool formula = is_formula(text);
    if (!formula && strpbrk(text, ",;\"") == NULL) {
        fputs(text, to);
        return;
    }
    fputs(formula ? "\"'" : "\"", to);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', to);
        }
        fputc(*text, to);
    }
    fputc('"', to);
}

static void replace(FILE *to, const char *text, const char *special,
                    const char *const *replacements)
{
    for (; *text != '\0'; text++) {
        const char *at = strchr(special, *text);
        if (at != NULL) {
            fputs(replacements[at - special], to);
        } else {
            fputc(*text, to);
        }
    }
}

static void print_latex(FILE *to, const char *text)
{
    static const char *const with[] = {"\\&",
                                       "\\%",
                                       "\\$",
                                       "\\#",
                                       "\\_",
                                       "\\{",
                                       "\\}",
                                       "\\textasciitilde{}",
                                       "\\textasciicircum{}",
                                       "\\textbackslash{}",
                                       "\\textbar{}",
                                       "\\textless{}",
                                       "\\textgreater{}"};
    const char *start = text + strspn(text, " ");
    if (*start == '[' || *start == '*') {
        fputs("{}", to); /* or it would bind to the preceding line's \\ */
    }
    replace(to, text, "&%$#_{}~^\\|<>", with);
}

/* Whether GFM (autolinks; GitHub's maths, mentions and emoji) may interpret the
 * text around the character. */
static bool is_live(const char *text, const char *at)
{
    return strchr(":@$", *at) != NULL ||
           (*at == '.' && at - text >= 3 && strncasecmp(at - 3, "www", 3) == 0);
}

/* Escaping does not help, since links are found after unescaping; but a code
 * span, even of one character, is never part of a link. */
static void print_markdown(FILE *to, const char *text)
{
    static const char *const with[] = {"\\|",  "\\*",  "\\_",  "\\`",
                                       "\\~",  "\\[",  "\\]",  "\\\\",
                                       "&lt;", "&gt;", "&amp;"};
    bool in_code = false;
    for (const char *at = text; *at != '\0'; at++) {
        const char one[] = {*at, '\0'};
        if (is_live(text, at) != in_code) {
            fputc('`', to);
            in_code = !in_code;
        }
        replace(to, one, "|*_`~[]\\<>&", with);
    }
    if (in_code) {
        fputc('`', to);
    }
}

static void print_html(FILE *to, const char *text)
{
    static const char *const with[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                       "&#39;"};
    replace(to, text, "&<>\"'", with);
}

static void print_remark(FILE *to, const char *text)
{
    static const char *const with[] = {" ", " "};
    replace(to, text, "<>", with);
}

static void print_clean(FILE *to, const char *text,
                        void (*print)(FILE *, const char *))
{
    char *line = rf_xstrdup(text);
    rf_text_clean_line(line, strlen(line));
    print(to, line);
    free(line);
}

void rf_escape(FILE *to, enum rf_report_form form, const char *text)
{
    static void (*const prints[])(FILE *, const char *) = {
        [RF_REPORT_TABLE] = print_text,  [RF_REPORT_CSV] = print_csv,
        [RF_REPORT_LATEX] = print_latex, [RF_REPORT_MARKDOWN] = print_markdown,
        [RF_REPORT_HTML] = print_html,
    };
    print_clean(to, text, prints[form]);
}

void rf_escape_remark(FILE *to, const char *text)
{
    print_clean(to, text, print_remark);
}

/*
 * Reads a text by the grammar of RFC 8259 up to its first mistake. It builds
 * nothing: Jansson decides whether a text is JSON, this explains why it is not.
 * Where both disagree, or the mistake is none of syntax (a number that is too
 * large, say), Jansson's error is told.
 */
#include "common/json_syntax.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/text.h"

#define SHOWN 24 /* bytes of a word or number that errors show */

/* What may stand at a place. */
enum expected {
    DOCUMENT, /* { or [ */
    VALUE,
    FIRST_VALUE, /* or ] */
    KEY,
    FIRST_KEY, /* or } */
    COLON,
    NEXT, /* a comma or the closing bracket */
    NOTHING,
};

struct scan {
    const char *text, *end, *at;
    enum expected place;
    const char
        *open[RF_JSON_MAX_DEPTH + 1]; /* brackets, the document's first */
    unsigned depth;
    const char *last;    /* the token before `at`; NULL: none */
    const char *mistake; /* inside a token, at `at`; NULL: another token should
                            be there */
    const char *cause;   /* of a token that is none; NULL: not known */
};

static bool starts(const struct scan *scan, const char *word)
{
    const size_t size = strlen(word);
    return (size_t)(scan->end - scan->at) >= size &&
           memcmp(scan->at, word, size) == 0;
}

static char here(const struct scan *scan)
{
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '+' ||
           c == '.' || c == '$';
}

static size_t word_size(const struct scan *scan)
{
    size_t size = 0;
    while (scan->at + size < scan->end && is_word(scan->at[size])) {
        size++;
    }
    return size;
}

static unsigned line_of(const struct scan *scan, const char *at)
{
    unsigned line = 1;
    for (const char *p = scan->text; p < at; p++) {
        line += *p == '\n';
    }
    return line;
}

static unsigned column_of(const struct scan *scan, const char *at)
{
    unsigned column = 1;
    while (at > scan->text && at[-1] != '\n') {
        at--;
        column += ((unsigned char)*at & 0xC0) != 0x80;
    }
    return column;
}

/* --- Tokens --------------------------------------------------------------- */

/* The mistake of an escape at `at`, its backslash; or passes over it. */
static bool pass_escape(struct scan *scan)
{
    const char *const letters = "\"\\/bfnrtu";
    const char c = scan->at + 1 < scan->end ? scan->at[1] : '\0';
    if (c == '\0' || strchr(letters, c) == NULL) {
        scan->mistake = "a backslash begins an escape such as \\n or \\\"; "
                        "write \\\\ for a backslash itself";
        return false;
    }
    scan->at += 2;
    return true;
}

static bool pass_string(struct scan *scan)
{
    const char *const begin = scan->at++;
    while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\n') {
        if (*scan->at == '\\') {
            if (!pass_escape(scan)) {
                return false;
            }
        } else if ((unsigned char)*scan->at < 32) {
            scan->mistake = "a string may not hold a control character; write "
                            "\\t for a tab";
            return false;
        } else {
            scan->at++;
        }
    }
    if (here(scan) != '"') {
        scan->at = begin;
        scan->mistake =
            "the string that begins here has no closing quote in its line";
        return false;
    }
    scan->at++;
    return true;
}

static const char *pass_digits(const char *at, const char *end)
{
    while (at < end && isdigit((unsigned char)*at)) {
        at++;
    }
    return at;
}

/* Behind the number at `at`; NULL: it is none. */
static const char *number_end(const char *at, const char *end)
{
    const char *from = at + (at < end && *at == '-');
    at = pass_digits(from, end);
    if (at == from || (*from == '0' && at > from + 1)) {
        return NULL;
    }
    if (at < end && *at == '.') {
        from = at + 1;
        at = pass_digits(from, end);
        if (at == from) {
            return NULL;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        from = at + 1;
        from += from < end && (*from == '+' || *from == '-');
        at = pass_digits(from, end);
        if (at == from) {
            return NULL;
        }
    }
    return at;
}

static bool looks_like_number(const struct scan *scan)
{
    const char c = here(scan);
    const char d = scan->at + 1 < scan->end ? scan->at[1] : '\0';
    return isdigit((unsigned char)c) ||
           ((c == '-' || c == '+' || c == '.') &&
            (isdigit((unsigned char)d) || d == '.'));
}

static bool pass_number(struct scan *scan)
{
    const size_t size = word_size(scan);
    if (number_end(scan->at, scan->end) != scan->at + size) {
        scan->cause = "numbers have no +, leading zero, bare point or unit; "
                      "anything else is a string in double quotes";
        return false;
    }
    scan->at += size;
    return true;
}

/* Why a word that is no value is there. */
static const char *cause_of_word(const char *word)
{
    static const struct {
        const char *word, *cause;
    } slips[] = {{"true", "write true"},   {"tru", "write true"},
                 {"yes", "write true"},    {"false", "write false"},
                 {"no", "write false"},    {"null", "write null"},
                 {"none", "write null"},   {"nil", "write null"},
                 {"nan", "JSON has none"}, {"infinity", "JSON has none"},
                 {"inf", "JSON has none"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(slips); i++) {
        if (strcasecmp(word, slips[i].word) == 0) {
            return slips[i].cause;
        }
    }
    return "a string needs double quotes";
}

static bool pass_word(struct scan *scan)
{
    char word[SHOWN];
    const size_t size = word_size(scan);
    snprintf(word, sizeof(word), "%.*s", (int)size, scan->at);
    if (strcmp(word, "true") != 0 && strcmp(word, "false") != 0 &&
        strcmp(word, "null") != 0) {
        scan->cause = cause_of_word(word);
        return false;
    }
    scan->at += size;
    return true;
}

/* --- Places --------------------------------------------------------------- */

static void after_value(struct scan *scan)
{
    scan->place = scan->depth > 0 ? NEXT : NOTHING;
}

static void open_bracket(struct scan *scan)
{
    scan->open[scan->depth++] = scan->at;
    scan->place = *scan->at == '{' ? FIRST_KEY : FIRST_VALUE;
    scan->at++;
}

static bool in_object(const struct scan *scan)
{
    return scan->depth > 0 && *scan->open[scan->depth - 1] == '{';
}

static char closing(const struct scan *scan)
{
    return in_object(scan) ? '}' : ']';
}

static bool pass_closing(struct scan *scan)
{
    if (scan->depth == 0 || here(scan) != closing(scan)) {
        return false;
    }
    scan->at++;
    scan->depth--;
    after_value(scan);
    return true;
}

static bool pass_value(struct scan *scan)
{
    const char c = here(scan);
    if (c == '{' || c == '[') {
        if (scan->depth == RF_ARRAY_SIZE(scan->open)) {
            return false;
        }
        open_bracket(scan);
        return true;
    }
    if (scan->place == DOCUMENT) {
        return false;
    }
    if (!(c == '"'                    ? pass_string(scan)
          : looks_like_number(scan)   ? pass_number(scan)
          : isalpha((unsigned char)c) ? pass_word(scan)
                                      : false)) {
        return false;
    }
    after_value(scan);
    return true;
}

static bool pass_key(struct scan *scan)
{
    if (here(scan) != '"' || !pass_string(scan)) {
        return false;
    }
    scan->place = COLON;
    return true;
}

static bool pass_mark(struct scan *scan, char mark, enum expected place)
{
    if (here(scan) != mark) {
        return false;
    }
    scan->at++;
    scan->place = place;
    return true;
}

/* One token; false: it is the mistake. */
static bool pass(struct scan *scan)
{
    switch (scan->place) {
    case FIRST_VALUE:
        return pass_closing(scan) || pass_value(scan);
    case FIRST_KEY:
        return pass_closing(scan) || pass_key(scan);
    case KEY:
        return pass_key(scan);
    case COLON:
        return pass_mark(scan, ':', VALUE);
    case NEXT:
        return pass_closing(scan) ||
               pass_mark(scan, ',', in_object(scan) ? KEY : VALUE);
    case NOTHING:
        return false;
    case DOCUMENT:
    case VALUE:
    default:
        return pass_value(scan);
    }
}

/* To the first mistake, or the end. Returns whether there is a mistake. */
static bool find_mistake(struct scan *scan)
{
    for (;;) {
        const char *before;
        while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) != NULL) {
            scan->at++;
        }
        if (scan->at == scan->end) {
            return scan->place != NOTHING;
        }
        before = scan->at;
        if (!pass(scan)) {
            return true;
        }
        scan->last = before;
    }
}

/* --- Words ---------------------------------------------------------------- */

static void say_expected(const struct scan *scan, char *out, size_t size)
{
    static const char *const texts[] = {
        [DOCUMENT] = "\"{\" or \"[\"",
        [VALUE] = "a value",
        [FIRST_VALUE] = "a value or \"]\"",
        [KEY] = "a key in double quotes",
        [FIRST_KEY] = "a key in double quotes or \"}\"",
        [COLON] = "\":\" behind the key",
        [NOTHING] = "the end of the input",
    };
    if (scan->place == NEXT) {
        snprintf(out, size, "\",\" or \"%c\"", closing(scan));
    } else {
        snprintf(out, size, "%s", texts[scan->place]);
    }
}

/* What stands there: words whole, else a character, by its number where it may
 * not be one that people see. */
static void say_found(const struct scan *scan, char *out, size_t size)
{
    const size_t word = word_size(scan);
    const unsigned char c = (unsigned char)here(scan);
    if (scan->at == scan->end) {
        snprintf(out, size, "the end of the input");
    } else if (word > 0) {
        snprintf(out, size, "\"%.*s%s\"", (int)RF_MIN(word, (size_t)SHOWN),
                 scan->at, word > SHOWN ? "..." : "");
    } else if (c == '"') {
        snprintf(out, size, "a string");
    } else if (c > 32 && c < 127) {
        snprintf(out, size, "\"%c\"", c);
    } else {
        snprintf(out, size, "byte 0x%02x", c);
    }
}

/* Of what is not closed where the text ends, or another bracket closes. */
static void say_open(const struct scan *scan, char *out, size_t size)
{
    const char *open = scan->open[scan->depth - 1];
    snprintf(out, size, "the \"%c\" in line %u is not closed", *open,
             line_of(scan, open));
}

/* A value or key where a comma is missing. */
static bool lacks_comma(const struct scan *scan)
{
    const char c = here(scan);
    return scan->place == NEXT &&
           (c == '"' || c == '{' || c == '[' || word_size(scan) > 0);
}

static bool is_typographic(const struct scan *scan)
{
    return starts(scan, "\xE2\x80\x98") || starts(scan, "\xE2\x80\x99") ||
           starts(scan, "\xE2\x80\x9C") || starts(scan, "\xE2\x80\x9D") ||
           starts(scan, "'");
}

/* What is probably the cause, or "". */
static void say_cause(const struct scan *scan, char *out, size_t size)
{
    const char c = here(scan);
    const bool closes = c == '}' || c == ']';
    const bool value = scan->place == VALUE || scan->place == KEY;
    out[0] = '\0';
    if (scan->cause != NULL) {
        snprintf(out, size, "%s", scan->cause);
    } else if (scan->last == NULL && scan->at == scan->end) {
        snprintf(out, size, "it is empty");
    } else if (starts(scan, "//") || starts(scan, "/*") || c == '#') {
        snprintf(out, size, "JSON has no comments; remove it");
    } else if (closes && value && scan->last != NULL && *scan->last == ',') {
        snprintf(out, size, "remove the comma before it, in line %u",
                 line_of(scan, scan->last));
    } else if (c == ',' && value) {
        snprintf(out, size, "one comma too many?");
    } else if (is_typographic(scan)) {
        snprintf(out, size, "strings and keys stand in plain double quotes");
    } else if (scan->place == NOTHING && closes) {
        snprintf(out, size, "one \"%c\" too many?", c);
    } else if (lacks_comma(scan)) {
        snprintf(out, size, "is a comma missing before it, in line %u?",
                 line_of(scan, scan->last));
    } else if (scan->depth > 0 && (closes || scan->at == scan->end)) {
        say_open(scan, out, size);
    } else if (c == '=' && scan->place == COLON) {
        snprintf(out, size, "write \":\" for \"=\"");
    }
}

static enum rf_status fail_at(const struct scan *scan, const char *name,
                              const char *at, const char *text,
                              struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_CONFIG, "%s:%u:%u: %s", name,
                      line_of(scan, at), column_of(scan, at), text);
}

static enum rf_status fail_here(const struct scan *scan, const char *name,
                                struct rf_err *err)
{
    char expected[48], found[SHOWN + 16], cause[120], text[240];
    say_expected(scan, expected, sizeof(expected));
    say_found(scan, found, sizeof(found));
    say_cause(scan, cause, sizeof(cause));
    snprintf(text, sizeof(text), "expected %s, found %s%s%s%s", expected, found,
             cause[0] != '\0' ? " (" : "", cause, cause[0] != '\0' ? ")" : "");
    return fail_at(scan, name, scan->at, text, err);
}

/* --- What is none of syntax ----------------------------------------------- */

/* The text that ends before `end`, with its quotes; NULL: none does. */
static const char *quoted_before(const struct scan *scan, const char *end)
{
    const char *at = end;
    if (at - scan->text < 2 || *--at != '"') {
        return NULL;
    }
    while (at > scan->text) {
        at--;
        if (*at == '"' && (at == scan->text || at[-1] != '\\')) {
            return at;
        }
    }
    return NULL;
}

static enum rf_status fail_as_jansson(const struct scan *scan, const char *name,
                                      const json_error_t *why,
                                      struct rf_err *err)
{
    const size_t most = (size_t)(scan->end - scan->text);
    const char *at =
        scan->text + RF_MIN((size_t)RF_MAX(why->position, 0), most);
    const char *key;
    char text[200];
    switch (json_error_code(why)) {
    case json_error_duplicate_key:
        key = quoted_before(scan, at);
        snprintf(text, sizeof(text),
                 "the key %.*s appears twice; remove or rename one",
                 key != NULL ? rf_text_head(key, (int)RF_MIN(at - key, 60)) : 0,
                 key != NULL ? key : "");
        return fail_at(scan, name, key != NULL ? key : at, text, err);
    case json_error_numeric_overflow:
        return fail_at(scan, name, at, "the number that ends here is too large",
                       err);
    case json_error_invalid_utf8:
        return fail_at(scan, name, at, "not UTF-8; save the file as UTF-8",
                       err);
    default:
        return fail_at(scan, name, at, why->text, err);
    }
}

enum rf_status rf_json_syntax_fail(const char *text, size_t size,
                                   const char *name, bool any,
                                   const json_error_t *why, struct rf_err *err)
{
    struct scan scan = {.text = text,
                        .end = text + size,
                        .at = text,
                        .place = any ? VALUE : DOCUMENT};
    if (json_error_code(why) == json_error_invalid_utf8 ||
        !find_mistake(&scan)) {
        return fail_as_jansson(&scan, name, why, err);
    }
    return scan.mistake != NULL
               ? fail_at(&scan, name, scan.at, scan.mistake, err)
               : fail_here(&scan, name, err);
}

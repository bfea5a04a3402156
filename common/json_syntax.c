/* Causes of syntax errors. See json_syntax.h. */
#include "common/json_syntax.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"
#define QUOTES "'\xE2" /* single quotes, and typographic ones in UTF-8 */
#define BLANKS " \t\r\n"
#define END "\4" /* a token for the end of the text */

/* Jansson's message, the start of the offending token and of the one before it
 * ("": any), and the cause. The first match wins. */
static const struct {
    const char *error, *found, *before, *cause;
} mistakes[] = {
    {"'[' or '{' expected", END, "", "the file is empty"},
    {"", "}]", ",", "remove the comma before it"},
    {"", ",", ",:[{", "extra comma?"},
    {"", "/#", "", "JSON has no comments; remove it"},
    {"", QUOTES, "", "strings and keys need plain double quotes"},
    {"end of file expected", "}]", "", "extra bracket?"},
    {"string or '}'", DIGITS LETTERS, "", "a key needs double quotes"},
    {"invalid token", LETTERS, "",
     "only true, false and null go without quotes"},
    {"invalid token", "+.-" DIGITS, "", "no leading + or 0 in numbers"},
    {"':' expected", "", "", "expected \":\" after the key"},
    {"' expected", "\"{[-" DIGITS, "\"]}-tfn" DIGITS, "missing comma?"},
    {"invalid escape", "", "", "write a backslash as \\\\"},
    {"unexpected newline", "", "", "unterminated string"},
    {"premature end", "", "", "unterminated string"},
    {"control character", "", "", "write a tab as \\t"},
    {"unable to decode", "", "", "not UTF-8; save the file as UTF-8"},
};

static size_t token_size(const char *at)
{
    size_t size = 1;
    if (*at != '"') {
        return RF_MAX(strcspn(at, BLANKS END "\"'{}[],:=/#"), size);
    }
    while (at[size] != '\0' && at[size] != '"') {
        size += at[size] == '\\' && at[size + 1] != '\0' ? 2 : 1;
    }
    return size + (at[size] == '"');
}

static bool fits(const char *set, const char *at)
{
    return set[0] == '\0' || (*at != '\0' && strchr(set, *at) != NULL);
}

/* The cause of Jansson's rejection of the last token in `text`, as errors end
 * with it; freed with free(). */
static char *find_cause(const char *text, const char *error)
{
    const char *open[RF_JSON_MAX_DEPTH + 1], *before = "", *found = "";
    unsigned depth = 0, line = 1;
    for (const char *at = text; *(at += strspn(at, BLANKS)) != '\0';) {
        before = found;
        found = at;
        at += token_size(at);
        if (strchr("{[", *found) != NULL) {
            open[depth++] = found;
        } else if (strchr("}]", *found) != NULL && *at != '\0') {
            depth--;
        }
    }
    if (depth > 0 && fits("}]" END, found) && *found != *open[depth - 1] + 2 &&
        *before != ',') {
        for (const char *at = text; at < open[depth - 1]; at++) {
            line += *at == '\n';
        }
        return rf_xasprintf(" (the \"%c\" in line %u is not closed)",
                            *open[depth - 1], line);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(mistakes); i++) {
        if (strstr(error, mistakes[i].error) != NULL &&
            fits(mistakes[i].found, found) &&
            fits(mistakes[i].before, before)) {
            return rf_xasprintf(" (%s)", mistakes[i].cause);
        }
    }
    return rf_xstrdup("");
}

enum rf_status rf_json_syntax_fail(const char *text, const char *name,
                                   const json_error_t *why, struct rf_err *err)
{
    const bool at_end = strstr(why->text, "near end of file") != NULL;
    char *seen = rf_xasprintf("%.*s%s", why->position, text, at_end ? END : "");
    char *cause = find_cause(seen, why->text);
    rf_err_set(err, RF_ERR_CONFIG, "%s:%d:%d: %s%s", name, why->line,
               why->column, why->text, cause);
    free(cause);
    free(seen);
    return RF_ERR_CONFIG;
}

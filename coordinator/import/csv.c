/*
 * Reading CSV. See csv.h. A cell is unquoted in place: it never grows. A quote
 * inside an unquoted cell is an ordinary character, as in other readers.
 */
#include "coordinator/import/csv.h"

#include <stdbool.h>
#include <string.h>

struct rf_csv rf_csv_begin(char *text, size_t size, const char *name)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const bool marked =
        size >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0;
    return (struct rf_csv){.at = text + (marked ? sizeof(mark) - 1 : 0),
                           .end = text + size,
                           .name = name,
                           .line = 1};
}

static enum rf_status fail(const struct rf_csv *csv, size_t line,
                           struct rf_err *err, const char *why)
{
    return rf_err_set(err, RF_ERR_CONFIG, "%s, line %zu: %s", csv->name, line,
                      why);
}

/* Whether a line ends here; the end of the text is one, too. */
static bool is_line_end(const struct rf_csv *csv)
{
    return csv->at == csv->end || *csv->at == '\n' ||
           (*csv->at == '\r' && csv->end - csv->at > 1 && csv->at[1] == '\n');
}

static void skip_line_end(struct rf_csv *csv)
{
    csv->at += csv->at < csv->end && *csv->at == '\r';
    csv->at += csv->at < csv->end;
    csv->line++;
}

/* Moves the content of a quoted cell to `to`, and to behind its closing quote.
 * Returns the end of the content; NULL: there is no closing quote. */
static char *unquote(struct rf_csv *csv, char *to)
{
    for (csv->at++; csv->at < csv->end; csv->at++) {
        if (*csv->at == '"') {
            csv->at++;
            if (csv->at == csv->end || *csv->at != '"') {
                return to;
            }
        }
        csv->line += *csv->at == '\n';
        *to++ = *csv->at;
    }
    return NULL;
}

static enum rf_status read_cell(struct rf_csv *csv, json_t *row,
                                struct rf_err *err)
{
    const size_t line = csv->line;
    char *start = csv->at, *end;
    json_t *cell;
    if (csv->at < csv->end && *csv->at == '"') {
        end = unquote(csv, start);
        if (end == NULL) {
            return fail(csv, line, err,
                        "a quoted cell does not end: its closing quote is "
                        "missing");
        }
        if (!is_line_end(csv) && *csv->at != ',') {
            return fail(csv, csv->line, err,
                        "text after the closing quote of a cell: write a "
                        "quote inside of one as \"\"");
        }
    } else {
        while (!is_line_end(csv) && *csv->at != ',') {
            csv->at++;
        }
        end = csv->at;
    }
    cell = memchr(start, '\0', (size_t)(end - start)) == NULL
               ? json_stringn(start, (size_t)(end - start))
               : NULL;
    if (cell == NULL) {
        return fail(csv, line, err, "not text in UTF-8: save it as CSV UTF-8");
    }
    json_array_append_new(row, cell);
    return RF_OK;
}

enum rf_status rf_csv_next(struct rf_csv *csv, json_t **row, size_t *line,
                           struct rf_err *err)
{
    enum rf_status status;
    json_t *cells;
    while (csv->at < csv->end && is_line_end(csv)) {
        skip_line_end(csv);
    }
    if (csv->at == csv->end) {
        *row = NULL;
        return RF_OK;
    }
    cells = json_array();
    *line = csv->line;
    status = read_cell(csv, cells, err);
    while (status == RF_OK && !is_line_end(csv)) {
        csv->at++; /* the comma */
        status = read_cell(csv, cells, err);
    }
    if (status != RF_OK) {
        json_decref(cells);
        return status;
    }
    skip_line_end(csv);
    *row = cells;
    return RF_OK;
}

/* Tables. See table.h. Cells are clean text; each form escapes what it must.
 * Widths are terminal columns, so neither "µ" nor "語" shifts one. */
#include "coordinator/table/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/terminal.h"
#include "common/text.h"
#include "coordinator/table/escape.h"

#define GAP 2         /* between columns of text */
#define SHORT_TEXT 12 /* never shortened */
#define ELLIPSIS "…"

struct rf_table {
    char **cells; /* heads first */
    size_t n, cap;
    size_t n_columns;
    bool *right;
    bool *whole;   /* never shortened */
    size_t *drops; /* columns, in order of removal */
    size_t n_drops, drops_cap;
    const char *all; /* command that shows all columns */
};

/* The width of each column of text; 0: left out. */
struct column_fit {
    size_t *widths;
    size_t total; /* of a line */
};

struct rf_table *rf_table_create(const char *const *heads)
{
    struct rf_table *table = rf_xcalloc(1, sizeof(*table));
    while (heads[table->n_columns] != NULL) {
        table->n_columns++;
    }
    assert(table->n_columns > 0);
    table->right = rf_xcalloc(table->n_columns, sizeof(*table->right));
    table->whole = rf_xcalloc(table->n_columns, sizeof(*table->whole));
    for (size_t c = 0; c < table->n_columns; c++) {
        table->right[c] = heads[c][0] == '>';
        table->whole[c] = table->right[c] || heads[c][0] == '=';
        RF_PUSH(table->cells, table->n, table->cap,
                rf_xstrdup(heads[c] + table->whole[c]));
    }
    return table;
}

void rf_table_destroy(struct rf_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->n; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    free(table->right);
    free(table->whole);
    free(table->drops);
    free(table);
}

void rf_table_cell(struct rf_table *table, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    rf_text_line(text, sizeof(text), fmt, args);
    va_end(args);
    RF_PUSH(table->cells, table->n, table->cap, rf_xstrdup(text));
}

void rf_table_set_drops(struct rf_table *table, const char *const *heads,
                        const char *all)
{
    table->n_drops = 0;
    table->all = all;
    for (; *heads != NULL; heads++) {
        size_t c = 0;
        while (c < table->n_columns && strcmp(table->cells[c], *heads) != 0) {
            c++;
        }
        assert(c < table->n_columns);
        RF_PUSH(table->drops, table->n_drops, table->drops_cap, c);
    }
}

size_t rf_table_rows(const struct rf_table *table)
{
    assert(table->n_columns > 0);
    return (table->n - 1) / table->n_columns;
}

static const char *cell_at(const struct rf_table *table, size_t row,
                           size_t column)
{
    size_t i = row * table->n_columns + column;
    return i < table->n ? table->cells[i] : "";
}

static bool is_constant(const struct rf_table *table, size_t column)
{
    const size_t n_rows = rf_table_rows(table);
    for (size_t row = 2; row <= n_rows; row++) {
        if (strcmp(cell_at(table, row, column), cell_at(table, 1, column)) !=
            0) {
            return false;
        }
    }
    return n_rows > 1;
}

static bool is_unmeasured(const char *cell)
{
    return cell[0] == '\0' || strcmp(cell, "-") == 0;
}

/* "head value; head value; not measured: head, head" for the constant columns,
 * those in `out`. Caller frees. */
static char *describe(const struct rf_table *table, const bool *out)
{
    char *text = NULL, *unmeasured = NULL;
    for (size_t c = 0; c < table->n_columns; c++) {
        const char *head = cell_at(table, 0, c), *value = cell_at(table, 1, c);
        if (out[c] && is_unmeasured(value)) {
            rf_text_add(&unmeasured, ", ", "%s", head);
        } else if (out[c]) {
            rf_text_add(&text, "; ", "%s %s", head, value);
        }
    }
    if (unmeasured != NULL) {
        rf_text_add(&text, "; ", "not measured: %s", unmeasured);
    }
    free(unmeasured);
    return text;
}

/* Remaining columns keep their order, and their places in `drops`. */
static void take_out(struct rf_table *table, const bool *out)
{
    const size_t n_columns = table->n_columns;
    size_t *place = rf_xcalloc(n_columns, sizeof(*place));
    size_t n_left = 0, n_cells = 0, n_drops = 0;
    for (size_t c = 0; c < n_columns; c++) {
        place[c] = n_left;
        table->right[n_left] = table->right[c];
        table->whole[n_left] = table->whole[c];
        n_left += !out[c];
    }
    assert(n_left > 0);
    for (size_t i = 0; i < table->n; i++) {
        if (out[i % n_columns]) {
            free(table->cells[i]);
        } else {
            table->cells[n_cells++] = table->cells[i];
        }
    }
    for (size_t i = 0; i < table->n_drops; i++) {
        if (!out[table->drops[i]]) {
            table->drops[n_drops++] = place[table->drops[i]];
        }
    }
    table->n = n_cells;
    table->n_columns = n_left;
    table->n_drops = n_drops;
    free(place);
}

char *rf_table_drop_constant(struct rf_table *table, size_t keep)
{
    bool *out = rf_xcalloc(table->n_columns, sizeof(*out)), any = false;
    char *text = NULL;
    for (size_t c = keep; c < table->n_columns; c++) {
        out[c] = is_constant(table, c);
        any = any || out[c];
    }
    if (any) {
        text = describe(table, out);
        take_out(table, out);
    }
    free(out);
    return text;
}

void rf_table_omit_unmeasured(struct rf_table *table, const char *head)
{
    bool *out = rf_xcalloc(table->n_columns, sizeof(*out));
    size_t c = 0, row = 1;
    while (c < table->n_columns && strcmp(table->cells[c], head) != 0) {
        c++;
    }
    assert(c < table->n_columns);
    while (row <= rf_table_rows(table) &&
           is_unmeasured(cell_at(table, row, c))) {
        row++;
    }
    if (row > rf_table_rows(table)) {
        out[c] = true;
        take_out(table, out);
    }
    free(out);
}

static void put_spaces(FILE *to, size_t n)
{
    while (n-- > 0) {
        fputc(' ', to);
    }
}

/* Cuts the middle of a text that is too wide: names differ at their ends. Never
 * splits wide characters. Caller frees. */
static char *shortened(const char *text, size_t width)
{
    size_t tail = width / 2;
    const char *end;
    int head;
    if (rf_text_columns(text) <= width) {
        return rf_xstrdup(text);
    }
    head = (int)rf_text_fitting(text, width - tail - 1);
    end = text + head;
    while (rf_text_columns(end) > tail) {
        do {
            end++;
        } while (((unsigned char)*end & 0xC0) == 0x80);
    }
    return rf_xasprintf("%.*s" ELLIPSIS "%s", head, text, end);
}

static void print_text_row(const struct rf_table *table, FILE *to, size_t row,
                           const struct column_fit *fit, size_t indent)
{
    size_t spaces = indent; /* before the next text */
    for (size_t c = 0; c < table->n_columns; c++) {
        size_t width = fit->widths[c], pad;
        char *text;
        if (width == 0) {
            continue;
        }
        text = shortened(cell_at(table, row, c), width);
        pad = width - RF_MIN(width, rf_text_columns(text));
        if (text[0] == '\0') {
            spaces += GAP + pad;
        } else {
            put_spaces(to, spaces + (table->right[c] ? pad : 0));
            fputs(text, to);
            spaces = GAP + (table->right[c] ? 0 : pad);
        }
        free(text);
    }
    fputc('\n', to);
}

static struct column_fit measure(const struct rf_table *table, size_t indent)
{
    struct column_fit fit = {
        .widths = rf_xcalloc(table->n_columns, sizeof(*fit.widths)),
        .total = indent + GAP * (table->n_columns - 1)};
    for (size_t i = 0; i < table->n; i++) {
        size_t width = rf_text_columns(table->cells[i]);
        size_t column = i % table->n_columns;
        fit.widths[column] = RF_MAX(fit.widths[column], width);
    }
    for (size_t c = 0; c < table->n_columns; c++) {
        fit.total += fit.widths[c];
    }
    return fit;
}

/* The widest shrinkable column, or n_columns. */
static size_t widest_text(const struct rf_table *table,
                          const struct column_fit *fit)
{
    size_t widest = table->n_columns, width = SHORT_TEXT;
    for (size_t c = 0; c < table->n_columns; c++) {
        if (!table->whole[c] && fit->widths[c] > width) {
            widest = c;
            width = fit->widths[c];
        }
    }
    return widest;
}

/* Drops columns until a line fits, then restores those that fit after a wider
 * one went. */
static void drop_columns(const struct rf_table *table, size_t width,
                         struct column_fit *fit)
{
    struct column_fit whole = measure(table, 0);
    size_t n = 0;
    for (; fit->total > width && n < table->n_drops; n++) {
        size_t c = table->drops[n];
        fit->total -= fit->widths[c] + GAP;
        fit->widths[c] = 0;
    }
    while (n-- > 0) {
        size_t c = table->drops[n];
        if (fit->total + whole.widths[c] + GAP <= width) {
            fit->widths[c] = whole.widths[c];
            fit->total += whole.widths[c] + GAP;
        }
    }
    free(whole.widths);
}

static void make_fit(const struct rf_table *table, size_t width,
                     struct column_fit *fit)
{
    size_t c;
    drop_columns(table, width, fit);
    while (fit->total > width &&
           (c = widest_text(table, fit)) < table->n_columns) {
        fit->widths[c]--;
        fit->total--;
    }
}

/* Takes `text`. Indents all lines but the first further. */
static void put_wrapped(FILE *to, char *text, size_t indent, size_t width)
{
    char *rest = NULL;
    size_t used = indent;
    put_spaces(to, indent);
    for (const char *word = strtok_r(text, " ", &rest), *first = word;
         word != NULL; word = strtok_r(NULL, " ", &rest)) {
        size_t size = rf_text_columns(word);
        if (word != first && used + 1 + size > width) {
            fputc('\n', to);
            put_spaces(to, indent + 2);
            used = indent + 2;
        } else if (word != first) {
            fputc(' ', to);
            used++;
        }
        fputs(word, to);
        used += size;
    }
    fputc('\n', to);
    free(text);
}

/* Names the dropped columns, if any. */
static void print_dropped(const struct rf_table *table, FILE *to,
                          const struct column_fit *fit, size_t indent,
                          size_t width)
{
    char *text = NULL;
    for (size_t i = 0; i < table->n_drops; i++) {
        if (fit->widths[table->drops[i]] == 0) {
            rf_text_add(&text, ", ", "%s", table->cells[table->drops[i]]);
        }
    }
    if (text == NULL) {
        return;
    }
    put_wrapped(to, rf_xasprintf("not shown in %zu columns: %s", width, text),
                indent, width);
    free(text);
    put_wrapped(to, rf_xasprintf("all columns: %s", table->all), indent, width);
}

void rf_table_print_text(const struct rf_table *table, FILE *to, int indent,
                         size_t width)
{
    struct column_fit fit = measure(table, (size_t)indent);
    if (width > 0) {
        make_fit(table, width, &fit);
    }
    for (size_t row = 0; row <= rf_table_rows(table); row++) {
        print_text_row(table, to, row, &fit, (size_t)indent);
    }
    print_dropped(table, to, &fit, (size_t)indent, width);
    free(fit.widths);
}

/* A form's markup around the cells of a row. */
struct markup {
    enum rf_report_form form;
    const char *start, *between, *end;
};

static void print_rows(const struct rf_table *table, FILE *to,
                       const struct markup *markup, size_t first, size_t last)
{
    for (size_t row = first; row <= last; row++) {
        for (size_t c = 0; c < table->n_columns; c++) {
            fputs(c == 0 ? markup->start : markup->between, to);
            rf_escape(to, markup->form, cell_at(table, row, c));
        }
        fputs(markup->end, to);
    }
}

static void print_csv(const struct rf_table *table, FILE *to)
{
    static const struct markup rows = {RF_REPORT_CSV, "", ",", "\n"};
    print_rows(table, to, &rows, 0, rf_table_rows(table));
}

static void print_latex(const struct rf_table *table, FILE *to)
{
    static const struct markup rows = {RF_REPORT_LATEX, "", " & ", " \\\\\n"};
    fputs("\\begin{tabular}{", to);
    for (size_t c = 0; c < table->n_columns; c++) {
        fputc(table->right[c] ? 'r' : 'l', to);
    }
    fputs("}\n\\toprule\n", to);
    print_rows(table, to, &rows, 0, 0);
    fputs("\\midrule\n", to);
    print_rows(table, to, &rows, 1, rf_table_rows(table));
    fputs("\\bottomrule\n\\end{tabular}\n", to);
}

static void print_markdown(const struct rf_table *table, FILE *to)
{
    static const struct markup rows = {RF_REPORT_MARKDOWN, "| ", " | ", " |\n"};
    print_rows(table, to, &rows, 0, 0);
    for (size_t c = 0; c < table->n_columns; c++) {
        fputs(table->right[c] ? "|---:" : "|---", to);
    }
    fputs("|\n", to);
    print_rows(table, to, &rows, 1, rf_table_rows(table));
}

static void print_html(const struct rf_table *table, FILE *to)
{
    static const struct markup heads = {RF_REPORT_HTML, "<tr><th>", "</th><th>",
                                        "</th></tr>\n"};
    fputs("<table>\n<thead>\n", to);
    print_rows(table, to, &heads, 0, 0);
    fputs("</thead>\n<tbody>\n", to);
    for (size_t row = 1; row <= rf_table_rows(table); row++) {
        fputs("<tr>", to);
        for (size_t c = 0; c < table->n_columns; c++) {
            fputs(table->right[c] ? "<td class=\"n\">" : "<td>", to);
            rf_escape(to, RF_REPORT_HTML, cell_at(table, row, c));
            fputs("</td>", to);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody>\n</table>\n", to);
}

void rf_table_print(const struct rf_table *table, FILE *to,
                    enum rf_report_form form, int indent)
{
    switch (form) {
    case RF_REPORT_CSV:
        print_csv(table, to);
        break;
    case RF_REPORT_LATEX:
        print_latex(table, to);
        break;
    case RF_REPORT_MARKDOWN:
        print_markdown(table, to);
        break;
    case RF_REPORT_HTML:
        print_html(table, to);
        break;
    case RF_REPORT_TABLE:
        rf_table_print_text(table, to, indent, rf_terminal_columns(fileno(to)));
        break;
    }
}

char *rf_table_text(const struct rf_table *table, enum rf_report_form form)
{
    char *text;
    size_t size;
    FILE *to = rf_xmemstream(&text, &size);
    rf_table_print(table, to, form, 0);
    rf_xmemstream_close(to);
    return text;
}

/* Small tables, printed as aligned text, CSV, LaTeX, Markdown or HTML. */
#ifndef RF_COORDINATOR_TABLE_TABLE_H
#define RF_COORDINATOR_TABLE_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "common/compiler.h"
#include "coordinator/table/escape.h"

struct rf_table;

/* `heads` has one head or more and ends with NULL; a head that starts with '>'
 * aligns its column to the right, one with '=' keeps its texts whole on a
 * narrow terminal (neither mark is printed). Heads are copied. */
struct rf_table *rf_table_create(const char *const *heads);
void rf_table_destroy(struct rf_table *table);

/* Fills the next cell, row by row, with one line of clean text (common/text.h);
 * one beyond 511 bytes is cut and ends in '+'. */
void rf_table_cell(struct rf_table *table, const char *fmt, ...)
    RF_PRINTF(2, 3);

size_t rf_table_rows(const struct rf_table *table);

/*
 * Takes out the columns whose cells are equal in all rows, but never the first
 * `keep` ones, at least one. What they were, "method host; strategy send_recv",
 * malloc'ed, with what is "-" or empty in all rows as "not measured: ..." last;
 * NULL when no column is taken out, as from fewer than two rows.
 */
char *rf_table_drop_constant(struct rf_table *table, size_t keep);

/* The heads of the columns that a narrow terminal does without, in that order,
 * ending with NULL. The others stay. `all` is a command that shows all columns;
 * borrowed. */
void rf_table_set_drops(struct rf_table *table, const char *const *heads,
                        const char *all);

/* A whole table; a last row that is not full is padded. Text is as wide as it
 * takes, on a terminal as rf_table_print_text() makes it fit. */
void rf_table_print(const struct rf_table *table, FILE *to,
                    enum rf_report_form form, int indent);

/* The same as a text; freed with free(). */
char *rf_table_text(const struct rf_table *table, enum rf_report_form form);

/*
 * As aligned text: two spaces between columns and `indent` spaces before each
 * line. If that takes more than `width` columns (0: no limit), the droppable
 * ones are left out one after another until it fits (but come back if there is
 * room for them in the end), and a last line names them. If that is not enough,
 * the longest texts lose their middle, down to 12 columns, but never figures
 * and columns marked with '='.
 */
void rf_table_print_text(const struct rf_table *table, FILE *to, int indent,
                         size_t width);

#endif

/* Small tables, printed as aligned text, CSV, LaTeX, Markdown or HTML. */
#ifndef RF_COORDINATOR_TABLE_TABLE_H
#define RF_COORDINATOR_TABLE_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "common/compiler.h"
#include "coordinator/table/escape.h"

struct rf_table;

/* `heads` has at least one head and ends with NULL. A leading '>' aligns the
 * column to the right; a leading '=' keeps its texts whole on a narrow terminal
 * (neither mark is printed). Heads are copied. */
struct rf_table *rf_table_create(const char *const *heads);
void rf_table_destroy(struct rf_table *table);

/* Fills the next cell, row by row, with one line of clean text (common/text.h);
 * cuts it beyond 511 bytes, with a '+' at the end. */
void rf_table_cell(struct rf_table *table, const char *fmt, ...)
    RF_PRINTF(2, 3);

size_t rf_table_rows(const struct rf_table *table);

/*
 * Removes columns whose cells are equal in all rows, but never the first
 * `keep`, which is at least one. Returns what they were, "method host; strategy
 * send_recv", with columns that are "-" or empty in all rows as "not measured:
 * ..." last. Caller frees. NULL if no column is removed, as with fewer than two
 * rows.
 */
char *rf_table_drop_constant(struct rf_table *table, size_t keep);

/* Removes the column with this head if no row has a figure in it. */
void rf_table_omit_unmeasured(struct rf_table *table, const char *head);

/* Heads of the columns to drop on a narrow terminal, in this order, ending with
 * NULL. Other columns stay. `all` is a command that shows every column;
 * borrowed. */
void rf_table_set_drops(struct rf_table *table, const char *const *heads,
                        const char *all);

/* Prints the whole table; pads an incomplete last row. Text is as wide as
 * needed, or fitted to a terminal by rf_table_print_text(). */
void rf_table_print(const struct rf_table *table, FILE *to,
                    enum rf_report_form form, int indent);

/* Likewise as a string. Caller frees. */
char *rf_table_text(const struct rf_table *table, enum rf_report_form form);

/*
 * Prints aligned text: two spaces between columns and `indent` before each
 * line. If a line exceeds `width` columns (0: no limit), drops the droppable
 * ones one by one until it fits (restoring those with room in the end), and
 * names them in a last line. If that is not enough, cuts the middle of the
 * longest texts, down to 12 columns, but never figures or columns marked with
 * '='.
 */
void rf_table_print_text(const struct rf_table *table, FILE *to, int indent,
                         size_t width);

#endif

/* Small tables, printed as aligned text, CSV, LaTeX, Markdown or HTML. */
#ifndef RF_COORDINATOR_TABLE_H
#define RF_COORDINATOR_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "common/compiler.h"
#include "coordinator/cli.h"

struct rf_table;

/* `heads` ends with NULL; a head that starts with '>' aligns its column to the
 * right (the '>' is not printed). Heads are copied. */
struct rf_table *rf_table_create(const char *const *heads);
void rf_table_destroy(struct rf_table *table);

/* Fills the next cell, row by row. */
void rf_table_cell(struct rf_table *table, const char *fmt, ...)
    RF_PRINTF(2, 3);

size_t rf_table_rows(const struct rf_table *table);

/* A whole table; a last row that is not full is padded. Text gets two spaces
 * between columns and `indent` spaces before each line. */
void rf_table_print(const struct rf_table *table, FILE *to,
                    enum rf_report_form form, int indent);

/* Text with what HTML would take for markup replaced, as cells have it. */
void rf_table_print_html_text(FILE *to, const char *text);

#endif

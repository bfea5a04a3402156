/*
 * Escaping texts of result files in reports. A file may come from anyone, so
 * its texts appear as one line of plain, valid UTF-8: no control characters,
 * changes of direction, markup or formulas.
 */
#ifndef RF_COORDINATOR_TABLE_ESCAPE_H
#define RF_COORDINATOR_TABLE_ESCAPE_H

#include <stdio.h>

/* Output forms of a table or a report. */
enum rf_report_form {
    RF_REPORT_TABLE,
    RF_REPORT_CSV,
    RF_REPORT_LATEX,
    RF_REPORT_MARKDOWN,
    RF_REPORT_HTML,
};

/* Writes `text` as a cell or a text in that form. */
void rf_escape(FILE *to, enum rf_report_form form, const char *text);

/* Likewise inside a comment of LaTeX (%), Markdown or HTML (<!-- -->). */
void rf_escape_remark(FILE *to, const char *text);

#endif

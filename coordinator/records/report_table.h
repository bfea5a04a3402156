/* One row per scenario, from result files: the table at the end of a run, the
 * report and summary.csv. */
#ifndef RF_COORDINATOR_RECORDS_REPORT_TABLE_H
#define RF_COORDINATOR_RECORDS_REPORT_TABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/records/fields.h"
#include "coordinator/table/table.h"

/* The long table for programs, numbers without units, where the form is CSV; in
 * all other forms the short one for people. With `runs` there is a column for
 * the run that a row belongs to. */
struct rf_table *rf_report_table_create(enum rf_report_form form, bool runs);

/* A row in a table of that form; `run` is NULL without a column for it. */
void rf_report_table_add(struct rf_table *table, enum rf_report_form form,
                         const char *run, const json_t *result);

/* What the table for programs and the report's JSON have of a field: a text, a
 * number, a truth, or null where it was not measured. A new reference. */
json_t *rf_report_value(const json_t *result,
                        const struct rf_result_field *field);

/* For people: `decimals` places, below 0.1 as many as three significant digits
 * take. Pure. */
const char *rf_figure_text(double value, int decimals, char out[32]);

/* The same of a time or a rate: about four significant digits, no exponent. */
const char *rf_amount_text(double value, char out[32]);

#endif

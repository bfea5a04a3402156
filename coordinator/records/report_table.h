/* One row per scenario, from result files: the table at the end of a run, the
 * report and summary.csv. */
#ifndef RF_COORDINATOR_RECORDS_REPORT_TABLE_H
#define RF_COORDINATOR_RECORDS_REPORT_TABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/records/fields.h"
#include "coordinator/table/table.h"

/* CSV: the long table for programs, numbers without units. Other forms: the
 * short table for people. `runs` adds a column with each row's run. */
struct rf_table *rf_report_table_create(enum rf_report_form form, bool runs);

/* Adds a row to a table of that form; `run` is NULL if there is no column for
 * it. */
void rf_report_table_add(struct rf_table *table, enum rf_report_form form,
                         const char *run, const json_t *result);

/* After the last row: takes out the columns for people that few results have. */
void rf_report_table_end(struct rf_table *table, enum rf_report_form form);

/* A field in the table for programs and in the report's JSON: a string, a
 * number, a boolean, or null if not measured. A new reference. */
json_t *rf_report_value(const json_t *result,
                        const struct rf_result_field *field);

/* For people: `decimals` places; below 0.1, enough for three significant
 * digits. Pure. */
const char *rf_figure_text(double value, int decimals, char out[32]);

/* Likewise for a time or a rate: about four significant digits, no exponent. */
const char *rf_amount_text(double value, char out[32]);

#endif

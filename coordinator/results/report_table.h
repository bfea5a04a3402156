/* One row per scenario, from result files: the table at the end of a run, the
 * report and summary.csv. */
#ifndef RF_COORDINATOR_RESULTS_REPORT_TABLE_H
#define RF_COORDINATOR_RESULTS_REPORT_TABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/results/table.h"

/* The short table for people. With `runs` each row begins with a cell that the
 * caller fills: the run that it belongs to. */
struct rf_table *rf_report_table_create(bool runs);
void rf_report_table_add(struct rf_table *table, const json_t *result);

/* The long one, numbers without units, for programs; likewise. */
struct rf_table *rf_summary_table_create(bool runs);
void rf_summary_table_add(struct rf_table *table, const json_t *result);

/* For people: `decimals` places, below 0.1 as many as three significant digits
 * take. Pure. */
const char *rf_figure_text(double value, int decimals, char out[32]);

#endif

/* One row a scenario, from result files: the table at the end of a run, the
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

/* A number at "summary.median_ms"-like places, `object` NULL for the top, with
 * dots for one inside another; false when null, absent, or nothing that can
 * have been measured: below 0 (but for a drift) or beyond 1e18. Every figure of
 * a result file is read by this. */
bool rf_result_number(const json_t *result, const char *object, const char *key,
                      double *out);
/* For people: `decimals` places, below 0.1 as many as three significant digits
 * take. Pure. */
const char *rf_figure_text(double value, int decimals, char out[32]);
const char *rf_result_text(const json_t *result, const char *object,
                           const char *key); /* "-" when absent */

#endif

/* Outliers of a comparison, for programs: outliers.csv. */
#ifndef RF_COORDINATOR_REPORTS_OUTLIERS_H
#define RF_COORDINATOR_REPORTS_OUTLIERS_H

#include "coordinator/reports/compare.h"

/*
 * CSV text with a row for each outlier: its figures as in the JSON of
 * comparisons, what was run, and two columns, "reference.PATH" and "new.PATH",
 * for each difference in scenario, model, plan, setup, tool or environment in
 * any row. Caller frees.
 */
char *rf_outliers_csv(const struct rf_comparisons *all);

#endif

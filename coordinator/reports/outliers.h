/* What stands out of a comparison, for programs: outliers.csv. */
#ifndef RF_COORDINATOR_REPORTS_OUTLIERS_H
#define RF_COORDINATOR_REPORTS_OUTLIERS_H

#include "coordinator/reports/compare.h"

/*
 * The text of a CSV file with a row for each outlier: its figures as in the
 * JSON of comparisons, what was run, and two columns, "reference.PATH" and
 * "new.PATH", for each difference in scenario, model, plan, tool or environment
 * that some row has. To be freed.
 */
char *rf_outliers_csv(const struct rf_comparisons *all);

#endif

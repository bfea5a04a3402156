/* What tests of tables, reports and comparisons share. */
#ifndef RF_TESTS_REPORT_LAB_H
#define RF_TESTS_REPORT_LAB_H

#include <jansson.h>

#include "coordinator/table/table.h"

/* A result of a scenario, with what reports read of it. */
json_t *result_record(const char *name, const char *status, double median,
                      double efficiency);

/* What CSV has under a head in a row, of which the first is 0. No cell may have
 * quotes. */
void assert_cell(const char *csv, size_t row, const char *head,
                 const char *text);

#endif
